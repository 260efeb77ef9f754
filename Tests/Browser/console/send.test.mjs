// What the console's page "Send" makes of what people type.

import assert from "node:assert/strict"
import { execFile } from "node:child_process"
import { webcrypto } from "node:crypto"
import { once } from "node:events"
import { createServer } from "node:http"
import { after, before, test } from "node:test"
import { promisify } from "node:util"
import { curlCommand, quote } from "../../../Sources/CoatyGateway/Console/curl.js"
import { newId } from "../../../Sources/CoatyGateway/Console/ids.js"
import { parseJSON, prettyJSON } from "../../../Sources/CoatyGateway/Console/json-text.js"
import { coreTypes, patterns, restRequest } from "../../../Sources/CoatyGateway/Console/patterns.js"
import { Broker, Gateway } from "../client/support.mjs"

// Browsers have it, and not every node.
globalThis.crypto ??= webcrypto

const nasty = ["", "'", "''", "it's", "$(date) `date` $HOME", "a\nb", '"\\n\\"', "@/etc/passwd", "~ * ? ! #", "-rf", "ü 漢 🚪", "a/b?c=d&e#f%20"]

const shell = (command) => promisify(execFile)("sh", ["-c", command], { encoding: "utf8" })

let gateway
const ends = []

before(async () => {
  const context = { after: (end) => ends.unshift(end) }
  gateway = await Gateway.start(context, await Broker.start(context))
})

after(async () => {
  for (const end of ends) await end()
})

test("JSON that is none says where", () => {
  const texts = {
    "": [1, 1], "{": [1, 2], '{"a":1,}': [1, 8], "[1 2]": [1, 4], '{\n  "a": 1\n  "b": 2\n}': [3, 3], "{'a': 1}": [1, 2],
    '{"a": tru}': [1, 7], "[01]": [1, 2], '["a\nb"]': [1, 2], "1 2": [1, 3], "{}}": [1, 3], "[1}": [1, 3], '{"a" 1}': [1, 6],
  }
  for (const [text, [line, column]] of Object.entries(texts)) {
    assert.throws(() => parseJSON(text), { message: new RegExp(`^Line ${line}, column ${column}: `) }, text)
  }
})

test("What the browser does not read has a place where it is wrong", () => {
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

test("JSON that is laid out says the same", () => {
  const values = [{}, [], null, 1, "a", { a: [1, [2, "x\ny"]] }, [{ a: 1 }, {}, []], { a: { b: [{ c: [] }] }, long: Array(40).fill("long") }]
  for (const value of values) assert.deepEqual(JSON.parse(prettyJSON(value)), value)
  assert.equal(prettyJSON({ a: [1, 2], b: { c: [] } }), '{\n  "a": [1, 2],\n  "b": {\n    "c": []\n  }\n}')
})

test("A shell reads what was quoted", async () => {
  for (const text of nasty) assert.equal((await shell(`printf %s ${quote(text)}`)).stdout, text)
})

test("The command sends what the form would", async (t) => {
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
  const send = async (...of) => {
    await shell(curlCommand(restRequest(...of), base))
    return received.pop()
  }
  const by = Object.fromEntries(patterns.map((pattern) => [pattern.event, pattern]))
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

test("What each pattern begins with is taken by the gateway", async () => {
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

test("An object of each core type has what it must have", async () => {
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
  // The type of the framework's own follows, that of an application stays.
  assert.equal(body.object.objectType, "com.example.Door")
  objectType.set(body, "coaty.CoatyObject")
  coreType.set(body, "Task")
  assert.equal(body.object.objectType, "coaty.Task")
})

test("What an application calls its properties does not matter", () => {
  const { fields, example } = patterns.find(({ event }) => event === "advertise")
  const own = JSON.parse('{"constructor":1,"toString":2,"__proto__":3,"hasOwnProperty":4}')
  const body = { object: { ...example().object, ...own } }
  for (const name of ["Task", "User", "CoatyObject"]) fields[0].set(body, name)
  for (const [name, value] of Object.entries(own)) assert.equal(Object.getOwnPropertyDescriptor(body.object, name)?.value, value, name)
})

test("Fields say what the body says, whatever that is", () => {
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

test("Ids are random ones", () => {
  const ids = new Set(Array.from({ length: 100 }, newId))
  assert.equal(ids.size, 100)
  for (const id of ids) assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
})

