import assert from "node:assert/strict"
import { test } from "node:test"
import { formFields, suggestions } from "../../../Sources/CoatyGateway/Console/routing-form.js"

test("the context's properties have fields, the operating state first", () => {
  const context = JSON.parse(`{"coreType": "IoContext", "objectType": "t", "objectId": "o", "name": "n", "limit": 5, "isOn": true,
    "operatingState": "normal", "more": {"a": 1}, "none": null, "__proto__": "x"}`)
  assert.deepEqual(formFields(context), {
    fields: [{ name: "operatingState", kind: "text" }, { name: "limit", kind: "number" }, { name: "isOn", kind: "checkbox" }], others: 2,
  })
  assert.deepEqual(formFields({ name: "n" }), { fields: [], others: 0 })
  const many = Object.fromEntries(Array.from({ length: 50 }, (_, number) => [`p${number}`, number]))
  assert.deepEqual([formFields(many).fields.length, formFields(many).others], [20, 30])
})

test("the characteristics of nodes are suggested", () => {
  const nodes = [
    { characteristics: { state: "normal", level: 3 } }, { characteristics: { state: "emergency", also: "normal" } },
    { characteristics: null }, {}, { characteristics: { long: "x".repeat(500) } },
  ]
  assert.deepEqual(suggestions(nodes), ["emergency", "normal"])
})
