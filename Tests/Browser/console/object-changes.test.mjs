import assert from "node:assert/strict"
import { test } from "node:test"
import { ends, lineEnd } from "../../../Sources/CoatyGateway/Console/dom.js"
import { rowOf } from "../../../Sources/CoatyGateway/Console/feed-rows.js"
import { LastObjects, changesText, differences, maximumCompared, maximumRemembered, valuesText } from "../../../Sources/CoatyGateway/Console/object-changes.js"

const object = { coreType: "CoatyObject", objectType: "com.example.Door", objectId: "o-1", name: "Front door" }
const frame = (members, more = {}) => ({ op: "event", event: "advertise", sourceId: "a-1", size: 100, data: { object: { ...object, ...members } }, ...more })
const names = { of: (id) => id, uncut: () => undefined }

test("changes have the values before and after", () => {
  const changes = differences({ ...object, isOpen: false, n: 2n ** 63n, old: 1 }, { ...object, isOpen: true, n: 2n ** 63n + 1n, color: { r: 255 } })
  assert.equal(changesText(changes), 'isOpen: false → true, n: 9223372036854775808 → 9223372036854775809, old: 1 → –, color: – → { "r": 255 }')
})

test("values are those that not every object has", () => {
  assert.equal(valuesText({ ...object, parentObjectId: "o-2", isOpen: true, unit: "Celsius" }), "isOpen: true, unit: Celsius")
  assert.equal(valuesText(object), "")
  const many = Object.fromEntries(Array.from({ length: 1000 }, (_, number) => [`member${number}`, "x".repeat(1000)]))
  assert.ok(valuesText(many).length < 250)
  assert.ok(changesText(differences({}, many)).length < 250)
})

test("the former version of an object is that of the event before", () => {
  const objects = new LastObjects()
  const first = frame({ n: 1 })
  assert.equal(objects.take(first), undefined)
  const second = frame({ n: 2 }, { event: "channel" })
  assert.equal(objects.take(second), first.data.object)
  assert.equal(objects.take(frame({ n: 9 }, { event: "update" })), second.data.object)
  assert.equal(objects.take(frame({ n: 3 }, { event: "complete" })), second.data.object, "an update only asks for a change")
  for (const data of [undefined, null, 7, {}, { object: null }, { object: { objectId: 7 } }]) assert.equal(objects.take({ event: "advertise", size: 1, data }), undefined)
})

test("the remembered versions are bounded", () => {
  const objects = new LastObjects()
  const take = (number, size = 100) => objects.take(frame({ objectId: `o-${number}` }, { size }))
  for (let number = 0; number <= maximumRemembered; number += 1) take(number)
  assert.equal(take(0), undefined, "seen least recently")
  assert.notEqual(take(maximumRemembered), undefined)
  for (let number = 0; number < 100; number += 1) take(`large-${number}`, maximumCompared)
  assert.equal(take(maximumRemembered), undefined, "too many bytes")
  assert.equal(take("huge", maximumCompared + 1), undefined)
  assert.equal(take("huge"), undefined)
})

test("a row shows the name, and what has changed or the values", () => {
  const subject = (frame, before) => rowOf({ at: 0, frame, before: before?.data.object }, names).cells[3].join("")
  assert.equal(subject(frame({ isOpen: true })), "Front door · isOpen: true")
  assert.equal(subject(frame({ isOpen: true }), frame({ isOpen: false })), "Front door · isOpen: false → true")
  assert.equal(subject(frame({ isOpen: true }), frame({ isOpen: true })), "Front door · isOpen: true", "advertised again")
  assert.equal(subject(frame({ isOpen: true }, { event: "channel", channelId: "doors" })), "doors › Front door · isOpen: true")
  assert.equal(subject(frame({ name: "Back door" }), frame({})), "Back door · name: Front door → Back door")
  assert.equal(subject(frame({})), "Front door")
  assert.equal(subject({ event: "deadvertise", data: { objectIds: ["o-1"] } }), "o-1")
  for (const object of [null, 7, "x", [1], { length: 3 }]) assert.equal(typeof subject({ event: "advertise", data: { object } }), "string")
})

test("a cut text keeps its end", () => {
  assert.equal(lineEnd("com.example.Door", 6), "…e.Door")
  assert.equal(lineEnd("Door", 6), "Door")
  assert.equal(lineEnd({ a: 1 }, 60), '{ "a": 1 }')
  assert.equal(lineEnd(undefined), "")
  assert.deepEqual(ends("com.example.Door"), ["com.example.", "Door"])
  assert.deepEqual(ends("house/hall/door"), ["house/hall/", "door"])
  assert.deepEqual([ends("Door"), ends("Door."), ends("")], [["", "Door"], ["", "Door."], ["", ""]])
})
