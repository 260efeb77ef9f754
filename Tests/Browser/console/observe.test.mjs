import assert from "node:assert/strict"
import { getEventListeners } from "node:events"
import { test } from "node:test"
import { observe, observeState, pause } from "../../../Sources/CoatyGateway/Console/observe.js"
import { scriptedClient, settle, controlledTimers, until } from "./support.mjs"

test("a pause removes its listener from the signal", async () => {
  const { signal } = new AbortController()
  for (let count = 0; count < 20; count++) await pause(0, signal)
  assert.equal(getEventListeners(signal, "abort").length, 0)
  const stop = new AbortController()
  const paused = pause(1e9, stop.signal)
  stop.abort()
  await paused
  assert.equal(getEventListeners(stop.signal, "abort").length, 0)
  await pause(1e9, stop.signal)
})

test("a refused subscription is reported and retried", async (context) => {
  const tick = controlledTimers(context)
  const client = scriptedClient({ error: new Error("too many") }, { frames: [1], ends: true }, { frames: [2] })
  const stop = new AbortController()
  const taken = []
  const reported = []
  observe(client, { event: "x" }, stop.signal, (frame) => taken.push(frame), (error) => reported.push(error?.message))
  await until(() => reported.length === 1)
  tick(5000)
  await until(() => taken.length === 1)
  await settle()
  tick(5000)
  await until(() => taken.length === 2)
  assert.deepEqual([taken, reported], [[1, 2], ["too many", undefined, undefined]])
  stop.abort()
  await settle()
  tick(60_000)
  assert.equal(client.subscribed.length, 3)
})

test("an error of the frame handler is reported, and the observation continues", async (context) => {
  const tick = controlledTimers(context)
  const client = scriptedClient({ frames: [1] }, { frames: [2] })
  const stop = new AbortController()
  const taken = []
  const reported = []
  const take = (frame) => {
    if (frame === 1) throw new TypeError("wrong")
    taken.push(frame)
  }
  observe(client, {}, stop.signal, take, (error) => error && reported.push(error.message))
  await until(() => reported.length === 1)
  tick(5000)
  await until(() => taken.length === 1)
  stop.abort()
})

test("an observation ends on an error that `isOver` accepts", async (context) => {
  const tick = controlledTimers(context)
  const client = scriptedClient({ error: Object.assign(new Error("wrong"), { status: 400 }) })
  const reported = []
  let isOver = false
  const { signal } = new AbortController()
  observe(client, {}, signal, () => {}, (error) => reported.push(error?.message), (error) => error?.status === 400).then(() => { isOver = true })
  await until(() => isOver)
  tick(60_000)
  await settle()
  assert.deepEqual([reported, client.subscribed.length], [["wrong"], 1])
})

test("a state is requested again after a gap in its changes", async (context) => {
  for (const missed of [{ op: "gap", dropped: 2 }, { op: "gap", dropped: null, cursor: "c" }]) {
    const tick = controlledTimers(context)
    const client = scriptedClient(
      // The gap before the first event means that the gateway has no broker connection.
      { frames: [{ op: "gap", dropped: null }, { op: "event", number: 1 }, missed, { op: "event", number: 2 }] },
      { frames: [{ op: "event", number: 3 }] },
    )
    const stop = new AbortController()
    let known = ["old"]
    const state = { begin: () => { known = [] }, take: ({ number }) => known.push(number) }
    observeState(client, {}, stop.signal, state)
    await until(() => client.subscribed[0]?.signal.aborted)
    assert.deepEqual(known, [1], "the known state is kept until the new one arrives")
    await settle()
    tick(1000)
    await until(() => known[0] === 3)
    assert.deepEqual(known, [3])
    assert.equal(getEventListeners(stop.signal, "abort").length, 1)
    stop.abort()
  }
})

test("a forbidden subscription is not retried", async (context) => {
  const tick = controlledTimers(context)
  const type = "urn:coaty-gateway:problem:forbidden"
  for (const begin of [
    (client, signal, report) => observe(client, {}, signal, () => {}, report),
    (client, signal, report) => observeState(client, {}, signal, { begin() {}, take() {} }, report),
  ]) {
    const client = scriptedClient({ error: Object.assign(new Error("forbidden"), { type, status: 403 }) })
    const reported = []
    let isOver = false
    begin(client, new AbortController().signal, (error) => reported.push(error?.message)).then(() => { isOver = true })
    await until(() => isOver)
    tick(60_000)
    await settle()
    assert.deepEqual([reported, client.subscribed.length], [["forbidden"], 1])
  }
})
