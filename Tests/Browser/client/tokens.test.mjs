// Tokens on WebSockets, and tickets.

import assert from "node:assert/strict"
import { createHash, generateKeyPairSync, sign } from "node:crypto"
import { once } from "node:events"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { createServer } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { test } from "node:test"
import { Broker, connect, Gateway, next, object, scriptedGateway, state, ticketUrl, within } from "./support.mjs"

const unauthorized = { type: "urn:coaty-gateway:problem:unauthorized", title: "Unauthorized", status: 401, detail: "Wrong token." }
const refused = { type: "urn:coaty-client:problem:refused", status: 0 }

/** Fails if the gateway receives a frame within 100 ms. Returns the frame that it receives later. */
async function expectSilence(gateway) {
  const frame = gateway.received()
  const silence = new Promise((resolve) => setTimeout(resolve, 100, "silence"))
  assert.equal(await Promise.race([frame, silence]), "silence")
  return frame
}

test("The client sends its token first, and other frames after the ok", async (t) => {
  const gateway = await scriptedGateway(t)
  const client = connect(t, gateway.url, { token: "coaty_secret" })
  client.subscribe({ event: "deadvertise" })
  const identity = client.identify("Kiosk")
  const first = await gateway.received()
  assert.deepEqual(first, { op: "authenticate", id: first.id, token: "coaty_secret" })
  const second = expectSilence(gateway)
  await new Promise((resolve) => setTimeout(resolve, 200))
  assert.equal(client.state, "connecting")
  gateway.send({ op: "ok", id: first.id })
  const identify = await second
  assert.equal(identify.op, "identify")
  gateway.send({ op: "ok", id: identify.id, identity: { objectId: "1", name: "Kiosk" } })
  assert.equal((await gateway.received()).op, "subscribe")
  await within(identity, "identity")
  await state(client, "online")
})

test("The token function is called for each connection, and may return no token", async (t) => {
  const gateway = await scriptedGateway(t)
  const tokens = ["one", undefined, "two"]
  const client = connect(t, gateway.url, { token: async () => tokens.shift() })
  const subscription = client.subscribe({ event: "deadvertise" })
  const cut = () => gateway.server.clients.forEach((socket) => socket.terminate())

  const first = await gateway.received()
  assert.equal(first.token, "one")
  gateway.send({ op: "ok", id: first.id })
  const { id } = await gateway.received()
  cut()
  assert.deepEqual(await gateway.received(), { op: "subscribe", event: "deadvertise", id })
  cut()
  const last = await gateway.received()
  assert.equal(last.token, "two")
  gateway.send({ op: "ok", id: last.id })
  assert.deepEqual(await gateway.received(), { op: "subscribe", event: "deadvertise", id })
  assert.equal(subscription.reason, undefined)
})

test("A token function that fails is called again", async (t) => {
  const gateway = await scriptedGateway(t)
  const reasons = []
  let calls = 0
  const token = () => {
    calls += 1
    if (calls === 1) throw new Error("no network")
    return calls === 2 ? 7 : "coaty_secret"
  }
  const client = connect(t, gateway.url, { token })
  client.addEventListener("statechange", ({ detail }) => reasons.push(detail.reason))
  const frame = await gateway.received()
  assert.equal(frame.token, "coaty_secret")
  assert.deepEqual(reasons, ["there is no token: no network", "there is no token: A token is a string"])
})

test("A client that is closed while it waits for a token does not connect", async (t) => {
  const gateway = await scriptedGateway(t)
  let provide
  const client = connect(t, gateway.url, { token: () => new Promise((resolve) => { provide = resolve }) })
  client.close()
  provide("late")
  await new Promise((resolve) => setTimeout(resolve, 100))
  assert.equal(gateway.server.clients.size, 0)
})

for (const problem of [unauthorized, { ...unauthorized, status: 429, detail: "Too many attempts." }]) {
  test(`The client ends after the status ${problem.status}`, async (t) => {
    const gateway = await scriptedGateway(t)
    const client = connect(t, gateway.url, { token: "wrong" })
    const subscription = client.subscribe({ event: "deadvertise" })
    const identity = client.identify("Kiosk")
    const { id } = await gateway.received()
    gateway.send({ op: "error", id, ...problem })
    await assert.rejects(within(client.online(), "end"), { ...refused, message: new RegExp(problem.detail) })
    await assert.rejects(within(subscription.ready, "end"), refused)
    await assert.rejects(within(identity, "end"), refused)
    assert.equal(client.state, "closed")
    await new Promise((resolve) => setTimeout(resolve, 500))
    assert.equal(gateway.server.clients.size, 0)
  })
}

test("The client reconnects if the gateway can't check a token", async (t) => {
  const gateway = await scriptedGateway(t)
  const client = connect(t, gateway.url, { token: "coaty_secret" })
  const { id } = await gateway.received()
  gateway.send({ op: "error", id, type: "t", title: "Busy", status: 503 })
  assert.equal((await gateway.received()).token, "coaty_secret")
  assert.equal(client.state, "connecting")
})

for (const code of [4502, 4503]) {
  test(`The client ends after the close code ${code}`, async (t) => {
    const gateway = await scriptedGateway(t)
    const client = connect(t, gateway.url, { token: "coaty_secret" })
    await gateway.received()
    for (const socket of gateway.server.clients) socket.close(code, "no access")
    await assert.rejects(within(client.online(), "end"), { ...refused, message: /no access/ })
    assert.equal(client.state, "closed")
  })
}

test("A new token is sent on the open connection, and used for later ones", async (t) => {
  const gateway = await scriptedGateway(t)
  const client = connect(t, gateway.url, { token: "one" })
  gateway.send({ op: "ok", id: (await gateway.received()).id })
  await state(client, "online")

  const denied = client.authenticate("wrong")
  const frame = await gateway.received()
  assert.equal(frame.token, "wrong")
  gateway.send({ op: "error", id: frame.id, ...unauthorized })
  await assert.rejects(within(denied, "answer"), { name: "GatewayError", status: 401 })
  assert.equal(client.state, "online")

  const renewed = client.authenticate(async () => "two")
  gateway.send({ op: "ok", id: (await gateway.received()).id })
  await within(renewed, "answer")
  await assert.rejects(client.authenticate(() => undefined), TypeError)
  for (const socket of gateway.server.clients) socket.terminate()
  assert.equal((await gateway.received()).token, "two")
})

test("A new token is used at once while the client connects", async (t) => {
  const gateway = await scriptedGateway(t)
  const client = connect(t, gateway.url, { token: "one" })
  assert.equal((await gateway.received()).token, "one")
  const authenticated = client.authenticate("two")
  const frame = await gateway.received()
  assert.equal(frame.token, "two")
  gateway.send({ op: "ok", id: frame.id })
  await within(authenticated, "ok")
  assert.equal(client.state, "online")
  client.close()
  await assert.rejects(client.authenticate("three"), { type: "urn:coaty-client:problem:closed" })
})

test("A token that expires is renewed on the open connection", async (t) => {
  const gateway = await scriptedGateway(t)
  const tokens = ["one", "two", "three"]
  const client = connect(t, gateway.url, { token: async () => tokens.shift() })
  client.subscribe({ event: "deadvertise" })
  const first = await gateway.received()
  gateway.send({ op: "ok", id: first.id, expires: 1, validFor: 2600 })
  assert.equal((await gateway.received()).op, "subscribe")
  const accepted = Date.now()
  // The client renews the token after 80 % of its 2600 ms.
  const second = await gateway.received()
  assert.deepEqual(second, { op: "authenticate", id: second.id, token: "two" })
  assert.ok(Date.now() - accepted >= 1900 && Date.now() - accepted < 2600)
  assert.equal(gateway.server.clients.size, 1)
  // The new token is refused: the connection keeps the old one, and the client tries again.
  gateway.send({ op: "error", id: second.id, ...unauthorized })
  const third = await gateway.received()
  assert.equal(third.token, "three")
  assert.equal(client.state, "online")
  // The third token does not expire.
  gateway.send({ op: "ok", id: third.id })
  const later = expectSilence(gateway)
  await new Promise((resolve) => setTimeout(resolve, 2500))
  assert.equal(client.state, "online")
  for (const socket of gateway.server.clients) socket.terminate()
  await later
})

test("A token given as a string is not renewed", async (t) => {
  const gateway = await scriptedGateway(t)
  const client = connect(t, gateway.url, { token: "one" })
  gateway.send({ op: "ok", id: (await gateway.received()).id, expires: 1, validFor: 100 })
  await state(client, "online")
  const frame = gateway.received()
  assert.equal(await Promise.race([frame, new Promise((resolve) => setTimeout(resolve, 2500, "silence"))]), "silence")
  for (const socket of gateway.server.clients) socket.terminate()
  await frame
})

test("The client connects with a new token after the close code 4002", async (t) => {
  const gateway = await scriptedGateway(t)
  const tokens = ["one", "two"]
  const client = connect(t, gateway.url, { token: () => tokens.shift() })
  gateway.send({ op: "ok", id: (await gateway.received()).id })
  await state(client, "online")
  for (const socket of gateway.server.clients) socket.close(4002, "token expired")
  assert.equal((await gateway.received()).token, "two")
  assert.equal(client.state, "connecting")
})

test("A denied frame names the grant that is missing", async (t) => {
  const gateway = await scriptedGateway(t)
  const client = connect(t, gateway.url)
  await within(client.online(), "connection")
  const publication = client.publish({ event: "deadvertise", data: {} })
  const missing = '- publish: ["deadvertise"]\n'
  gateway.send({ op: "error", id: (await gateway.received()).id, type: "t", title: "Forbidden", status: 403, missing })
  await assert.rejects(within(publication, "answer"), { name: "GatewayError", missing })
})

test("Withheld responses are reported", async (t) => {
  const gateway = await scriptedGateway(t)
  const client = connect(t, gateway.url)
  await within(client.online(), "connection")
  const responses = client.request({ event: "discover", data: {} })
  assert.equal(responses.filtered, false)
  gateway.send({ op: "done", id: (await gateway.received()).id, reason: "timeout", filtered: true })
  await within(responses.all(), "end")
  assert.equal(responses.filtered, true)
})

// Tickets

/** Starts a server that issues the tickets 1, 2, …. `answer` replaces its answer. */
async function ticketServer(t) {
  const tickets = { requests: [], answer: undefined }
  const server = createServer((request, response) => {
    const { method, url, headers } = request
    tickets.requests.push(`${method} ${url} ${headers.authorization} ${headers["content-type"]}`)
    const { status = 200, body = { ticket: String(tickets.requests.length), validFor: 30_000 } } = tickets.answer ?? {}
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body))
  })
  await once(server.listen(0, "127.0.0.1"), "listening")
  t.after(() => server.close())
  tickets.url = `http://127.0.0.1:${server.address().port}`
  return tickets
}

test("A ticket replaces the token in the URL of a stream", async (t) => {
  const tickets = await ticketServer(t)
  assert.equal(await ticketUrl(`${tickets.url}/v1/sse/channel?channelId=a%20b`, "s"), `${tickets.url}/v1/sse/channel?channelId=a+b&ticket=1`)
  const socket = tickets.url.replace("http", "ws") + "/below/v1/ws/deadvertise"
  assert.equal(await ticketUrl(socket, async () => "s"), `${socket}?ticket=2`)
  assert.deepEqual(tickets.requests, [
    "POST /v1/tickets Bearer s application/json",
    "POST /below/v1/tickets Bearer s application/json",
  ])
  assert.equal(await ticketUrl(socket), socket)
  await assert.rejects(ticketUrl(`${tickets.url}/v1/objects`, "s"), TypeError)
  tickets.answer = { status: 401, body: unauthorized }
  await assert.rejects(ticketUrl(socket, "s"), { name: "GatewayError", status: 401, message: "Wrong token." })
})

// The real gateway

/** Returns a configuration in which each token has the role of the same name. */
const access = (...names) => JSON.stringify({
  access: {
    tokens: names.map((name) => ({ name, sha256: createHash("sha256").update(`coaty_${name}`).digest("hex"), roles: [name] })),
    roles: {
      reader: [{ observe: ["channel"], channels: ["news"] }],
      writer: [{ publish: ["channel"], channels: ["*"] }],
    },
  },
})

test("The gateway applies the roles of each token, until the token is removed", async (t) => {
  const gateway = await Gateway.start(t, await Broker.start(t), { configuration: access("reader", "writer") })
  const wrong = connect(t, gateway.url, { token: "coaty_nobody" })
  await assert.rejects(within(wrong.online(), "end"), refused)
  const reader = connect(t, gateway.url, { token: async () => "coaty_reader" })
  const writer = connect(t, gateway.url, { token: "coaty_writer" })
  const news = reader.subscribe({ event: "channel", channelId: "news" })
  await within(news.ready, "subscription")
  await within(writer.online(), "connection")
  const publication = { event: "channel", channelId: "news", data: { object: object() } }
  await within(writer.publish(publication), "answer")
  const iterator = news[Symbol.asyncIterator]()
  assert.equal((await next(iterator)).data.object.objectId, publication.data.object.objectId)
  await assert.rejects(within(reader.publish(publication), "answer"), { status: 403, missing: /publish: \["channel"\]/ })
  await within(reader.authenticate("coaty_reader"), "answer")
  await assert.rejects(within(reader.authenticate("coaty_writer"), "answer"), { status: 403 })

  await gateway.reload(access("writer"))
  await assert.rejects(within(iterator.next(), "end"), { ...refused, message: /access removed/ })
  assert.equal(reader.state, "closed")
  await within(writer.publish(publication), "answer")
})

test("The gateway accepts a ticket once", async (t) => {
  const gateway = await Gateway.start(t, await Broker.start(t), { environment: { COATY_GATEWAY_TOKEN: "coaty_admin-secret" } })
  const stream = `${gateway.url}/v1/sse/deadvertise`
  const url = await ticketUrl(stream, "coaty_admin-secret")
  const statusOf = async (address) => {
    const abortion = new AbortController()
    const { status } = await fetch(address, { signal: abortion.signal })
    abortion.abort()
    return status
  }
  assert.equal(await statusOf(stream), 401)
  assert.equal(await statusOf(url), 200)
  assert.equal(await statusOf(url), 401)
  await assert.rejects(ticketUrl(stream, "coaty_wrong"), { name: "GatewayError", status: 401 })
})

test("The client renews the token of an identity provider without a gap", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "coaty-keys-"))
  t.after(() => rm(folder, { recursive: true }))
  const { publicKey, privateKey } = generateKeyPairSync("ed25519")
  await writeFile(join(folder, "keys.pem"), publicKey.export({ type: "spki", format: "pem" }))
  const configuration = JSON.stringify({
    access: {
      jwt: { issuer: "https://idp.example", audience: "gateway", keys: join(folder, "keys.pem"), roles: "claims.roles" },
      roles: { user: [{ observe: ["channel"], channels: ["news"] }, { publish: ["channel"], channels: ["news"] }] },
    },
  })
  const gateway = await Gateway.start(t, await Broker.start(t), { configuration })
  const encode = (value) => Buffer.from(JSON.stringify(value)).toString("base64url")
  let issued = 0
  // The gateway allows 30 seconds of clock skew, so the first token is valid for four seconds.
  const token = () => {
    issued += 1
    const exp = Date.now() / 1000 + (issued === 1 ? -26 : 600)
    const claims = { iss: "https://idp.example", aud: "gateway", sub: "ann", exp, jti: String(issued), roles: ["user"] }
    const text = `${encode({ alg: "EdDSA" })}.${encode(claims)}`
    return `${text}.${sign(null, Buffer.from(text), privateKey).toString("base64url")}`
  }
  const client = connect(t, gateway.url, { token })
  const news = client.subscribe({ event: "channel", channelId: "news" })
  await within(news.ready, "subscription")
  const begin = Date.now()
  const changes = []
  client.addEventListener("statechange", ({ detail }) => changes.push(detail))
  const iterator = news[Symbol.asyncIterator]()
  for (let count = 0; Date.now() - begin < 5500; count += 1) {
    const publication = { event: "channel", channelId: "news", data: { object: object() } }
    await within(client.publish(publication), "answer")
    const frame = await next(iterator)
    assert.equal(frame.op, "event")
    assert.equal(frame.data.object.objectId, publication.data.object.objectId)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  assert.equal(issued, 2)
  assert.deepEqual(changes, [])
})
