// A gateway that says what no gateway says, and addresses.

import assert from "node:assert/strict"
import { test } from "node:test"
import { CoatyClient, connect, next, scriptedGateway, state, within } from "./support.mjs"

test("What is unknown, no JSON, or of what has ended is passed over", async (t) => {
  const gateway = await scriptedGateway(t)
  const client = connect(t, gateway.url)
  const iterator = client.subscribe({ event: "deadvertise" })[Symbol.asyncIterator]()
  const { id } = await gateway.told()
  const nonsense = ["", "null", "1", "[]", "{", "\n", { op: "news", id }, { op: "ok" }, { op: "event" }, { op: "error", id: "77" }]
  for (const frame of nonsense) gateway.say(frame)
  for (const socket of gateway.server.clients) socket.send(Buffer.from("no line feed"))
  gateway.say({ op: "ok", id })
  gateway.say({ op: "ok", id: "77", deferred: false })
  gateway.say({ op: "event", id, event: "deadvertise", data: {}, more: { is: "kept" } })
  assert.deepEqual((await next(iterator)).more, { is: "kept" })
  gateway.say({ op: "done", id, reason: "withdrawn" })
  gateway.say({ op: "event", id, event: "deadvertise", data: {} })
  gateway.say({ op: "error", id, type: "t", title: "T", status: 404 })
  assert.deepEqual(await within(iterator.next(), "end"), { value: undefined, done: true })

  const publication = client.publish({ event: "deadvertise", data: { objectIds: [] } })
  const asked = await gateway.told()
  assert.notEqual(asked.id, id)
  gateway.say({ op: "ok", id: asked.id, deferred: true })
  assert.deepEqual(await within(publication, "answer"), { deferred: true })
})

test("What waits before a done or an error is still told", async (t) => {
  const gateway = await scriptedGateway(t)
  const client = connect(t, gateway.url)
  const subscriptions = [client.subscribe({ event: "discover" }), client.subscribe({ event: "query" })]
  const ids = [(await gateway.told()).id, (await gateway.told()).id]
  for (const id of ids) gateway.say({ op: "event", id, event: "discover", data: {} })
  gateway.say({ op: "done", id: ids[0], reason: "overflow" })
  gateway.say({ op: "error", id: ids[1], type: "t", title: "T", status: 403 })
  const [done, refused] = subscriptions.map((subscription) => subscription[Symbol.asyncIterator]())
  assert.equal((await next(refused)).op, "event")
  await assert.rejects(within(refused.next(), "error"), { name: "GatewayError", message: "T", status: 403 })
  assert.equal((await next(done)).op, "event")
  assert.deepEqual(await done.next(), { value: undefined, done: true })
  assert.deepEqual(subscriptions.map(({ reason }) => reason), ["overflow", "error"])
})

test("Gaps that are dropped with the events around them count as what they say", async (t) => {
  const gateway = await scriptedGateway(t)
  const client = connect(t, gateway.url)
  const subscriptions = [client.subscribe({ event: "discover" }), client.subscribe({ event: "query" })]
  const ids = [(await gateway.told()).id, (await gateway.told()).id]
  gateway.say({ op: "gap", id: ids[0], dropped: 10 })
  gateway.say({ op: "gap", id: ids[1], dropped: null })
  for (const id of ids) for (let i = 0; i < 4100; i++) gateway.say({ op: "event", id, event: "discover", data: { i } })
  const publication = client.publish({ event: "deadvertise", data: {} })
  gateway.say({ op: "ok", id: (await gateway.told()).id, deferred: false })
  await within(publication, "answer")
  const [first, second] = subscriptions.map((subscription) => subscription[Symbol.asyncIterator]())
  assert.deepEqual(await next(first), { op: "gap", dropped: 14, where: "client", size: 0 })
  assert.equal((await next(first)).data.i, 4)
  assert.deepEqual(await next(second), { op: "gap", dropped: null, where: "client", size: 0 })
})

test("More responses than are kept end the request, and those that are kept are told", async (t) => {
  const gateway = await scriptedGateway(t)
  const client = connect(t, gateway.url)
  await within(client.online(), "connection")
  const all = client.request({ event: "discover", data: {} }, { limit: 0 }).all()
  const { id } = await gateway.told()
  const data = { text: "x".repeat(4 * 1024 * 1024) }
  for (let i = 0; i < 6; i++) gateway.say({ op: "response", id, event: "resolve", sourceId: "s", ms: 1, data })
  const { responses, reason } = await within(all, "end")
  assert.equal(reason, "overflow")
  assert.equal(responses.length, 4)
  assert.deepEqual(await gateway.told(), { op: "cancel", id })
})

test("A client that is closed on its way is closed", async (t) => {
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

/** Connects to nothing, and says where to. */
class Nowhere extends EventTarget {
  static urls = []
  constructor(url, protocol) {
    super()
    Nowhere.urls.push([url, protocol])
  }
  close() {}
}

test("The addresses of a gateway", (t) => {
  const options = { WebSocket: Nowhere }
  const urlOf = (text) => {
    connect(t, text, options)
    const [url, protocol] = Nowhere.urls.pop()
    assert.equal(protocol, "coaty.v1")
    return url
  }
  assert.equal(urlOf("http://127.0.0.1:8080"), "ws://127.0.0.1:8080/v1/ws")
  assert.equal(urlOf("https://example.com/coaty/"), "wss://example.com/coaty/v1/ws")
  assert.equal(urlOf(new URL("ws://example.com/v1/ws")), "ws://example.com/v1/ws")
  for (const wrong of ["ftp://example.com", "nonsense", "data:text/plain,1"]) {
    assert.throws(() => new CoatyClient(wrong, options), TypeError)
  }
  // That of a file is none.
  assert.throws(() => new CoatyClient(undefined, options), TypeError)
  assert.throws(() => new CoatyClient("http://127.0.0.1"), TypeError)
})

test("The client comes back at once when the browser says that there is a network", (t) => {
  const browser = new EventTarget()
  globalThis.addEventListener = browser.addEventListener.bind(browser)
  globalThis.removeEventListener = browser.removeEventListener.bind(browser)
  t.after(() => {
    delete globalThis.addEventListener
    delete globalThis.removeEventListener
  })
  const client = connect(t, "http://127.0.0.1", { WebSocket: Nowhere })
  Nowhere.urls = []
  browser.dispatchEvent(new Event("online"))
  assert.equal(Nowhere.urls.length, 1)
  client.close()
  browser.dispatchEvent(new Event("online"))
  assert.equal(Nowhere.urls.length, 1)
})

for (const code of [1001, 1009, 1013, 4000, 4001, 4499]) {
  test(`The client reconnects after the close code ${code}`, async (t) => {
    const gateway = await scriptedGateway(t)
    const client = connect(t, gateway.url)
    const subscription = client.subscribe({ event: "deadvertise" })
    const { id } = await gateway.told()
    for (const socket of gateway.server.clients) socket.close(code, "because")
    await state(client, "connecting")
    assert.deepEqual(await gateway.told(), { op: "subscribe", event: "deadvertise", id })
    assert.equal(subscription.reason, undefined)
  })
}

test("The client reconnects when a gateway that stops has asked it to, once", async (t) => {
  const gateway = await scriptedGateway(t)
  const client = connect(t, gateway.url)
  client.subscribe({ event: "deadvertise" })
  await gateway.told()
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
    await gateway.told()
    assert.ok(performance.now() - began >= delay - 5)
    await state(client, "online")
  }
  // However long it asks for.
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
    for (let count = 0; count < 4; count++) await gateway.told()
    for (const socket of gateway.server.clients) socket.close(code, "because")
    // The gateway may have acted on it.
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
    assert.deepEqual(states, [{ state: "closed", reason: "because" }])
  })
}
