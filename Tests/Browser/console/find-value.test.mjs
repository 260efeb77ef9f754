import assert from "node:assert/strict"
import { test } from "node:test"
import { frameHasValue, hasValue, maximumCompared } from "../../../Sources/CoatyGateway/Console/find-value.js"

const reading = { coreType: "CoatyObject", objectType: "com.example.Reading", objectId: "o-1", name: "Hall", unit: "Celsius", location: { floors: [3, { room: "Turbines" }] } }

test("a value is found at any depth, and so is the name of a member", () => {
  for (const text of ["celsius", "elsi", "turbines", "room", "unit", "com.example", "o-1", "hall"]) assert.ok(hasValue(reading, text), text)
  for (const text of ["fahrenheit", "coatyobject", "objecttype", "core"]) assert.ok(!hasValue(reading, text), text)
})

test("numbers, booleans and null are found as JSON has them", () => {
  const values = { a: 21.5, b: false, c: null, d: 9007199254740993n }
  for (const text of ["21.5", "false", "null", "9007199254740993"]) assert.ok(hasValue(values, text), text)
})

test("the data of each kind of event is searched", () => {
  const object = { object: reading }
  assert.ok(frameHasValue({ event: "advertise", data: object }, "celsius"))
  assert.ok(frameHasValue({ event: "retrieve", data: { objects: [{}, reading] } }, "celsius"))
  assert.ok(frameHasValue({ event: "call", data: { parameters: ["Celsius"] } }, "celsius"))
  assert.ok(frameHasValue({ event: "return", data: { error: { code: -32602, message: "no unit" } } }, "-32602"))
  assert.ok(frameHasValue({ event: "iovalue", data: { value: 21.5 } }, "21.5"))
  assert.ok(frameHasValue({ event: "raw", data: { encoding: "base64", value: btoa("in Celsius") } }, "celsius"))
  assert.ok(!frameHasValue({ event: "raw", data: { encoding: "base64", value: btoa("in Celsius") } }, "base64"))
  assert.ok(!frameHasValue({ event: "raw", data: { encoding: "base64", value: "/w==" } }, "/w"), "no UTF-8")
  assert.ok(!frameHasValue({ event: "advertise", data: object }, "object"), "every event has this name")
})

test("data of any shape is accepted, and the search is bounded", () => {
  for (const data of [undefined, null, 7, "x", [], {}, { object: null }, { encoding: 7, value: {} }]) assert.equal(frameHasValue({ data }, "y"), false)
  let deep = "celsius"
  for (let depth = 0; depth < 100_000; depth += 1) deep = [deep]
  assert.equal(hasValue(deep, "celsius"), false)
  const wide = Array.from({ length: 1_000_000 }, () => "x")
  assert.equal(hasValue([...wide, "celsius"], "celsius"), false)
  assert.ok(hasValue(["celsius", ...wide.slice(0, maximumCompared / 2)], "celsius"))
})
