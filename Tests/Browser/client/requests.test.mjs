import assert from "node:assert/strict"
import { test } from "node:test"
import { setTimeout as sleep } from "node:timers/promises"
import { connect, maximumWait, next, object, Proxy, recording, scriptedGateway, sharedGateway, within } from "./support.mjs"

let gateway
sharedGateway((started) => { gateway = started })

const discover = { event: "discover", data: { coreTypes: ["Identity"] } }
const offline = { type: "urn:coaty-client:problem:offline", status: 0 }
const busy = { type: "urn:coaty-client:problem:busy", status: 0 }

/** Returns a client whose connection is refused as long as the proxy refuses it. */
async function unconnected(t, options) {
  const proxy = await Proxy.start(t, gateway.port)
  proxy.isRefusing = true
  const WebSocket = recording()
  return { proxy, sent: WebSocket.sent, client: connect(t, proxy.url, { WebSocket, ...options }) }
}

test("A request of a new client is sent when the client is online, like a subscription", async (t) => {
  const { proxy, client, sent } = await unconnected(t)
  const request = client.request(discover, { timeout: maximumWait })
  const subscription = client.subscribe({ event: "call", operation: "com.example.add" })
  const add = client.request({ event: "call", operation: "com.example.add", data: { parameters: [1, 2] } }, { timeout: `${maximumWait}ms` })
  proxy.isRefusing = false
  await within(subscription.ready, "ok")
  const call = await next(subscription[Symbol.asyncIterator](), "call")
  await client.respond(call, { result: 3 })
  assert.equal((await within(add.all(), "end")).responses[0].data.result, 3)
  request.cancel()
  const began = sent.filter(({ op }) => op === "subscribe" || op === "request")
  assert.deepEqual(began.map(({ op, event }) => `${op} ${event}`), ["subscribe call", "request discover", "request call"])
  for (const { timeout } of began.slice(1)) assert.ok(timeout > 0 && timeout < maximumWait, `the rest of the time, not ${timeout}`)
})

test("A request of a client that is online keeps its time limit", async (t) => {
  const WebSocket = recording()
  const client = connect(t, gateway.url, { WebSocket })
  await within(client.online(), "connection")
  client.request(discover, { timeout: "20s" })
  client.request(discover)
  assert.deepEqual(WebSocket.sent.map(({ timeout }) => timeout), ["20s", undefined])
})

test("A request that is not sent within its time limit throws `offline`", async (t) => {
  const { proxy, client, sent } = await unconnected(t)
  const began = performance.now()
  await assert.rejects(within(client.request(discover, { timeout: 300 }).all(), "end"), offline)
  const responses = client.request(discover)
  await assert.rejects(within(responses[Symbol.asyncIterator]().next(), "end"), offline)
  assert.equal(responses.reason, "error")
  assert.ok(performance.now() - began >= 2290, "two seconds by default")
  proxy.isRefusing = false
  await within(client.online(), "connection")
  assert.deepEqual(sent, [])
})

test("A request that waits can be cancelled, and is not sent", async (t) => {
  const { proxy, client, sent } = await unconnected(t)
  const abortion = new AbortController()
  const aborted = client.request(discover, { timeout: maximumWait, signal: abortion.signal })
  const cancelled = client.request(discover, { timeout: maximumWait })
  abortion.abort()
  cancelled.cancel()
  for (const request of [aborted, cancelled]) assert.deepEqual(await request.all(), { responses: [], reason: "cancelled" })
  client.request(discover, { timeout: maximumWait })
  proxy.isRefusing = false
  await within(client.online(), "connection")
  assert.deepEqual(sent.map(({ op }) => op), ["request"], "only the one that was not cancelled")
})

test("A request waits over failed attempts, and ends with the connection on which it was sent", async (t) => {
  const { proxy, client, sent } = await unconnected(t)
  const request = client.request({ event: "call", operation: "com.example.nobody", data: {} }, { timeout: maximumWait })
  let attempts = 0
  await within(new Promise((resolve) => client.addEventListener("statechange", () => { if (++attempts === 2) resolve() })), "two attempts")
  assert.equal(request.reason, undefined)
  proxy.isRefusing = false
  await within(client.online(), "connection")
  assert.deepEqual(sent.map(({ op }) => op), ["request"])
  proxy.cut()
  assert.deepEqual(await within(request.all(), "end"), { responses: [], reason: "disconnected" })
})

test("A request waits for the identity of the client", async (t) => {
  const gateway = await scriptedGateway(t)
  const client = connect(t, gateway.url)
  const identity = client.identify("Kiosk")
  const request = client.request(discover, { timeout: maximumWait })
  const identify = await gateway.received()
  assert.equal(identify.op, "identify")
  gateway.send({ op: "ok", id: identify.id, identity: object({ name: "Kiosk" }) })
  await within(identity, "identity")
  const { op, id } = await gateway.received()
  assert.equal(op, "request")
  gateway.send({ op: "done", id, reason: "limit" })
  assert.equal((await within(request.all(), "end")).reason, "limit")
})

test("Requests that wait are bounded in number and in bytes", async (t) => {
  const { client } = await unconnected(t)
  const many = Array.from({ length: 256 }, () => client.request(discover, { timeout: maximumWait }))
  await assert.rejects(client.request(discover).all(), busy)
  for (const request of many) request.cancel()
  const large = { event: "update", data: { object: object({ text: "x".repeat(5 << 20) }) } }
  client.request(large, { timeout: maximumWait })
  await assert.rejects(client.request(large).all(), busy)
  client.close()
})

test("The gateway refuses an invalid time limit, also of a request that has waited", async (t) => {
  const { proxy, client } = await unconnected(t)
  const request = client.request(discover, { timeout: "soon" })
  // Shorter than the usual time limit.
  await sleep(100)
  proxy.isRefusing = false
  await assert.rejects(within(request.all(), "end"), ({ status, pointer }) => status === 400 && pointer === "/timeout")
})
