// Integers that a number can't represent exactly.

import assert from "node:assert/strict"
import { test } from "node:test"
import { Broker, connect, Gateway, next, object, parseExact, scriptedGateway, stringifyExact, within } from "./support.mjs"

const large = 1724442618569203714n

test("A page that writes an object back keeps its 64-bit integers", async (t) => {
  const gateway = await Gateway.start(t, await Broker.start(t))
  const client = connect(t, gateway.url, { exactIntegers: true })
  const usual = connect(t, gateway.url)
  const thing = object({ serial: large, list: [-large, 7], small: 2 ** 53 - 1 })
  const observed = client.subscribe({ event: "advertise", objectType: "com.example.Thing" })
  const rounded = usual.subscribe({ event: "advertise", objectType: "com.example.Thing" })
  await within(Promise.all([observed.ready, rounded.ready]), "ok")
  const [exactly, roughly] = [observed[Symbol.asyncIterator](), rounded[Symbol.asyncIterator]()]
  const body = JSON.stringify({ object: "…" }).replace('"…"', stringifyExact(thing))
  assert.match(body, /"serial":1724442618569203714,"list":\[-1724442618569203714,7\]/)
  const headers = { "content-type": "application/json" }
  assert.equal((await fetch(`${gateway.url}/v1/advertise`, { method: "POST", headers, body })).status, 202)
  const { data } = await next(exactly)
  assert.deepEqual(data.object, thing)
  // The documented default.
  assert.equal(JSON.stringify((await next(roughly)).data.object.serial), "1724442618569203700")

  await client.publish({ event: "advertise", data: { object: { ...data.object, name: "Renamed" } } })
  assert.equal((await next(exactly)).data.object.name, "Renamed")
  const kept = await (await fetch(`${gateway.url}/v1/objects?objectType=com.example.Thing`)).text()
  assert.match(kept, /"serial":1724442618569203714\b/)
  assert.match(kept, /\[-1724442618569203714,7\]/)
  await next(roughly)

  // Filters, too. Each stays exact when the subscription is sent again.
  const filtered = usual.subscribe(
    { event: "advertise", objectType: "com.example.Thing", snapshot: true },
    { filter: ["serial", ["Equals", large]] },
  )
  assert.equal((await next(filtered[Symbol.asyncIterator]())).data.object.name, "Renamed")
})

test("Frames with and without large integers arrive, in text and in binary messages", async (t) => {
  const gateway = await scriptedGateway(t)
  const client = connect(t, gateway.url, { exactIntegers: true })
  const iterator = client.subscribe({ event: "raw", topic: "a" })[Symbol.asyncIterator]()
  const { id } = await gateway.received()
  gateway.send(`{"op":"event","id":"${id}","event":"raw","data":{"n":${large}}}`)
  const header = `{"op":"event","id":"${id}","event":"raw","n":${large},"data":{"encoding":"binary"}}\n`
  for (const socket of gateway.server.clients) socket.send(Buffer.concat([Buffer.from(header), Buffer.from([1, 2])]))
  assert.equal((await next(iterator)).data.n, large)
  const frame = await next(iterator)
  assert.equal(frame.n, large)
  assert.deepEqual([...frame.data.octets], [1, 2])
})

test("Large integers become bigint, and nothing else changes", () => {
  const far = "12345678901234567890"
  for (const [text, value] of [
    [`${large}`, large], [`-${large}`, -large], [` ${large} `, large], [`[${large},1,"${large}"]`, [large, 1, `${large}`]],
    ["9007199254740991", 2 ** 53 - 1], ["9007199254740992", 2n ** 53n], ["-9007199254740993", -(2n ** 53n) - 1n],
    [`{"a":${far},"${far}":2,"b":{"c":[${far}]}}`, { a: BigInt(far), [far]: 2, b: { c: [BigInt(far)] } }],
    [`0.${far}`, Number(`0.${far}`)], [`${far}.5`, Number(`${far}.5`)], [`${far}e2`, Number(`${far}e2`)],
    // Texts that look like the marks of integers.
    [`["~","~~","~${far}","\\u007e${far}","\\u007E","a~",${far}]`, ["~", "~~", `~${far}`, `~${far}`, "~", "a~", BigInt(far)]],
    [`{"~":"~1","~${far}" : "~","\\u007e\\u007e":${far}}`, { "~": "~1", [`~${far}`]: "~", "~~": BigInt(far) }],
    [`["\\"${far}","\\\\",${far},"\\\\\\"~"]`, [`"${far}`, "\\", BigInt(far), '\\"~']],
  ]) {
    assert.deepEqual(parseExact(text), value, text)
    // The text of a large number is that of an integer.
    if (typeof value !== "number" || Number.isSafeInteger(value)) assert.deepEqual(parseExact(stringifyExact(value)), value, text)
  }
  const proto = parseExact(`{"__proto__":${far}}`)
  assert.ok(Object.hasOwn(proto, "__proto__") && stringifyExact(proto) === `{"__proto__":${far}}`)
})

test("What is not JSON is refused as JSON.parse refuses it", () => {
  const far = "12345678901234567890"
  for (const text of [`0${far}`, `+${far}`, `{${far}:1}`, `[${far}`, `${far}"`, `-`, `"${far}\n"`, `[-${far}-]`, `[${far}${far}e]`, `'${far}'`]) {
    assert.throws(() => parseExact(text), SyntaxError, text)
  }
})

test("A value with a bigint is written as JSON.stringify writes it", (t) => {
  const value = {
    n: 1n, date: new Date(0), nothing: undefined, act: () => 1, list: [undefined, 2n, () => 1, NaN, , null], nested: { "a\n\"": true, u: undefined },
    infinite: -Infinity, text: "ü\u2028\ud800", custom: { toJSON: () => ({ n: 3n }) },
  }
  const numbers = JSON.stringify(value, (_, member) => typeof member === "bigint" ? Number(member) : member)
  assert.equal(stringifyExact(value), numbers)
  assert.equal(stringifyExact({ a: 1 }), '{"a":1}')
  assert.equal(stringifyExact(undefined), undefined)
  const cycle = { n: 1n }
  cycle.cycle = cycle
  assert.throws(() => stringifyExact(cycle), TypeError)
  // A page may have taught BigInt to be written as a string.
  BigInt.prototype.toJSON = function () { return String(this) }
  t.after(() => { delete BigInt.prototype.toJSON })
  assert.equal(stringifyExact([large]), `[${large}]`)
})
