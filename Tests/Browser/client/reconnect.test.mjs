import assert from "node:assert/strict"
import { once } from "node:events"
import { test } from "node:test"
import {
  Broker, connect, Gateway, GatewayError, next, object, maximumWait, Proxy, recording, state, takeUntil, within,
} from "./support.mjs"

const contextId = "b61740a6-95d7-4d1a-8be5-53f3aa1e0b79"
const routing = `
routing:
  contexts:
    - context: { coreType: IoContext, objectType: coaty.IoContext, objectId: ${contextId}, name: Greenhouse }
      rules: []
`
const channel = { event: "channel", channelId: "news" }

/** Starts a broker, a gateway and a client that connects to the gateway through a proxy. */
async function connectThroughProxy(t, options) {
  const broker = await Broker.start(t)
  const gateway = await Gateway.start(t, broker, options)
  const proxy = await Proxy.start(t, gateway.port)
  const WebSocket = recording()
  const client = connect(t, proxy.url, { WebSocket })
  await within(client.online(), "connection")
  return { broker, gateway, proxy, client, sent: WebSocket.sent }
}

test("A client that reconnects gets all events", async (t) => {
  const { gateway, proxy, client } = await connectThroughProxy(t)
  const states = []
  client.addEventListener("statechange", ({ detail }) => states.push(detail))
  const iterator = client.subscribe(channel)[Symbol.asyncIterator]()
  const ends = client.subscribe({ event: "deadvertise" })
  await within(ends.ready, "ok")
  await gateway.post("/v1/channel/news", { object: object({ number: 0 }) })
  assert.equal((await next(iterator)).data.object.number, 0)
  for (let number = 1; number <= 5; number++) {
    proxy.isRefusing = true
    proxy.cut()
    await state(client, "connecting")
    await gateway.post("/v1/channel/news", { object: object({ number }) })
    proxy.isRefusing = false
    const frame = await next(iterator)
    assert.equal(frame.op, "event")
    assert.equal(frame.data.object.number, number)
    await state(client, "online")
  }
  assert.ok(proxy.connections >= 6)
  assert.deepEqual([...new Set(states.map(({ state }) => state))], ["connecting", "online"])
  const { reason, delay } = states[0]
  assert.equal(reason, "close code 1006")
  assert.ok(delay >= 125 && delay <= 250)
  // A subscription that is closed while disconnected is not sent again.
  proxy.isRefusing = true
  proxy.cut()
  await state(client, "connecting")
  ends.close()
  proxy.isRefusing = false
  await within(client.online(), "connection")
  await client.publish({ ...channel, data: { object: object({ number: 6 }) } })
  assert.equal((await next(iterator)).data.object.number, 6)
})

test("A subscription that can't be resumed starts again after a gap", async (t) => {
  const { gateway, proxy, client } = await connectThroughProxy(t, { configuration: routing })
  const associations = client.subscribe({ event: "routing", contextId })[Symbol.asyncIterator]()
  // Without delivered objects, there is no cursor to resume from.
  const things = client.subscribe({ event: "advertise", objectType: "com.example.Thing", snapshot: true })
  const objects = things[Symbol.asyncIterator]()
  await within(things.ready, "ok")
  assert.equal((await next(associations)).event, "routing")
  proxy.cut()
  for (const iterator of [associations, objects]) {
    const { op, dropped, where } = await next(iterator, "gap")
    assert.deepEqual({ op, dropped, where }, { op: "gap", dropped: null, where: "client" })
  }
  assert.deepEqual((await next(associations)).data.associations.removed, [])
  const thing = object()
  await gateway.post("/v1/advertise", { object: thing })
  const { change, data } = await next(objects)
  assert.equal(change, "added")
  assert.deepEqual(data.object, thing)
})

test("After a gateway restart, the client restores its identity and subscriptions with a gap", async (t) => {
  const { gateway, client, sent } = await connectThroughProxy(t)
  const { objectId } = await within(client.identify("Kiosk"), "identity")
  const subscription = client.subscribe(channel)
  const calls = client.subscribe({ event: "call", operation: "com.example.add" })
  const iterator = subscription[Symbol.asyncIterator]()
  await within(Promise.all([subscription.ready, calls.ready]), "ok")
  await client.publish({ ...channel, data: { object: object({ number: 1 }) } })
  const { sourceId, cursor } = await next(iterator)
  assert.equal(sourceId, objectId)

  const responses = client.request({ event: "call", operation: "com.example.nobody", data: {} }, { timeout: maximumWait }).all()
  gateway.process.kill("SIGSTOP")
  const publication = client.publish({ ...channel, data: { object: object({ number: 2 }) } })
  const rejection = assert.rejects(within(publication, "end"), { type: "urn:coaty-client:problem:disconnected" })
  sent.length = 0
  await gateway.kill()
  await rejection
  assert.deepEqual(await within(responses, "end"), { responses: [], reason: "disconnected" })
  assert.equal(client.state, "connecting")
  assert.equal(client.identity, undefined)
  const offline = { type: "urn:coaty-client:problem:offline", status: 0 }
  await assert.rejects(client.publish({ ...channel, data: { object: object() } }), offline)
  const discover = client.request({ event: "discover", data: { coreTypes: ["Identity"] } }, { timeout: "100ms" })
  await assert.rejects(within(discover.all(), "end"), offline)

  await gateway.start()
  await within(client.online(), "connection")
  assert.deepEqual(sent.map(({ op }) => op), ["identify", "identify", "subscribe", "subscribe"])
  // The new process does not know the former identity.
  assert.ok(sent[0].resume && !sent[1].resume)
  assert.equal(sent[2].since, cursor)
  const { op, dropped, where } = await next(iterator, "gap")
  assert.deepEqual({ op, dropped, where }, { op: "gap", dropped: null, where: "gateway" })
  await client.publish({ ...channel, data: { object: object({ number: 3 }) } })
  const event = await next(iterator)
  assert.equal(event.data.object.number, 3)
  assert.equal(event.sourceId, client.identity.objectId)
  assert.equal(client.identity.name, "Kiosk")

  // The client answers a call over the new connection.
  const answer = gateway.post("/v1/call/com.example.add?timeout=20000", { parameters: [1, 2] })
  const [call] = (await takeUntil(calls[Symbol.asyncIterator](), ({ op }) => op === "event", "call")).slice(-1)
  await client.respond(call, { result: 3 })
  assert.deepEqual((await answer).responses[0].data, { result: 3 })
})

test("A subscription that is refused after a reconnect throws in its loop", async (t) => {
  const { gateway, client } = await connectThroughProxy(t, { configuration: routing })
  const associations = client.subscribe({ event: "routing", contextId })
  const iterator = associations[Symbol.asyncIterator]()
  assert.equal((await next(iterator)).event, "routing")
  await gateway.kill()
  await gateway.start()
  await assert.rejects(within(iterator.next(), "end"), (error) => error instanceof GatewayError && error.status === 404)
  assert.equal(associations.reason, "error")
  assert.deepEqual(await iterator.next(), { value: undefined, done: true })
})

test("A lost broker connection is reported as a gap, and publications are deferred", async (t) => {
  const { broker, client } = await connectThroughProxy(t)
  const subscription = client.subscribe(channel)
  const iterator = subscription[Symbol.asyncIterator]()
  await within(subscription.ready, "ok")
  const call = { event: "call", operation: "com.example.nobody" }
  const calls = client.subscribe(call)
  await within(calls.ready, "ok")
  const responses = client.request({ ...call, data: {} }, { timeout: maximumWait })
  await next(calls[Symbol.asyncIterator](), "call")
  await broker.kill()
  const gap = await next(iterator, "gap")
  assert.equal(gap.op, "gap")
  assert.equal(gap.where, "gateway")
  assert.deepEqual(await within(responses.all(), "end"), { responses: [], reason: "offline" })
  assert.equal(client.state, "online")
  assert.deepEqual(await client.publish({ ...channel, data: { object: object({ number: 1 }) } }), { deferred: true })
  await broker.start()
  const frames = await takeUntil(iterator, ({ op }) => op === "event", "event")
  assert.equal(frames.at(-1).data.object.number, 1)
})

test("Subscriptions continue while an identity waits for the broker", async (t) => {
  const { broker, gateway, proxy, client } = await connectThroughProxy(t)
  const first = await within(client.identify("Kiosk"), "identity")
  const subscription = client.subscribe(channel)
  const iterator = subscription[Symbol.asyncIterator]()
  await within(subscription.ready, "ok")
  await broker.kill()
  assert.equal((await next(iterator, "gap")).where, "gateway")
  proxy.cut()
  await state(client, "connecting")
  // The gateway has refused the identity, because the broker is unavailable.
  await within(client.subscribe({ event: "deadvertise" }).ready, "ok")
  assert.equal(client.state, "connecting")
  await assert.rejects(client.publish({ ...channel, data: { object: object() } }), {
    type: "urn:coaty-client:problem:offline",
  })
  await broker.start()
  await within(client.online(), "identity")
  // The gateway observes over its own broker connection, which reconnects separately.
  await gateway.waitUntilReady()
  assert.equal(client.identity.objectId, first.objectId)
  await client.publish({ ...channel, data: { object: object({ number: 1 }) } })
  const [event] = (await takeUntil(iterator, ({ op }) => op === "event", "event")).slice(-1)
  assert.equal(event.sourceId, client.identity.objectId)
})

test("Failed handshakes are retried with growing delays", async (t) => {
  const { gateway } = await connectThroughProxy(t)
  const proxy = await Proxy.start(t, gateway.port)
  proxy.isRefusing = true
  const client = connect(t, proxy.url)
  const delays = []
  while (delays.length < 4) {
    const [{ detail }] = await within(once(client, "statechange"), "attempt")
    assert.equal(detail.state, "connecting")
    delays.push(detail.delay)
  }
  delays.forEach((delay, i) => assert.ok(delay >= 125 * 2 ** i && delay <= 250 * 2 ** i, `${delays}`))
  proxy.isRefusing = false
  await within(client.online(), "connection")
  assert.equal(proxy.connections, 5)
})
