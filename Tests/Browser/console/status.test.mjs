import assert from "node:assert/strict"
import { test } from "node:test"
import { Status } from "../../../Sources/CoatyGateway/Console/status.js"
import { controlledTimers, settle } from "./support.mjs"

/** Returns a polled status, its client and document, and the requests that have no answer yet. */
function polled(context) {
  const tick = controlledTimers(context)
  const page = Object.assign(new EventTarget(), { hidden: false })
  globalThis.document = page
  context.after(() => delete globalThis.document)
  const client = Object.assign(new EventTarget(), { state: "online" })
  const requests = []
  const rest = (path) => new Promise((resolve, reject) => requests.push({ path, answer: (json) => resolve({ json }), fail: reject }))
  return { tick, page, client, requests, status: new Status(client, rest, true) }
}

test("a status has the time at which it was received", async (context) => {
  const { tick, requests, status } = polled(context)
  const before = performance.now()
  requests.shift().answer({ version: 1 })
  await settle()
  const { time } = status
  assert.deepEqual(status.latest, { version: 1 })
  assert.ok(time >= before && time <= performance.now())
  tick(1000)
  assert.equal(status.time, time, "until the next answer")
  requests.shift().answer({ version: 2 })
  await settle()
  assert.ok(status.time > time)
})

test("an answer to a request that was given up is ignored", async (context) => {
  const { tick, client, requests, status } = polled(context)
  client.state = "connecting"
  client.dispatchEvent(new Event("statechange"))
  requests.shift().answer({ version: 1 })
  await settle()
  assert.equal(status.latest, undefined)
  client.state = "online"
  client.dispatchEvent(new Event("statechange"))
  client.dispatchEvent(new Event("statechange"))
  const [former, current] = requests
  current.answer({ version: 3 })
  await settle()
  former.answer({ version: 2 })
  await settle()
  assert.deepEqual(status.latest, { version: 3 })
  requests.length = 0
  tick(1000)
  assert.equal(requests.length, 1, "one request at a time")
})
