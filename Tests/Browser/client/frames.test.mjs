// A gateway that says what no gateway says, and addresses.

import assert from "node:assert/strict"
import { once } from "node:events"
import { test } from "node:test"
import { CoatyClient, connect, next, state, WebSocketServer, within } from "./support.mjs"

/** A server that does as a test says; gives what it is told. */
async function server(t) {
  const server = new WebSocketServer({ host: "127.0.0.1", port: 0 })
  await once(server, "listening")
  t.after(() => {
    for (const socket of server.clients) socket.terminate()
    server.close()
  })
  const told = []
  const waiting = []
  server.on("connection", (socket) => {
    socket.on("message", (text) => {
      const frame = JSON.parse(text)
      const taker = waiting.shift()
      if (taker) taker(frame)
      else told.push(frame)
    })
  })
  return {
    url: `ws://127.0.0.1:${server.address().port}`,
    server,
    told: () => within(told.length > 0 ? told.shift() : new Promise((resolve) => waiting.push(resolve)), "frame"),
    say: (frame) => {
      for (const socket of server.clients) socket.send(typeof frame === "string" ? frame : JSON.stringify(frame))
    },
  }
}

test("What is unknown, no JSON, or of what has ended is passed over", async (t) => {
  const gateway = await server(t)
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
  const gateway = await server(t)
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
  const gateway = await server(t)
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
  const gateway = await server(t)
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
  const gateway = await server(t)
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
