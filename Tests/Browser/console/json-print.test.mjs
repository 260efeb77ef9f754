import assert from "node:assert/strict"
import test from "node:test"
import { maximumShown, prettyJSON } from "../../../Sources/CoatyGateway/Console/json-print.js"

test("printed JSON has the same value", () => {
  const values = [
    null, true, 0, -1.5e-7, "", "a\n\"\u2028", [], {}, [[]], [{}], { a: [] }, [1, [2, [3, { b: "c" }]]],
    { "": 1, "a b": { c: null } }, "x".repeat(1000), Array.from({ length: 100 }, (_, number) => ({ number, list: [number] })),
    JSON.parse('{"__proto__":{"constructor":1},"toString":[2]}'),
  ]
  for (const value of values) assert.deepEqual(JSON.parse(prettyJSON(value)), value)
})

test("short values are printed on one line", () => {
  assert.equal(prettyJSON({ list: [1, 2, "three"], object: { a: 1 } }), '{\n  "list": [1, 2, "three"],\n  "object": { "a": 1 }\n}')
  assert.equal(prettyJSON(["status", ["Equals", "on"]]), '[\n  "status",\n  ["Equals", "on"]\n]')
  assert.equal(prettyJSON({ text: "x".repeat(80) }), `{\n  "text": "${"x".repeat(80)}"\n}`)
})

test("the cost depends on the shown text and not on the value", () => {
  const deep = JSON.parse("[".repeat(400) + "]".repeat(400))
  const nested = JSON.parse(`${'{"a":['.repeat(300)}${Array(200_000).fill("{}").join(",")}${"]}".repeat(300)}`)
  const many = Object.fromEntries(Array.from({ length: 200_000 }, (_, number) => [`p${number}`, { q: [number, {}, [number]] }]))
  for (const value of [deep, nested, many, "x".repeat(5_000_000), { ["n".repeat(5_000_000)]: 1 }]) {
    const text = prettyJSON(value, { maximum: maximumShown })
    assert.ok(text.length <= maximumShown + 20, String(text.length))
  }
  assert.match(prettyJSON(many, { maximum: maximumShown }), /\n… and more$/)
  // Unbounded indentation would produce half a gigabyte.
  assert.ok(prettyJSON(nested).length < 20_000_000)
})

test("values below the deepest level are cut", () => {
  let value = 1
  for (let depth = 0; depth < 100_000; depth += 1) value = [value]
  assert.match(prettyJSON(value, { maximum: maximumShown }), /\[…\]/)
})
