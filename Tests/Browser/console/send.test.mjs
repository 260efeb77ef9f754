// Input of the console's view “Send”: JSON, fields and curl commands.

import assert from "node:assert/strict"
import { execFile } from "node:child_process"
import { webcrypto } from "node:crypto"
import { once } from "node:events"
import { createServer } from "node:http"
import { test } from "node:test"
import { promisify } from "node:util"
import { Kept, maximumAnswers, maximumBytes } from "../../../Sources/CoatyGateway/Console/answers.js"
import { stringifyExact } from "../../../Sources/CoatyGateway/Console/client.js"
import { publishCode } from "../../../Sources/CoatyGateway/Console/client-code.js"
import { curlCommand, quote } from "../../../Sources/CoatyGateway/Console/curl.js"
import { newId } from "../../../Sources/CoatyGateway/Console/ids.js"
import { NumberError, parseExactJSON, parseJSON } from "../../../Sources/CoatyGateway/Console/json-text.js"
import { prettyJSON } from "../../../Sources/CoatyGateway/Console/json-print.js"
import { coreTypes, fault, frameSize, hasHalfCharacter, maximumFrame, patterns, restRequest, socketRequest } from "../../../Sources/CoatyGateway/Console/patterns.js"
import { connect, sharedGateway } from "../client/support.mjs"

// Some versions of node do not define it globally.
globalThis.crypto ??= webcrypto

const nasty = ["", "'", "''", "it's", "$(date) `date` $HOME", "a\nb", '"\\n\\"', "@/etc/passwd", "~ * ? ! #", "-rf", "ü 漢 🚪", "a/b?c=d&e#f%20"]

/** Runs a command from the shell's standard input, because a long one does not fit into an argument. */
async function shell(command, name = "sh") {
  const running = promisify(execFile)(name, [], { encoding: "utf8" })
  running.child.stdin.end(command + "\n")
  return running
}
const by = Object.fromEntries(patterns.map((pattern) => [pattern.event, pattern]))

let gateway
sharedGateway((started) => { gateway = started })

test("Invalid JSON is reported with its line and column", () => {
  const texts = {
    "": [1, 1], "{": [1, 2], '{"a":1,}': [1, 8], "[1 2]": [1, 4], '{\n  "a": 1\n  "b": 2\n}': [3, 3], "{'a': 1}": [1, 2],
    '{"a": tru}': [1, 7], "[01]": [1, 2], '["a\nb"]': [1, 2], "1 2": [1, 3], "{}}": [1, 3], "[1}": [1, 3], '{"a" 1}': [1, 6],
  }
  for (const [text, [line, column]] of Object.entries(texts)) {
    assert.throws(() => parseJSON(text), { message: new RegExp(`^Line ${line}, column ${column}: `) }, text)
  }
})

test("JSON that the browser rejects is reported with a position", () => {
  const text = '{"a": [1, -2.5e3, "b\\u00e9\\n", {"c": null}], "d": true, "e": {}}'
  const characters = ["", ",", "}", "]", "[", "{", '"', ":", "x", "\\", " ", "0", "-", ".", "\u0000", "\n"]
  let wrong = 0
  for (let i = 0; i < text.length; i++) {
    for (const character of characters) {
      const changed = text.slice(0, i) + character + text.slice(i + 1)
      let expected
      try {
        expected = JSON.parse(changed)
      } catch {
        wrong += 1
        assert.throws(() => parseJSON(changed), /^Error: Line \d+, column \d+: /, changed)
        continue
      }
      assert.deepEqual(parseJSON(changed), expected)
    }
  }
  assert.ok(wrong > 500)
  const long = `{"a": "${"x".repeat(1_000_000)}", }`
  assert.throws(() => parseJSON(long), { message: /^Line 1, column 1000011: / })
})

test("Numbers that would lose precision are refused", () => {
  const others = {
    "1e400": "null", "-1E+400": "null",
    "1e-400": "0", "-0": "0", "-0.0e5": "0", "3.14159265358979323846": "3.141592653589793", "0.1000000000000000000001": "0.1",
    "9007199254740993.0": "9007199254740992", "1e99999999999999999999": "null",
  }
  for (const [literal, kept] of Object.entries(others)) {
    const text = `{\n "a": [1, ${literal}, "x"]}`
    assert.throws(() => parseExactJSON(text), (error) => {
      assert.ok(error instanceof NumberError)
      assert.equal(error.message, `Line 2, column 11: ${literal} would become ${kept}.`)
      return true
    })
  }
  assert.throws(() => parseExactJSON(`${"1".repeat(1000)}.5`), { message: /^Line 1, column 1: 1{40}… would become null\.$/ })
  const same = [
    "0", "1", "-1", "1.0", "-1.50", "1e2", "1E+2", "100e-2", "0.1", "0e5", "0.000", "9007199254740992", "9007199254740994", "1e21", "1.5e-7",
    "123456789012345680000", "5e-324", "1.7976931348623157e308", "0.30000000000000004", `1${"0".repeat(300)}`, `0.${"0".repeat(5)}1`,
  ]
  for (const literal of same) assert.equal(Number(parseExactJSON(`[${literal}]`)[0]), Number(literal), literal)
  // Digits in a string are not a number.
  for (const text of ['"1e400"', '{"9007199254740993": "\\"1e400"}', '["\\\\", "1e400", "\\\\\\"1e400"]']) assert.deepEqual(parseExactJSON(text), JSON.parse(text))
})

test("Large integers keep their digits, from the text of a user to the frame and to code", () => {
  for (const literal of ["9007199254740993", "-9007199254740993", "1724442618569203714", "123456789012345678901234567890"]) {
    const text = `{ "a": [1, ${literal}, "${literal}"] }`
    const value = parseExactJSON(text)
    assert.deepEqual(value, { a: [1, BigInt(literal), literal] })
    assert.deepEqual(parseJSON(text), value)
    assert.equal(stringifyExact(value), text.replaceAll(" ", ""))
    assert.equal(prettyJSON([1, BigInt(literal)]), `[1, ${literal}]`)
    assert.equal(prettyJSON(BigInt(literal)), literal)
    const code = publishCode({ event: "channel", channelId: "c", data: value }, "http://localhost/")
    assert.deepEqual(new Function("client", code.slice(code.indexOf("await client.publish")).replace("await ", "return "))({ publish: ({ data }) => data }), value)
  }
  // A name that would set the prototype of an object literal.
  const named = parseJSON('{"__proto__":1,"text":"\\"__proto__\\":"}')
  const code = publishCode(named, "http://localhost/").split("client.publish(")[1].slice(0, -2)
  assert.equal(stringifyExact(new Function(`return ${code}`)()), stringifyExact(named))
})

test("Exact JSON is parsed in linear time", () => {
  const texts = [
    `["${"\\n".repeat(500_000)}"]`, `["${"x".repeat(1_000_000)}"]`, `[${Array(300_000).fill("1.5").join(",")}]`,
    `[${Array(300_000).fill('"1"').join(",")}]`, `{"a":[${Array(400_000).fill("[]").join(",")}]}`,
  ]
  for (const text of texts) assert.deepEqual(parseExactJSON(text), JSON.parse(text))
  assert.throws(() => parseExactJSON(`0.1${"0".repeat(1_000_000)}1`), NumberError)
  assert.throws(() => parseExactJSON(`1${"0".repeat(1_000_000)}1.0`), NumberError)
})

test("JSON nested deeper than the gateway accepts is refused", () => {
  const nested = (depth) => "[".repeat(depth) + "]".repeat(depth)
  assert.equal(JSON.stringify(parseExactJSON(nested(511))), nested(511))
  assert.deepEqual(JSON.parse(prettyJSON(parseExactJSON(nested(511)))), JSON.parse(nested(511)))
  assert.throws(() => parseExactJSON(nested(512)), { message: "Line 1, column 512: nested deeper than 511 levels." })
})

test("A shell reads quoted text unchanged", async () => {
  for (const text of nasty) assert.equal((await shell(`printf %s ${quote(text)}`)).stdout, text)
})

/** Starts a server. Returns a function that runs a command and returns the request that the server received. */
async function recordRequests(t) {
  const received = []
  const server = createServer(async (request, response) => {
    const chunks = []
    for await (const chunk of request) chunks.push(chunk)
    received.push({ method: request.method, url: request.url, type: request.headers["content-type"], body: Buffer.concat(chunks).toString() })
    response.end()
  }).listen(0, "127.0.0.1")
  await once(server, "listening")
  t.after(() => server.close())
  const base = `http://127.0.0.1:${server.address().port}/below/it/`
  return async (command, name) => {
    await shell(command(base), name)
    return received.pop()
  }
}

test("The command sends the same request as the form", async (t) => {
  const run = await recordRequests(t)
  const send = (...of) => run((base) => curlCommand(restRequest(...of), base))
  for (const text of nasty.filter((text) => text !== "")) {
    const channel = await send(by.channel, { channelId: text }, JSON.stringify({ text }))
    assert.equal(channel.method, "POST")
    assert.equal(channel.url, `/below/it/v1/channel/${encodeURIComponent(text)}`)
    assert.deepEqual(JSON.parse(channel.body), { text })
    assert.equal(channel.type, "application/json")
    const raw = await send(by.raw, { topic: text, retain: true }, text)
    assert.equal(raw.url, `/below/it/v1/raw/${encodeURIComponent(text)}?retain=true`)
    assert.equal(raw.body, text)
    assert.equal(raw.type, "application/octet-stream")
  }
  const call = await send(by.call, { operation: "com.example.add", timeout: 100, limit: 0 }, "{}")
  assert.equal(call.url, "/below/it/v1/call/com.example.add?timeout=100&limit=0")
})

test("The command sends bodies that are too long for an argument", async (t) => {
  const run = await recordRequests(t)
  const argument = 128 * 1024
  for (const name of ["sh", "bash"]) {
    for (const body of ["x".repeat(argument - 1), "x".repeat(argument), "é".repeat(argument / 2), "it's %s \\n 🚪\n".repeat(60_000), "\n".repeat(argument)]) {
      const sent = await run((base) => curlCommand(restRequest(by.raw, { topic: "a/b" }, body), base), name)
      assert.ok(sent.body === body, `${name}: ${sent.body.length} of ${body.length} characters`)
      assert.equal(sent.url, "/below/it/v1/raw/a%2Fb")
      assert.equal(sent.type, "application/octet-stream")
    }
  }
})

test("The size of a frame is its number of bytes", async (t) => {
  const client = connect(t, gateway.url)
  await client.online()
  /** Returns a request with a text of the character whose frame has `size` bytes. */
  const frame = (character, size) => {
    const of = (text) => socketRequest(by.raw, { topic: "ä/b", retain: false }, text)
    const each = frameSize(of(character)) - frameSize(of(""))
    const rest = size - frameSize(of(""))
    return of(character.repeat(Math.floor(rest / each)) + "x".repeat(rest % each))
  }
  for (const character of ["x", "é", "漢", "🚪", "\n", "\u0001"]) {
    const largest = frame(character, maximumFrame)
    assert.equal(frameSize(largest), maximumFrame)
    assert.deepEqual(await client.publish(largest.what), { deferred: false }, character)
  }
  await assert.rejects(client.publish(frame("漢", maximumFrame + 100).what), { type: "urn:coaty-client:problem:disconnected" })
  const { what, options } = socketRequest(by.call, { operation: "a", timeout: 100, limit: 1 }, { parameters: [1] })
  assert.deepEqual({ what, options }, { what: { event: "call", operation: "a", data: { parameters: [1] } }, options: { timeout: 100, limit: 1 } })
})

test("A body that a shell can't read is not offered as a command", () => {
  assert.match(curlCommand(restRequest(by.raw, { topic: "a" }, "a\0b"), "http://gateway.example"), /^# /)
})

test("A value that can't be part of a URL is a fault of its field", () => {
  const [operation, timeout] = by.call.fields
  for (const value of ["", ".", "..", "\ud83d", "a\udead", "\udeab\ud83d"]) {
    assert.equal(typeof fault(operation, value), "string", JSON.stringify(value))
  }
  for (const value of ["...", "a/..", "../a", "%2e%2e", ". ", "🚪", "ü"]) {
    assert.equal(fault(operation, value), undefined, JSON.stringify(value))
    const { pathname } = new URL(restRequest(by.call, { operation: value }, "").path, "http://gateway.example/below/")
    assert.equal(pathname, `/below/v1/call/${encodeURIComponent(value)}`)
  }
  for (const value of [NaN, 0, -1, 1.5]) assert.equal(typeof fault(timeout, value), "string")
  assert.equal(fault(timeout, 1), undefined)
  assert.equal(fault({ kind: "checkbox" }, false), undefined)
  assert.ok(hasHalfCharacter("a\ud83d") && !hasHalfCharacter("a🚪"))
})

test("The gateway accepts the example of each pattern", async () => {
  const names = { channelId: "news", operation: "com.example.add", topic: "greenhouse/door", timeout: 50 }
  for (const pattern of patterns) {
    const body = pattern.example()
    if (pattern.event === "deadvertise") body.objectIds.push(newId())
    const text = pattern.isText ? body : prettyJSON(body)
    const parameters = { ...pattern.parameters }
    for (const name of Object.keys(parameters)) parameters[name] = names[name] ?? parameters[name]
    const { stdout } = await shell(curlCommand(restRequest(pattern, parameters, text), gateway.url))
    const answer = JSON.parse(stdout)
    if (!pattern.isRequest) assert.deepEqual(answer, { deferred: false }, pattern.event)
    else if ("reason" in answer) assert.equal(answer.reason, "timeout", pattern.event)
    else assert.equal(answer.title, "No answer", pattern.event)
  }
})

test("An object of each core type has its required properties", async () => {
  const { fields, example } = patterns.find(({ event }) => event === "advertise")
  const [coreType, objectType] = fields
  const body = example()
  const own = Object.keys(body.object).length
  for (const name of coreTypes) {
    coreType.set(body, name)
    assert.equal(coreType.get(body), name)
    assert.deepEqual(await gateway.post("/v1/advertise", body), { deferred: false }, name)
  }
  coreType.set(body, "CoatyObject")
  assert.equal(Object.keys(body.object).length, own)
  // An object type of the framework follows the core type, one of an application is kept.
  assert.equal(body.object.objectType, "com.example.Door")
  objectType.set(body, "coaty.CoatyObject")
  coreType.set(body, "Task")
  assert.equal(body.object.objectType, "coaty.Task")
})

test("Properties may have any name", () => {
  const { fields, example } = patterns.find(({ event }) => event === "advertise")
  const own = JSON.parse('{"constructor":1,"toString":2,"__proto__":3,"hasOwnProperty":4}')
  const body = { object: { ...example().object, ...own } }
  for (const name of ["Task", "User", "CoatyObject"]) fields[0].set(body, name)
  for (const [name, value] of Object.entries(own)) assert.equal(Object.getOwnPropertyDescriptor(body.object, name)?.value, value, name)
})

test("Fields follow bodies of any shape", () => {
  for (const pattern of patterns) {
    for (const field of pattern.fields.filter((field) => !field.isParameter)) {
      for (const body of [{}, { object: null }, { object: [] }, { object: { name: 1 }, objectIds: 1, objectTypes: {}, objectId: null }]) {
        const text = field.get(structuredClone(body))
        assert.equal(typeof text, "string", `${pattern.event} ${field.id}`)
        const changed = structuredClone(body)
        const value = field.kind === "select" ? field.options[0] : "one"
        field.set(changed, value)
        assert.equal(field.get(changed), value, `${pattern.event} ${field.id}`)
      }
    }
  }
})

test("The number and the bytes of kept answers are bounded", () => {
  const many = new Kept()
  for (let number = 0; number < maximumAnswers + 50; number += 1) many.add({ number, size: 10 })
  assert.deepEqual([many.total, many.kept, many.more], [maximumAnswers + 50, maximumAnswers, 50])
  assert.equal(many.take().number, 0)
  assert.equal(many.take().number, 1)
  // Answers that were taken still count, because they are shown.
  many.add({ size: 10 })
  assert.equal(many.more, 51)

  const large = new Kept()
  for (const size of [maximumBytes / 2, maximumBytes / 2 - 1, 2, 1]) large.add({ size })
  // After one answer is dropped, later ones are dropped too.
  assert.deepEqual([large.kept, large.more], [2, 2])
  assert.deepEqual([large.take(), large.take(), large.take()], [{ size: maximumBytes / 2 }, { size: maximumBytes / 2 - 1 }, undefined])
})

test("IDs are random UUIDs", () => {
  const ids = new Set(Array.from({ length: 100 }, newId))
  assert.equal(ids.size, 100)
  for (const id of ids) assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
})

