import assert from "node:assert/strict"
import test from "node:test"
import { AliveObjects, difference } from "../../../Sources/CoatyGateway/Console/alive-objects.js"

const event = (change, object, more = {}) => ({ op: "event", event: "advertise", change, sourceId: "agent", data: { object: { objectId: "o-1", ...object } }, ...more })

test("tells what has changed", () => {
  const alive = new AliveObjects()
  alive.take(event("added", { status: 0, name: "Job" }, { since: 5, changed: 6 }), 100)
  assert.deepEqual(alive.entries.get("o-1").state, "added")
  assert.equal(alive.entries.get("o-1").since, 5)
  assert.equal(alive.entries.get("o-1").changed, 6)
  alive.take(event("changed", { status: 1, name: "Job", litres: 2 }), 200)
  const entry = alive.entries.get("o-1")
  assert.equal(entry.state, "changed")
  assert.deepEqual(entry.changes, [{ property: "status", before: 0, after: 1 }, { property: "litres", before: undefined, after: 2 }])
  assert.equal(entry.since, 5)
})

test("keeps what has gone for a while", () => {
  const alive = new AliveObjects()
  alive.take(event("added", {}), 0)
  alive.take(event("removed", {}), 1000)
  assert.equal(alive.entries.get("o-1").state, "gone")
  alive.forget(60_999)
  assert.equal(alive.entries.size, 1)
  alive.forget(61_001)
  assert.equal(alive.entries.size, 0)
})

test("takes back what has gone", () => {
  const alive = new AliveObjects()
  alive.take(event("added", {}), 0)
  alive.take(event("removed", {}), 1000)
  alive.take(event("added", {}), 2000)
  alive.forget(1_000_000)
  assert.equal(alive.entries.get("o-1").state, "added")
})

test("keeps few of many that have gone", () => {
  const alive = new AliveObjects()
  for (let number = 0; number < 1000; number += 1) {
    alive.take(event("added", { objectId: `o-${number}` }), 0)
    alive.take(event("removed", { objectId: `o-${number}` }), 1)
  }
  assert.equal(alive.entries.size, 200)
})

test("compares properties as JSON", () => {
  assert.deepEqual(difference({ a: { b: [1] }, c: 1 }, { a: { b: [1] } }), [{ property: "c", before: 1, after: undefined }])
})
