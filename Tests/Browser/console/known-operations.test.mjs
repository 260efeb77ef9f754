import assert from "node:assert/strict"
import { test } from "node:test"
import { KnownOperations, maximumExample, maximumOperations, originText } from "../../../Sources/CoatyGateway/Console/known-operations.js"
import { scriptedClient, until } from "./support.mjs"

const names = (operations) => operations.all.map(({ name }) => name)

test("described operations come first, then the latest", () => {
  const operations = new KnownOperations()
  let changes = 0
  operations.addEventListener("change", () => { changes += 1 })
  operations.note("a", "observed")
  operations.note("b", "observed")
  operations.describe({ operations: ["c", { name: "d", description: "Adds numbers" }] }, "Demo agent")
  operations.note("a", "observed")
  assert.deepEqual(names(operations), ["d", "c", "a", "b"])
  assert.deepEqual(operations.all.map(originText), ["Adds numbers", "Demo agent", "observed", "observed"])
  assert.equal(changes, 4, "a known operation is not a change")
})

test("better information about an operation is not overwritten", () => {
  const operations = new KnownOperations()
  operations.note("a", "called")
  operations.note("a", "answered", "Agent 7")
  operations.note("a", "observed")
  assert.deepEqual(operations.all.map(originText), ["answered by Agent 7"])
})

test("the example of an operation is kept, unless it is too long", () => {
  const operations = new KnownOperations()
  let changes = 0
  operations.addEventListener("change", () => { changes += 1 })
  operations.note("a", "called")
  operations.describe({ operations: [{ name: "a", example: { n: 2n ** 63n } }, { name: "b", example: "x".repeat(maximumExample) }, { name: "c", example: null }] }, "agent")
  assert.deepEqual(["a", "b", "c", "d"].map((name) => operations.example(name)), ['{"n":9223372036854775808}', undefined, "null", undefined])
  operations.note("a", "called")
  assert.equal(operations.example("a"), '{"n":9223372036854775808}')
  operations.describe({ operations: [{ name: "a", description: "agent", example: [1] }] }, "agent")
  assert.equal(operations.example("a"), "[1]")
  assert.equal(changes, 5, "another example is a change")
})

test("data of any shape is accepted, and the number of operations is bounded", () => {
  const operations = new KnownOperations()
  for (const object of [undefined, null, {}, { operations: 7 }, { operations: [null, 7, {}, { name: 7 }, " ", "x".repeat(5000)] }]) operations.describe(object, "")
  for (const name of [undefined, null, 7, "", " "]) operations.note(name, "observed")
  assert.deepEqual(names(operations), [])
  for (let number = 0; number < 2 * maximumOperations; number += 1) operations.note(`o${number}`, "observed")
  assert.equal(operations.all.length, maximumOperations)
  assert.equal(names(operations)[0], `o${2 * maximumOperations - 1}`)
})

test("calls and descriptions are observed if the grants allow it", async () => {
  const called = { op: "event", event: "call", operation: "com.example.add", data: {} }
  const described = { op: "event", event: "advertise", sourceId: "agent", data: { object: { operations: ["com.example.demo"] } } }
  const removed = { ...described, change: "removed", data: { object: { operations: ["com.example.gone"] } } }
  const client = scriptedClient({ frames: [called, { op: "gap", dropped: 1 }] }, { frames: [described, removed] })
  const operations = new KnownOperations()
  const stop = new AbortController()
  operations.follow(client, { may: () => true }, stop.signal, (id) => `the ${id}`)
  await until(() => operations.all.length === 2)
  assert.deepEqual(operations.all.map(({ name, origin, text }) => [name, origin, text]),
    [["com.example.demo", "described", "the agent"], ["com.example.add", "observed", ""]])
  assert.deepEqual(client.subscribed.map(({ event }) => event), ["traffic", "advertise"])
  stop.abort()
  const none = scriptedClient()
  new KnownOperations().follow(none, { may: () => false }, stop.signal, () => "")
  assert.deepEqual(none.subscribed, [])
})
