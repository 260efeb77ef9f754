// Frames that no gateway sends, close codes, and gateway addresses.

import assert from "node:assert/strict"
import { test } from "node:test"
import { CoatyClient, connect, next, scriptedGateway, state, within } from "./support.mjs"

test("Frames that are unknown, not JSON, or for ended subscriptions are ignored", async (t) => {
  const gateway = await scriptedGateway(t)
  const client = connect(t, gateway.url)
  const iterator = client.subscribe({ event: "deadvertise" })[Symbol.asyncIterator]()
  const { id } = await gateway.received()
  const nonsense = ["", "null", "1", "[]", "{", "\n", { op: "news", id }, { op: "ok" }, { op: "event" }, { op: "error", id: "77" }]
  for (const frame of nonsense) gateway.send(frame)
  for (const socket of gateway.server.clients) socket.send(Buffer.from("no line feed"))
  gateway.send({ op: "ok", id })
  gateway.send({ op: "ok", id: "77", deferred: false })
  gateway.send({ op: "event", id, event: "deadvertise", data: {}, more: { is: "kept" } })
  assert.deepEqual((await next(iterator)).more, { is: "kept" })
  gateway.send({ op: "done", id, reason: "withdrawn" })
  gateway.send({ op: "event", id, event: "deadvertise", data: {} })
  gateway.send({ op: "error", id, type: "t", title: "T", status: 404 })
  assert.deepEqual(await within(iterator.next(), "end"), { value: undefined, done: true })

  const publication = client.publish({ event: "deadvertise", data: { objectIds: [] } })
  const asked = await gateway.received()
  assert.notEqual(asked.id, id)
  gateway.send({ op: "ok", id: asked.id, deferred: true })
  assert.deepEqual(await within(publication, "answer"), { deferred: true })
})

test("Events queued before `done` or `error` are still delivered", async (t) => {
  const gateway = await scriptedGateway(t)
  const client = connect(t, gateway.url)
  const subscriptions = [client.subscribe({ event: "discover" }), client.subscribe({ event: "query" })]
  const ids = [(await gateway.received()).id, (await gateway.received()).id]
  for (const id of ids) gateway.send({ op: "event", id, event: "discover", data: {} })
  gateway.send({ op: "done", id: ids[0], reason: "overflow" })
  gateway.send({ op: "error", id: ids[1], type: "t", title: "T", status: 403 })
  const [done, refused] = subscriptions.map((subscription) => subscription[Symbol.asyncIterator]())
  assert.equal((await next(refused)).op, "event")
  await assert.rejects(within(refused.next(), "error"), { name: "GatewayError", message: "T", status: 403 })
  assert.equal((await next(done)).op, "event")
  assert.deepEqual(await done.next(), { value: undefined, done: true })
  assert.deepEqual(subscriptions.map(({ reason }) => reason), ["overflow", "error"])
})

test("The count of a dropped gap is added to the gap that replaces it", async (t) => {
  const gateway = await scriptedGateway(t)
  const client = connect(t, gateway.url)
  const subscriptions = [client.subscribe({ event: "discover" }), client.subscribe({ event: "query" })]
  const ids = [(await gateway.received()).id, (await gateway.received()).id]
  gateway.send({ op: "gap", id: ids[0], dropped: 10 })
  gateway.send({ op: "gap", id: ids[1], dropped: null })
  for (const id of ids) for (let i = 0; i < 4100; i++) gateway.send({ op: "event", id, event: "discover", data: { i } })
  const publication = client.publish({ event: "deadvertise", data: {} })
  gateway.send({ op: "ok", id: (await gateway.received()).id, deferred: false })
  await within(publication, "answer")
  const [first, second] = subscriptions.map((subscription) => subscription[Symbol.asyncIterator]())
  assert.deepEqual(await next(first), { op: "gap", dropped: 14, where: "client", size: 0 })
  assert.equal((await next(first)).data.i, 4)
  assert.deepEqual(await next(second), { op: "gap", dropped: null, where: "client", size: 0 })
})

test("A request ends when too many responses are queued, and the queued ones are delivered", async (t) => {
  const gateway = await scriptedGateway(t)
  const client = connect(t, gateway.url)
  await within(client.online(), "connection")
  const all = client.request({ event: "discover", data: {} }, { limit: 0 }).all()
  const { id } = await gateway.received()
  const data = { text: "x".repeat(4 * 1024 * 1024) }
  for (let i = 0; i < 6; i++) gateway.send({ op: "response", id, event: "resolve", sourceId: "s", ms: 1, data })
  const { responses, reason } = await within(all, "end")
  assert.equal(reason, "overflow")
  assert.equal(responses.length, 4)
  assert.deepEqual(await gateway.received(), { op: "cancel", id })
})

test("A client that is closed while it connects does not connect", async (t) => {
  const gateway = await scriptedGateway(t)
  const client = connect(t, gateway.url)
  const identity = client.identify("Nobody")
  client.close()
  assert.equal(client.state, "closed")
  await assert.rejects(identity, { type: "urn:coaty-client:problem:closed" })
  const other = connect(t, gateway.url)
  await state(other, "online")
  assert.equal(gateway.server.clients.size, 1)
})

/** A WebSocket that never connects. It records the URL and the subprotocol. */
class UnconnectedSocket extends EventTarget {
  static urls = []
  constructor(url, protocol) {
    super()
    UnconnectedSocket.urls.push([url, protocol])
  }
  close() {}
}

test("The WebSocket URL is derived from the gateway address", (t) => {
  const options = { WebSocket: UnconnectedSocket }
  const urlOf = (text) => {
    connect(t, text, options)
    const [url, protocol] = UnconnectedSocket.urls.pop()
    assert.equal(protocol, "coaty.v1")
    return url
  }
  assert.equal(urlOf("http://127.0.0.1:8080"), "ws://127.0.0.1:8080/v1/ws")
  assert.equal(urlOf("https://example.com/coaty/"), "wss://example.com/coaty/v1/ws")
  assert.equal(urlOf(new URL("ws://example.com/v1/ws")), "ws://example.com/v1/ws")
  for (const wrong of ["ftp://example.com", "nonsense", "data:text/plain,1"]) {
    assert.throws(() => new CoatyClient(wrong, options), TypeError)
  }
  // A file: URL is not a gateway address.
  assert.throws(() => new CoatyClient(undefined, options), TypeError)
  assert.throws(() => new CoatyClient("http://127.0.0.1"), TypeError)
})

test("The client reconnects at once when the browser reports a network", (t) => {
  const browser = new EventTarget()
  globalThis.addEventListener = browser.addEventListener.bind(browser)
  globalThis.removeEventListener = browser.removeEventListener.bind(browser)
  t.after(() => {
    delete globalThis.addEventListener
    delete globalThis.removeEventListener
  })
  const client = connect(t, "http://127.0.0.1", { WebSocket: UnconnectedSocket })
  UnconnectedSocket.urls = []
  browser.dispatchEvent(new Event("online"))
  assert.equal(UnconnectedSocket.urls.length, 1)
  client.close()
  browser.dispatchEvent(new Event("online"))
  assert.equal(UnconnectedSocket.urls.length, 1)
})

for (const code of [1001, 1009, 1013, 4000, 4001, 4499]) {
  test(`The client reconnects after the close code ${code}`, async (t) => {
    const gateway = await scriptedGateway(t)
    const client = connect(t, gateway.url)
    const subscription = client.subscribe({ event: "deadvertise" })
    const { id } = await gateway.received()
    for (const socket of gateway.server.clients) socket.close(code, "because")
    await state(client, "connecting")
    assert.deepEqual(await gateway.received(), { op: "subscribe", event: "deadvertise", id })
    assert.equal(subscription.reason, undefined)
  })
}

test("The client reconnects after the delay that a stopping gateway requests, and uses the delay once", async (t) => {
  const gateway = await scriptedGateway(t)
  const client = connect(t, gateway.url)
  client.subscribe({ event: "deadvertise" })
  await gateway.received()
  for (const [reason, isObeyed] of [
    ["retry-after=1203", true], ["retry-after=0", true], ["retry-after=-1", false], ["retry-after=1.5", false],
    ["retry-after=x", false], ["because", false],
  ]) {
    const changed = new Promise((resolve) => client.addEventListener("statechange", resolve, { once: true }))
    for (const socket of gateway.server.clients) socket.close(4000, reason)
    const began = performance.now()
    const { delay } = (await within(changed, "close")).detail
    if (isObeyed) assert.equal(delay, Number(reason.split("=")[1]))
    else assert.ok(delay >= 125 && delay <= 10_000 && delay !== 1203, `${reason}: ${delay}`)
    await gateway.received()
    assert.ok(performance.now() - began >= delay - 5)
    await state(client, "online")
  }
  // The delay is capped at a minute.
  const changed = new Promise((resolve) => client.addEventListener("statechange", resolve, { once: true }))
  for (const socket of gateway.server.clients) socket.close(4000, "retry-after=999999999")
  assert.equal((await within(changed, "close")).detail.delay, 60_000)
})

for (const code of [4500, 4504, 4999]) {
  test(`The client does not reconnect after the close code ${code}`, async (t) => {
    const gateway = await scriptedGateway(t)
    const client = connect(t, gateway.url)
    await within(client.online(), "connection")
    const states = []
    client.addEventListener("statechange", ({ detail }) => states.push(detail))
    const refused = { type: "urn:coaty-client:problem:refused", status: 0, message: /because/ }
    const subscription = client.subscribe({ event: "deadvertise" })
    const responses = client.request({ event: "discover", data: {} })
    const publication = client.publish({ event: "deadvertise", data: { objectIds: [] } })
    const identity = client.identify("Kiosk")
    for (let count = 0; count < 4; count++) await gateway.received()
    for (const socket of gateway.server.clients) socket.close(code, "because")
    // The gateway may have handled the publication.
    await assert.rejects(within(publication, "end"), { type: "urn:coaty-client:problem:disconnected" })
    await assert.rejects(within(identity, "end"), refused)
    await assert.rejects(within(subscription.ready, "end"), refused)
    await assert.rejects(within(subscription[Symbol.asyncIterator]().next(), "end"), refused)
    await assert.rejects(within(responses.all(), "end"), refused)
    assert.equal(subscription.reason, "error")
    assert.equal(client.state, "closed")
    await assert.rejects(client.online(), refused)
    await assert.rejects(client.identify("Late"), refused)
    await assert.rejects(client.publish({ event: "deadvertise", data: { objectIds: [] } }), refused)
    await assert.rejects(client.subscribe({ event: "deadvertise" }).ready, refused)
    client.close()
    // Longer than the first attempt to reconnect would take.
    await new Promise((resolve) => setTimeout(resolve, 500))
    assert.equal(gateway.server.clients.size, 0)
    assert.equal(states.length, 1)
    const { problem, ...change } = states[0]
    assert.deepEqual(change, { state: "closed", reason: "because" })
    await assert.rejects(Promise.reject(problem), refused)
  })
}
