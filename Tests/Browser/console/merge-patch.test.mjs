import assert from "node:assert/strict"
import { test } from "node:test"
import { mergePatch } from "../../../Sources/CoatyGateway/Console/merge-patch.js"

test("a patch contains only the changes", () => {
  assert.deepEqual(mergePatch({ a: 1, b: [1, { c: 2 }], d: { e: 1 } }, { a: 1, b: [1, { c: 2 }], d: { e: 1 } }), {})
  assert.deepEqual(mergePatch({ a: 1, b: 2 }, { a: 1, b: 3, c: 4 }), { b: 3, c: 4 })
  assert.deepEqual(mergePatch({ a: [1, 2] }, { a: [2] }), { a: [2] })
  assert.deepEqual(mergePatch({ a: 1 }, { a: { b: 2 } }), { a: { b: 2 } })
})

test("null removes a property", () => {
  assert.deepEqual(mergePatch({ a: 1, b: { c: 1, d: 2 } }, { b: { d: 2 } }), { a: null, b: { c: null } })
})

test("setting a property to null can't be expressed as a patch", () => {
  assert.equal(mergePatch({ a: 1 }, { a: null }), undefined)
  assert.equal(mergePatch({ a: { b: 1 } }, { a: { b: null } }), undefined)
  assert.deepEqual(mergePatch({ a: null, b: 1 }, { a: null, b: 2 }), { b: 2 })
})

test("an empty object replaces a value", () => {
  assert.deepEqual(mergePatch({ a: 1 }, { a: {} }), { a: {} })
  assert.deepEqual(mergePatch({}, { a: {} }), { a: {} })
})

test("a property may have any name", () => {
  const after = JSON.parse('{"__proto__": {"x": 1}, "constructor": 2}')
  assert.equal(JSON.stringify(mergePatch({}, after)), '{"__proto__":{"x":1},"constructor":2}')
  assert.equal({}.x, undefined)
})
