// CoatyEventSource: what ends a stream for good, what passes, and how a dead connection is noticed.

import assert from "node:assert/strict"
import { createHash } from "node:crypto"
import { once } from "node:events"
import { createServer, request as send } from "node:http"
import { test } from "node:test"
import { Broker, CoatyEventSource, fakePage, Gateway, object, Proxy, scriptedServer, within } from "./support.mjs"

const path = "/v1/sse/channel?channelId=news"
const prefix = "urn:coaty-gateway:problem:"
const notYetValid = { type: `${prefix}token-not-yet-valid`, title: "Token not yet valid", status: 401 }

/** Opens a stream, closes it after the test, and records what it dispatches: each event as a line, and all errors. */
function open(t, url, options) {
  const source = new CoatyEventSource(url, options)
  t.after(() => source.close())
  const seen = { lines: [], errors: [] }
  for (const type of ["open", "message", "ok", "event", "gap", "done", "notice", "problem", "error"]) {
    source.addEventListener(type, ({ data, error, delay }) => {
      seen.lines.push(data === undefined ? type : `${type} ${data}`)
      if (type === "error") seen.errors.push({ error, delay, readyState: source.readyState })
      source.dispatchEvent(new Event("seen"))
    })
  }
  const until = async (isWanted, what) => {
    while (!isWanted()) await within(once(source, "seen"), what)
  }
  return {
    source,
    ...seen,
    line: (beginning, number = 1) => until(() => seen.lines.filter((line) => line.startsWith(beginning)).length >= number, beginning),
    error: async (number = 1) => {
      await until(() => seen.errors.length >= number, "error")
      return seen.errors[number - 1]
    },
  }
}

/** Begins an event stream. */
function begin(response, text = "event: ok\ndata: {}\n\n") {
  response.writeHead(200, { "content-type": "text/event-stream" })
  response.write(text)
}

function refuse(response, status, problem, headers = {}) {
  response.writeHead(status, problem ? { "content-type": "application/problem+json", ...headers } : headers)
  response.end(problem ? JSON.stringify(problem) : "<h1>Bad gateway</h1>")
}

/** Starts a reverse proxy that answers with 502 while its target does not listen. */
async function reverseProxy(t, port) {
  const server = createServer((request, response) => {
    const { method, url, headers } = request
    const forwarded = send({ port, host: "127.0.0.1", method, path: url, headers }, (answer) => {
      response.writeHead(answer.statusCode, answer.headers)
      answer.pipe(response)
      answer.on("error", () => response.destroy())
    })
    forwarded.on("error", () => response.headersSent ? response.destroy() : refuse(response, 502))
    response.on("close", () => forwarded.destroy())
    request.pipe(forwarded)
  })
  await once(server.listen(0, "127.0.0.1"), "listening")
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  return `http://127.0.0.1:${server.address().port}`
}

const secret = "coaty_reader"
const restricted = JSON.stringify({
  access: {
    tokens: [{ name: "reader", sha256: createHash("sha256").update(secret).digest("hex"), roles: ["reader"] }],
    anonymous: ["writer"],
    roles: {
      reader: [{ observe: ["channel"], channels: ["news"] }],
      writer: [{ publish: ["channel"], channels: ["*"] }],
    },
  },
})

for (const [name, configuration, options] of [["without a token", "", {}], ["with a token", restricted, { token: () => secret }]]) {
  test(`A stream ${name} survives the 502 of a proxy while the gateway restarts`, async (t) => {
    const gateway = await Gateway.start(t, await Broker.start(t), { configuration })
    const stream = open(t, (await reverseProxy(t, gateway.port)) + path, options)
    await stream.line("ok ")
    await gateway.kill()
    await stream.error(1)
    const { error, readyState } = await stream.error(2)
    assert.deepEqual([error.name, error.status, error.title, readyState], ["GatewayError", 502, "Bad Gateway", 0])
    assert.equal(stream.source.response.status, 502)
    await gateway.start(configuration)
    await stream.line("ok ", 2)
    // The new process does not know the cursor.
    await stream.line('gap {"op":"gap","dropped":null')
    assert.equal(stream.source.readyState, 1)
    await gateway.post("/v1/channel/news", { object: object({ number: 1 }) })
    await stream.line("event ")
  })
}

test("A stream survives the 503 of a paused gateway", async (t) => {
  const gateway = await Gateway.start(t, await Broker.start(t))
  await gateway.post("/v1/admin/pause", {})
  const stream = open(t, gateway.url + path)
  const { error, delay, readyState } = await stream.error()
  assert.deepEqual([error.status, error.type, readyState], [503, `${prefix}paused`, 0])
  assert.ok(error.retryAfter >= 1000 && delay >= error.retryAfter)
  assert.equal(stream.source.response.headers.get("retry-after"), String(error.retryAfter / 1000))
  await gateway.post("/v1/admin/resume", {})
  await stream.line("ok ")
  assert.equal(stream.source.response.status, 200)
})

test("A stream resumes after its last event", async (t) => {
  const gateway = await Gateway.start(t, await Broker.start(t))
  const proxy = await Proxy.start(t, gateway.port)
  const stream = open(t, proxy.url + path)
  await stream.line("ok ")
  for (const number of [1, 2, 3]) {
    await gateway.post("/v1/channel/news", { object: object({ number }) })
    const wanted = () => stream.lines.some((line) => line.includes(`"number":${number}`))
    while (!wanted()) await within(once(stream.source, "seen"), "event")
    proxy.cut()
    await stream.error(number)
  }
  assert.ok(!stream.lines.some((line) => line.startsWith("gap")), `${stream.lines}`)
})

test("A stream asks again after Retry-After, in seconds, as a date, and in a problem", async (t) => {
  const server = await scriptedServer(t)
  const stream = open(t, server.url + path)
  const limited = { type: `${prefix}rate-limited`, title: "Rate limited", status: 429, retryAfter: 1300 }
  const refusals = [
    [503, undefined, () => "1", 1000],
    [429, limited, () => "2", 1300],
    // Without its milliseconds.
    [502, undefined, () => new Date(Date.now() + 5_000).toUTCString(), 3_500],
  ]
  let last
  for (const [index, [status, problem, retryAfter, least]] of refusals.entries()) {
    const { response } = await server.received()
    if (index > 0) assert.ok(performance.now() - last.begin >= last.delay - 20)
    refuse(response, status, problem, { "retry-after": retryAfter() })
    const { error, delay, readyState } = await stream.error(index + 1)
    last = { begin: performance.now(), delay }
    assert.deepEqual([error.status, readyState], [status, 0])
    assert.ok(delay >= least && delay <= least + 1_500, `${delay}`)
  }
  begin((await server.received()).response)
  await stream.line("ok {}")
})

for (const status of [204, 400, 403, 404, 409]) {
  test(`A stream ends after the status ${status}, and reports it`, async (t) => {
    const server = await scriptedServer(t)
    const stream = open(t, server.url + path, { token: () => secret })
    const { response } = await server.received()
    const problem = { type: `${prefix}test`, title: "Test", detail: "No.", parameter: "channelId" }
    if (status === 204) response.writeHead(204).end()
    else refuse(response, status, problem, { "x-request-id": "7" })
    const { error, delay, readyState } = await stream.error()
    assert.deepEqual([error.status, delay, readyState], [status, undefined, 2])
    if (status === 204) return
    assert.deepEqual([error.type, error.message, error.parameter], [problem.type, "No.", "channelId"])
    assert.equal(stream.source.response.headers.get("x-request-id"), "7")
  })
}

test("A stream whose `problem` is lasting is not opened again", async (t) => {
  const server = await scriptedServer(t)
  const stream = open(t, server.url + path)
  const { response } = await server.received()
  begin(response)
  response.end('event: problem\ndata: {"op":"error","type":"t","title":"Refused","status":403}\n\n')
  const { error, readyState } = await stream.error()
  assert.deepEqual([error.title, error.status, readyState], ["Refused", 403, 2])
})

test("A refused token is asked for once more, and a token that was accepted in between resets that", async (t) => {
  const server = await scriptedServer(t)
  const tokens = ["a", "b", "c", "d"]
  const stream = open(t, server.url + path, { token: async () => tokens.shift() })
  const next = async (token) => {
    const { request, response } = await server.received()
    assert.equal(request.headers.authorization, `Bearer ${token}`)
    return response
  }
  const unauthorized = { type: `${prefix}unauthorized`, title: "Unauthorized", status: 401 }
  refuse(await next("a"), 401, unauthorized)
  const second = await next("b")
  begin(second)
  await stream.line("ok {}")
  second.end('event: problem\ndata: {"op":"error","type":"urn:coaty-gateway:problem:token-expired","title":"Expired","status":401}\n\n')
  refuse(await next("c"), 401, unauthorized)
  const { error, readyState } = await stream.error(3)
  assert.deepEqual([error.status, readyState], [401, 2])
  assert.deepEqual(tokens, ["d"])

  const other = open(t, server.url + path, { token: "text" })
  refuse(await next("text"), 401, unauthorized)
  assert.equal((await other.error()).readyState, 2)
})

test("A token that is not valid yet is asked for again", async (t) => {
  const server = await scriptedServer(t)
  let calls = 0
  const stream = open(t, server.url + path, { token: () => `t${++calls}` })
  for (let number = 1; number <= 3; number += 1) {
    refuse((await server.received()).response, 401, { ...notYetValid, retryAfter: 100 })
    const { error, readyState } = await stream.error(number)
    assert.deepEqual([error.title, readyState], ["Token not yet valid", 0])
  }
  const { request, response } = await server.received()
  assert.equal(request.headers.authorization, "Bearer t4")
  begin(response)
  await stream.line("ok {}")
})

test("A token function that never settles, and a server that never answers, are given up", async (t) => {
  const server = await scriptedServer(t)
  let calls = 0
  const token = () => ++calls === 1 ? new Promise(() => {}) : "coaty_late"
  const stream = open(t, server.url + path, { token, attemptTimeout: 300 })
  const first = await stream.error(1)
  assert.deepEqual([first.error.type, first.readyState], ["urn:coaty-client:problem:timeout", 0])
  assert.match(first.error.message, /token function/)
  const { response } = await server.received()
  const second = await stream.error(2)
  assert.equal(second.error.type, "urn:coaty-client:problem:timeout")
  // The attempt is not left open.
  if (!response.closed) await within(once(response, "close"), "end of the attempt")
  begin((await server.received()).response)
  await stream.line("ok {}")
})

test("An answer that is no event stream, such as a login page, is retried", async (t) => {
  const server = await scriptedServer(t)
  const stream = open(t, server.url + path)
  const { response } = await server.received()
  response.writeHead(200, { "content-type": "text/html" }).end("<h1>Sign in</h1>")
  const { error, readyState } = await stream.error()
  assert.deepEqual([error.type, readyState], ["urn:coaty-client:problem:no-stream", 0])
  begin((await server.received()).response)
  await stream.line("ok {}")
})

test("A stream that is silent is given up, and heartbeats keep it", async (t) => {
  const server = await scriptedServer(t)
  const stream = open(t, server.url + path, { silenceTimeout: 1_500 })
  const { response } = await server.received()
  begin(response)
  await stream.line("ok {}")
  for (let beat = 0; beat < 12; beat += 1) {
    await new Promise((resolve) => setTimeout(resolve, 200))
    response.write(":\n\n")
  }
  assert.deepEqual(stream.errors, [])
  const begun = performance.now()
  const { error, readyState } = await stream.error()
  assert.ok(performance.now() - begun >= 1_300)
  assert.deepEqual([error.type, readyState], ["urn:coaty-client:problem:disconnected", 0])
  if (!response.closed) await within(once(response, "close"), "end of the connection")
  begin((await server.received()).response)
  await stream.line("ok {}", 2)
})

test("A half-open stream is noticed soon after the browser reports the network", async (t) => {
  const { window } = fakePage(t)
  const server = await scriptedServer(t)
  // At once, because it has been silent for longer than the time between two heartbeats.
  const stream = open(t, server.url + path, { silenceTimeout: 3_000 })
  begin((await server.received()).response)
  await stream.line("ok {}")
  await new Promise((resolve) => setTimeout(resolve, 500))
  window.dispatchEvent(new Event("online"))
  await stream.error()
  const { response } = await server.received()
  refuse(response, 502)
  const { delay } = await stream.error(2)
  const begun = performance.now()
  window.dispatchEvent(new Event("online"))
  begin((await server.received()).response)
  assert.ok(performance.now() - begun < delay)
  await stream.line("ok {}", 2)
})

test("The parser takes all line ends, and parts of characters, in any split", async (t) => {
  const text = '\uFEFF: comment\r\nid: c1\r\nevent: event\r\ndata: {"a":\r\ndata:"ü€😀"}\r\n\r\n'
    + "data\r\rid: c\0x\nunknown: x\ndata:  two\n\nevent: ok\ndata: {}\rid\r\r"
    + "event: ignored\n\ndata: last\n\n" + "event: event\ndata: not ended\n"
  const wanted = ['event {"a":\n"ü€😀"}', "message ", "message  two", "ok {}", "message last"]
  const bytes = Buffer.from(text)
  for (const size of [1, 2, 3, 7, bytes.length]) {
    const server = await scriptedServer(t)
    const stream = open(t, server.url + path)
    const ids = []
    for (const type of ["event", "message", "ok"]) stream.source.addEventListener(type, ({ lastEventId }) => ids.push(lastEventId))
    const { response } = await server.received()
    begin(response, "")
    response.socket.setNoDelay(true)
    for (let index = 0; index < bytes.length; index += size) {
      await new Promise((resolve) => response.write(bytes.subarray(index, index + size), resolve))
    }
    await stream.line("message last")
    assert.deepEqual(stream.lines.filter((line) => line !== "open"), wanted, `${size}`)
    assert.deepEqual(ids, ["c1", "c1", "c1", "", ""], `${size}`)
    stream.source.close()
  }
})

test("A stream without a cursor that starts again reports a gap", async (t) => {
  const server = await scriptedServer(t)
  const stream = open(t, server.url + path)
  for (const number of [1, 2]) {
    const { response } = await server.received()
    begin(response)
    response.end("event: event\ndata: {}\n\n")
    await stream.error(number)
  }
  const gap = 'gap {"op":"gap","dropped":null,"where":"client"}'
  assert.deepEqual(stream.lines, ["open", "ok {}", "event {}", "error", "open", "ok {}", gap, "event {}", "error"])
})

test("A stream obeys the delay of a gateway that stops, and sends its cursor", async (t) => {
  const server = await scriptedServer(t)
  const stream = open(t, server.url + path)
  const first = await server.received()
  assert.equal(first.request.headers["last-event-id"], undefined)
  begin(first.response)
  first.response.end('id: c-9\nevent: event\ndata: {}\n\nretry: 1200\nevent: notice\ndata: {"op":"notice"}\n\n')
  const { delay } = await stream.error()
  assert.equal(delay, 1200)
  const { request, response } = await server.received()
  assert.equal(request.headers["last-event-id"], "c-9")
  assert.equal(request.headers.accept, "text/event-stream")
  response.destroy()
  // It is used once.
  assert.ok((await stream.error(2)).delay < 1200)
})

test("A closed stream dispatches nothing more, and does not connect again", async (t) => {
  const server = await scriptedServer(t)
  const stream = open(t, server.url + path)
  stream.source.addEventListener("ok", () => stream.source.close())
  const { response } = await server.received()
  const closed = once(response, "close")
  begin(response, "event: ok\ndata: {}\n\nevent: event\ndata: {}\n\n")
  await within(closed, "end of the connection")
  assert.deepEqual([stream.lines, stream.source.readyState], [["open", "ok {}"], 2])
  assert.throws(() => new CoatyEventSource(`${server.url}/v1/status`), TypeError)
  assert.throws(() => new CoatyEventSource(server.url + path, { silenceTimeout: -1 }), TypeError)
})
