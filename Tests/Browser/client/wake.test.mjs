// Connections of clients whose network, page or process comes back, and tokens that come late.

import assert from "node:assert/strict"
import { spawn } from "node:child_process"
import { generateKeyPairSync, sign } from "node:crypto"
import { once } from "node:events"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { createServer } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { test } from "node:test"
import { fileURLToPath } from "node:url"
import { Broker, connect, fakePage, Gateway, object, Proxy, scriptedGateway, state, ticketUrl, within } from "./support.mjs"

const signs = {
  online: ({ window }) => window.dispatchEvent(new Event("online")),
  pageshow: ({ window }) => window.dispatchEvent(new Event("pageshow")),
  visibilitychange: ({ document }) => document.dispatchEvent(new Event("visibilitychange")),
}

for (const [name, dispatch] of Object.entries(signs)) {
  test(`A dead connection is noticed within seconds after ${name}`, async (t) => {
    const page = fakePage(t)
    const gateway = await Gateway.start(t, await Broker.start(t))
    const proxy = await Proxy.start(t, gateway.port)
    const client = connect(t, proxy.url)
    await within(client.online(), "connection")
    proxy.goDead()
    const begin = performance.now()
    const changed = once(client, "statechange")
    dispatch(page)
    const [{ detail }] = await within(changed, "end of the connection")
    assert.equal(detail.reason, "the gateway does not answer")
    const passed = performance.now() - begin
    assert.ok(passed >= 4_900 && passed < 10_000, `${passed}`)
    await state(client, "online")
  })
}

test("A healthy connection stays when the network or the page is back, also behind many messages", async (t) => {
  const page = fakePage(t)
  const gateway = await scriptedGateway(t)
  // The reply to a ping may take half a second.
  const client = connect(t, gateway.url, { silenceTimeout: 2_000 })
  await within(client.online(), "connection")
  const changes = []
  client.addEventListener("statechange", ({ detail }) => changes.push(detail))
  for (const dispatch of Object.values(signs)) dispatch(page)
  const { op, id } = await gateway.received()
  assert.equal(op, "ping")
  // What was queued before the reply arrives slowly.
  for (let number = 0; number < 6; number += 1) {
    gateway.send({ op: "event", id: "9" })
    await new Promise((resolve) => setTimeout(resolve, 300))
  }
  gateway.send({ op: "pong", id })
  // One ping for all three.
  const publication = client.publish({ event: "deadvertise", data: { objectIds: [] } })
  const frames = []
  do { frames.push(await gateway.received()) } while (frames.at(-1).op !== "publish")
  assert.deepEqual(frames.map((frame) => frame.op), ["publish"])
  gateway.send({ op: "ok", id: frames[0].id, deferred: false })
  await within(publication, "reply")
  page.document.visibilityState = "hidden"
  signs.visibilitychange(page)
  assert.deepEqual(changes, [])
  client.close()
  signs.online(page)
})

test("A token function that never settles is called again", async (t) => {
  const gateway = await scriptedGateway(t)
  let calls = 0
  const client = connect(t, gateway.url, {
    token: () => ++calls < 3 ? new Promise(() => {}) : "coaty_late",
    attemptTimeout: 300,
  })
  const [{ detail }] = await within(once(client, "statechange"), "end of the attempt")
  assert.equal(detail.state, "connecting")
  assert.match(detail.reason, /token function did not answer within 300 ms/)
  const { id, token } = await gateway.received()
  assert.deepEqual([calls, token], [3, "coaty_late"])
  gateway.send({ op: "ok", id })
  await state(client, "online")
  await assert.rejects(client.authenticate(() => new Promise(() => {})), { type: "urn:coaty-client:problem:timeout" })
  assert.equal(client.state, "online")
})

test("A request for a ticket that never settles fails", async (t) => {
  const server = createServer(() => {})
  await once(server.listen(0, "127.0.0.1"), "listening")
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  const url = `http://127.0.0.1:${server.address().port}/v1/sse/deadvertise`
  await assert.rejects(within(ticketUrl(url, "coaty_secret"), "refusal"), { type: "urn:coaty-client:problem:timeout" })
})

/** Starts a gateway with an identity provider, and returns a function that makes tokens. */
async function identityProvider(t) {
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
  const token = (claims) => {
    const exp = Date.now() / 1000 + 600
    const claimed = { iss: "https://idp.example", aud: "gateway", sub: "ann", exp, roles: ["user"], ...claims }
    const text = `${encode({ alg: "EdDSA" })}.${encode(claimed)}`
    return `${text}.${sign(null, Buffer.from(text), privateKey).toString("base64url")}`
  }
  return { gateway, token }
}

test("A client whose token is not valid yet connects when it is", async (t) => {
  const { gateway, token } = await identityProvider(t)
  // The gateway allows 30 seconds of clock skew.
  const nbf = Date.now() / 1000 + 34
  let calls = 0
  const early = token({ nbf })
  const answer = await fetch(`${gateway.url}/v1/access`, { headers: { authorization: `Bearer ${early}` } })
  const problem = await answer.json()
  assert.deepEqual([answer.status, problem.type], [401, "urn:coaty-gateway:problem:token-not-yet-valid"])
  const wait = Number(answer.headers.get("retry-after"))
  assert.ok(wait >= 1 && wait <= 4 && problem.retryAfter === wait * 1000)
  const client = connect(t, gateway.url, { token: () => { calls += 1; return early } })
  const kept = connect(t, gateway.url, { token: early })
  const [{ detail }] = await within(once(client, "statechange"), "refusal")
  assert.equal(detail.state, "connecting")
  assert.match(detail.reason, /becomes valid in [1-4] seconds/)
  assert.ok(detail.delay <= 4_000)
  await within(Promise.all([client.online(), kept.online()]), "connection")
  assert.ok(Date.now() / 1000 >= nbf - 30 && calls >= 2)
})

/** The program of a client that waits for a response. With `block`, it does nothing for three seconds after its first ping. */
const program = `
  import { createRequire } from "node:module"
  import { CoatyClient } from ${JSON.stringify(new URL("../../../Sources/CoatyGateway/Console/client.js", import.meta.url).href)}
  const { WebSocket } = createRequire(${JSON.stringify(fileURLToPath(import.meta.url))})("ws")
  const [url, block] = process.argv.slice(1)
  const sleep = () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, Number(block))
  class Blocking extends WebSocket {
    send(text) {
      super.send(text)
      // From here, timers are next.
      if (block && JSON.parse(text).op === "ping") setImmediate(sleep)
    }
  }
  const client = new CoatyClient(url, { WebSocket: Blocking, silenceTimeout: 2_000 })
  const print = (value) => console.log(JSON.stringify(value))
  await client.online()
  client.addEventListener("statechange", ({ detail }) => print(detail))
  print(await client.request({ event: "call", operation: "com.example.add", data: {} }, { limit: 1 }).all())
`

for (const [how, block] of [["a suspend by SIGSTOP", false], ["a blocked event loop", true]]) {
  test(`After ${how}, waiting messages are read before an overdue timer closes the connection`, async (t) => {
    // Longer than the time until the next check of the connection.
    const suspension = Number(process.env.SUSPENSION ?? 3_000)
    const gateway = await scriptedGateway(t)
    const options = ["--input-type=module", "--eval", program, gateway.url, ...(block ? [suspension] : [])]
    const child = spawn(process.execPath, options.map(String), { stdio: ["ignore", "pipe", "inherit"] })
    t.after(() => child.kill("SIGKILL"))
    const line = once(createInterface({ input: child.stdout }), "line")
    const { op, id } = await gateway.received()
    assert.equal(op, "request")
    gateway.send({ op: "ok", id })
    // The client has been silent, and gives the connection up at its next check.
    const ping = await gateway.received()
    assert.equal(ping.op, "ping")
    if (block) await new Promise((resolve) => setTimeout(resolve, 100))
    else child.kill("SIGSTOP")
    gateway.send({ op: "pong", id: ping.id })
    gateway.send({ op: "response", id, event: "return", sourceId: "s", ms: 1, data: { result: 3 } })
    gateway.send({ op: "done", id, reason: "limit" })
    if (!block) {
      await new Promise((resolve) => setTimeout(resolve, suspension))
      child.kill("SIGCONT")
    }
    const { reason, responses } = JSON.parse((await within(line, "line"))[0])
    assert.deepEqual([reason, responses?.map(({ data }) => data.result)], ["limit", [3]])
  })
}
