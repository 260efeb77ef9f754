// Pages that the gateway refuses because of their origin.

import assert from "node:assert/strict"
import { once } from "node:events"
import { createServer } from "node:http"
import { test } from "node:test"
import { setTimeout as sleep } from "node:timers/promises"
import { Broker, CoatyEventSource, connect, Gateway, GatewayError, WebSocket, within } from "./support.mjs"

const type = "urn:coaty-gateway:problem:origin-not-allowed"

/** Makes node a page of an origin during a test. Returns a WebSocket class of the page, and the URLs that it fetches. */
function pageOf(t, origin) {
  const { fetch } = globalThis
  const fetched = []
  globalThis.location = new URL(`${origin}/page.html`)
  globalThis.fetch = (url, options = {}) => {
    fetched.push(String(url))
    return fetch(url, { ...options, headers: { ...options.headers, origin } })
  }
  t.after(() => {
    delete globalThis.location
    globalThis.fetch = fetch
  })
  class PageWebSocket extends WebSocket {
    constructor(url, protocols) {
      super(url, protocols, { origin })
    }
  }
  return { WebSocket: PageWebSocket, fetched }
}

/** Starts an HTTP server that refuses handshakes with 503 and answers other requests with a problem. */
async function refusingServer(t, problem) {
  const counts = { handshakes: 0, requests: [] }
  const server = createServer((request, response) => {
    counts.requests.push(request.url)
    response.writeHead(problem.status, { "content-type": "application/problem+json" }).end(JSON.stringify(problem))
  })
  server.on("upgrade", (_, socket) => {
    counts.handshakes += 1
    socket.end("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")
  })
  await once(server.listen(0, "127.0.0.1"), "listening")
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  return Object.assign(counts, { url: `http://127.0.0.1:${server.address().port}` })
}

/** Resolves after a number of failed attempts of a client. */
async function failures(client, count) {
  for (let index = 0; index < count; index += 1) {
    await within(new Promise((resolve) => client.addEventListener("statechange", resolve, { once: true })), "statechange")
  }
}

test("A client of a page whose origin is not allowed is closed with the problem", async (t) => {
  const gateway = await Gateway.start(t, await Broker.start(t))
  const page = pageOf(t, "https://evil.example")
  const client = connect(t, gateway.url, { WebSocket: page.WebSocket })
  const changes = []
  client.addEventListener("statechange", ({ detail }) => changes.push(detail))
  const subscription = client.subscribe({ event: "traffic" })
  const error = await within(client.online().catch((error) => error), "refusal")
  assert.ok(error instanceof GatewayError)
  assert.deepEqual([error.type, error.status], [type, 403])
  assert.match(error.message, /https:\/\/evil\.example .*allowed-origins/)
  assert.equal(client.state, "closed")
  assert.deepEqual(changes.map(({ state }) => state), ["connecting", "closed"])
  assert.equal(changes[1].problem.type, type)
  assert.equal(changes[1].reason, error.message)
  await assert.rejects(subscription.ready, { type })
  await assert.rejects(client.publish({ event: "deadvertise", data: { objectIds: ["x"] } }), { type })
  assert.deepEqual(page.fetched, [`${gateway.url}/v1/access`])
})

test("An event stream of a page whose origin is not allowed ends with the problem", async (t) => {
  const gateway = await Gateway.start(t, await Broker.start(t))
  pageOf(t, "https://evil.example")
  const source = new CoatyEventSource(`${gateway.url}/v1/sse/deadvertise`)
  t.after(() => source.close())
  const [{ error, delay }] = await within(once(source, "error"), "error")
  assert.deepEqual([error.type, error.status, delay, source.readyState], [type, 403, undefined, 2])
})

test("A page that is allowed connects, and asks nothing", async (t) => {
  const settings = ["--allowed-origins", "https://app.example.com"]
  const gateway = await Gateway.start(t, await Broker.start(t), { settings })
  const page = pageOf(t, "https://app.example.com")
  await within(connect(t, gateway.url, { WebSocket: page.WebSocket }).online(), "connection")
  assert.deepEqual(page.fetched, [])
})

test("A page asks once for each failed attempt, and continues after other answers", async (t) => {
  const page = pageOf(t, "https://app.example.com")
  const title = "A problem"
  for (const [problem, token] of [
    [{ type: "urn:coaty-gateway:problem:unauthorized", title, status: 401 }],
    [{ type: "urn:coaty-gateway:problem:forbidden", title, status: 403 }],
    // The gateway checks the host of requests without a token only.
    [{ type: "urn:coaty-gateway:problem:host-not-allowed", title, status: 421 }, "coaty_token"],
  ]) {
    const server = await refusingServer(t, problem)
    const client = connect(t, `${server.url}/coaty`, { token })
    page.fetched.length = 0
    await failures(client, 3)
    assert.equal(client.state, "connecting", problem.type)
    client.close()
    // Not the requests at the server: after 421, `fetch` tries once more.
    assert.deepEqual([page.fetched.length, server.handshakes], [3, 3], problem.type)
    assert.ok(page.fetched.every((url) => url === `${server.url}/coaty/v1/access`))
  }
})

test("A client under a host that is not allowed is closed with the problem, if it has no token", async (t) => {
  const problem = { type: "urn:coaty-gateway:problem:host-not-allowed", title: "Host not allowed", status: 421 }
  const server = await refusingServer(t, problem)
  pageOf(t, "https://app.example.com")
  const client = connect(t, server.url)
  await assert.rejects(within(client.online(), "refusal"), { type: problem.type, status: 421 })
  assert.equal(server.handshakes, 1)
})

test("A client that is no page, or is offline, does not ask", async (t) => {
  const problem = { type, title: "Origin not allowed", status: 403 }
  const server = await refusingServer(t, problem)
  const client = connect(t, server.url)
  await failures(client, 2)
  client.close()
  pageOf(t, "https://app.example.com")
  const { navigator } = globalThis
  Object.defineProperty(globalThis, "navigator", { value: { onLine: false }, configurable: true, writable: true })
  t.after(() => Object.defineProperty(globalThis, "navigator", { value: navigator, configurable: true, writable: true }))
  const offline = connect(t, server.url)
  await failures(offline, 2)
  assert.deepEqual([server.requests, offline.state], [[], "connecting"])
})

test("The question is bounded by the timeout of an attempt, and ends with the client", async (t) => {
  const server = await refusingServer(t, { type, title: "Origin not allowed", status: 403 })
  pageOf(t, "https://app.example.com")
  const signals = []
  globalThis.fetch = (_, { signal }) => {
    signals.push(signal)
    return new Promise(() => {})
  }
  const client = connect(t, server.url, { attemptTimeout: 50 })
  await failures(client, 1)
  while (!signals[0]?.aborted) await sleep(5)
  assert.equal(signals.length, 1)
  await failures(client, 1)
  client.close()
  assert.ok(signals.length === 2 && signals[1].aborted)
  assert.equal(client.state, "closed")
})
