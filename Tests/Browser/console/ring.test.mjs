import assert from "node:assert/strict"
import test from "node:test"
import { Ring, maximumBytes, maximumItems } from "../../../Sources/CoatyGateway/Console/ring.js"

test("the newest items are kept", () => {
  const ring = new Ring()
  for (let number = 1; number <= maximumItems + 10; number += 1) ring.push(number, 1)
  assert.equal(ring.total, maximumItems + 10)
  assert.equal(ring.length, maximumItems)
  assert.equal(ring.first, 11)
  assert.equal(ring.at(10), undefined)
  assert.equal(ring.at(11), 11)
  assert.equal(ring.at(maximumItems + 10), maximumItems + 10)
  assert.equal(ring.at(maximumItems + 11), undefined)
})

test("the number of bytes is bounded, but the newest item is always kept", () => {
  const ring = new Ring()
  for (let number = 1; number <= 10; number += 1) ring.push(number, maximumBytes / 4)
  assert.equal(ring.length, 4)
  ring.push(11, 2 * maximumBytes)
  assert.equal(ring.length, 1)
  assert.equal(ring.at(11), 11)
  ring.push(12, 1)
  assert.equal(ring.length, 1)
  assert.equal(ring.at(12), 12)
})

test("filter() returns the oldest matching items up to a limit", () => {
  const ring = new Ring()
  for (let number = 1; number <= 9; number += 1) ring.push(number, 1)
  assert.deepEqual(ring.filter((item) => item % 2 === 0, 3), [2, 4, 6])
  assert.deepEqual(ring.filter(() => false, 3), [])
})

test("clear() removes the items and keeps the count", () => {
  const ring = new Ring()
  ring.push("a", 1)
  ring.clear()
  assert.equal(ring.length, 0)
  assert.equal(ring.at(1), undefined)
  ring.push("b", 1)
  assert.equal(ring.total, 2)
  assert.equal(ring.at(2), "b")
})
