import assert from "node:assert/strict"
import test from "node:test"
import { AliveObjects, maximumDeparted, maximumObjects } from "../../../Sources/CoatyGateway/Console/alive-objects.js"
import { scriptedClient, settle, controlledTimers, until } from "./support.mjs"

const event = (change, object, more = {}) =>
  ({ op: "event", event: "advertise", change, sourceId: "agent", size: 100, data: { object: { objectId: "o-1", ...object } }, ...more })

test("entries record which properties changed", () => {
  const alive = new AliveObjects()
  alive.take(event("added", { status: 0, name: "Job" }, { since: 5, changed: 6 }), 100)
  const { name, state, since, changed } = alive.entries.get("o-1")
  assert.deepEqual({ name, state, since, changed }, { name: "Job", state: "added", since: 5, changed: 6 })
  alive.take(event("changed", { status: 1, name: "Job", litres: 2 }, { since: 5, changed: 9 }), 200)
  const entry = alive.entries.get("o-1")
  assert.equal(entry.state, "changed")
  assert.deepEqual(entry.changes, [{ property: "status", before: 0, after: 1 }, { property: "litres", before: undefined, after: 2 }])
  // Only the owner has changed.
  alive.take(event("changed", { status: 1, name: "Job", litres: 2 }, { sourceId: "other" }), 300)
  assert.equal(alive.entries.get("o-1").owner, "other")
  assert.deepEqual(alive.entries.get("o-1").changes, entry.changes)
})

test("large integers are compared with all digits", () => {
  const alive = new AliveObjects()
  alive.take(event("added", { n: 2n ** 63n }), 0)
  alive.take(event("changed", { n: 2n ** 63n + 1n }), 0)
  assert.deepEqual(alive.entries.get("o-1").changes, [{ property: "n", before: 2n ** 63n, after: 2n ** 63n + 1n }])
})

test("large objects are not compared, and objects of any shape are accepted", () => {
  const alive = new AliveObjects()
  alive.take(event("added", { n: 1 }), 0)
  alive.take(event("changed", { n: 2 }, { size: 1e6 }), 0)
  assert.deepEqual(alive.entries.get("o-1").changes, [])
  for (const object of [{ name: {} }, { name: null, objectType: 7 }, JSON.parse('{"__proto__":{"name":"x"}}'), Object.fromEntries(Array.from({ length: 1000 }, (_, n) => [n, n]))]) {
    alive.take(event("changed", object), 0)
    assert.equal(typeof alive.entries.get("o-1").name, "string")
    assert.ok(alive.entries.get("o-1").changes.length <= 12)
  }
})

test("removed objects are kept for a minute", () => {
  const alive = new AliveObjects()
  alive.take(event("added", {}), 0)
  alive.take(event("removed", {}), 1000)
  assert.equal(alive.entries.get("o-1").state, "gone")
  alive.forget(60_999)
  assert.equal(alive.entries.size, 1)
  alive.forget(61_001)
  assert.equal(alive.entries.size, 0)
})

const agent = (objectId, more = {}) => ({ coreType: "Identity", objectId, name: `Agent ${objectId}`, ...more })

test("agents that left are kept, also those that left before", () => {
  const alive = new AliveObjects()
  alive.take(event("added", agent("here")), 0)
  alive.take(event("added", agent("leaves")), 0)
  alive.take(event("removed", agent("leaves")), 5000)
  alive.depart([{ identity: agent("left"), since: 1000 }, { identity: agent("here"), since: 2000 }])
  alive.forget(1_000_000)
  const entries = [...alive.entries.values()].map(({ id, state, changed }) => [id, state, changed])
  assert.deepEqual(entries, [["here", "added", 0], ["leaves", "gone", 5000], ["left", "gone", 1000]])
  alive.take(event("added", agent("left")), 6000)
  assert.equal(alive.entries.get("left").state, "added", "it is back")
})

test("the number of agents that left is bounded, and the earliest are removed first", () => {
  const alive = new AliveObjects()
  alive.take(event("added", agent("leaves")), 0)
  alive.take(event("removed", agent("leaves")), 1)
  alive.depart(Array.from({ length: maximumDeparted + 10 }, (_, number) => ({ identity: agent(`a-${number}`), since: number })))
  assert.equal(alive.entries.size, maximumDeparted)
  assert.ok(alive.entries.has("leaves"))
  assert.ok(!alive.entries.has("a-10"))
  assert.ok(alive.entries.has(`a-${maximumDeparted + 9}`))
  for (let number = 0; number < 5; number += 1) alive.take(event("added", agent(`b-${number}`)), 2)
  assert.equal(alive.isCut, false, "they take no room of present ones")
})

test("agents that left are requested with each new state", async (context) => {
  const tick = controlledTimers(context)
  const client = scriptedClient({ frames: [event("added", agent("here"))], ends: true }, {})
  const alive = new AliveObjects()
  const stop = new AbortController()
  const answers = [() => [{ identity: agent("left"), since: 1 }], () => { throw new Error("no") }]
  let requests = 0
  alive.follow(client, async () => answers[requests++](), stop.signal, () => {}, () => {})
  await until(() => alive.entries.size === 2)
  await settle()
  tick(5000)
  await until(() => requests === 2)
  await settle()
  assert.equal(alive.entries.size, 0)
  stop.abort()
})

test("a removed object that is added again is present", () => {
  const alive = new AliveObjects()
  alive.take(event("added", {}), 0)
  alive.take(event("removed", {}), 1000)
  alive.take(event("added", {}), 2000)
  alive.forget(1_000_000)
  assert.equal(alive.entries.get("o-1").state, "added")
})

test("changes are cleared when an object is added again or not compared", () => {
  const alive = new AliveObjects()
  for (const [change, v] of [["added", 1], ["changed", 2], ["removed", 2], ["added", 3]]) alive.take(event(change, { v }), 0)
  assert.deepEqual([alive.entries.get("o-1").state, alive.entries.get("o-1").changes], ["added", []])
  alive.take(event("changed", { v: 4 }), 0)
  alive.take(event("changed", { v: 5 }, { size: 1e6 }), 0)
  assert.deepEqual([alive.entries.get("o-1").state, alive.entries.get("o-1").changes], ["changed", []])
})

test("the numbers of removed objects and of all objects are bounded", () => {
  const alive = new AliveObjects()
  for (let number = 0; number < 1000; number += 1) {
    alive.take(event("added", { objectId: `o-${number}` }), 0)
    alive.take(event("removed", { objectId: `o-${number}` }), 1)
  }
  assert.equal(alive.entries.size, 200)
  for (let number = 0; number < maximumObjects + 10; number += 1) alive.take(event("added", { objectId: `p-${number}` }), 2)
  assert.equal(alive.entries.size, maximumObjects + 200)
  assert.equal(alive.isCut, true)
})

test("a refused subscription keeps the objects, and a new one clears them", async (context) => {
  const tick = controlledTimers(context)
  const client = scriptedClient(
    { frames: [event("added", {})], ends: true },
    { error: Object.assign(new Error("no"), { status: 403 }) },
    {},
  )
  const alive = new AliveObjects()
  const stop = new AbortController()
  const reported = []
  let changes = 0
  alive.follow(client, async () => [], stop.signal, () => { changes += 1 }, (error) => reported.push(error?.message))
  await until(() => alive.entries.size === 1)
  await settle()
  tick(5000)
  await until(() => reported.includes("no"))
  assert.equal(alive.entries.size, 1)
  await settle()
  tick(5000)
  await until(() => alive.entries.size === 0)
  await until(() => changes === 5)
  assert.deepEqual([changes, reported], [5, [undefined, "no", undefined]])
  stop.abort()
})
