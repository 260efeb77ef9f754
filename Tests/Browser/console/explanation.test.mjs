import assert from "node:assert/strict"
import { test } from "node:test"
import { explain } from "../../../Sources/CoatyGateway/Console/explanation.js"

const base = {
  associated: false,
  compatible: true,
  valueTypes: { source: "com.example.T", actor: "com.example.T" },
  useRawIoValues: { source: false, actor: false },
  rules: [],
}
const explained = (changes) => explain({ ...base, ...changes }, "Probe", "Display")
const isState = (value, state) => ({
  holds: value === state, property: "actorNode.characteristics.state", value, operator: "Equals",
  operands: [{ property: "context.state", value: state }],
})

test("a rule that holds is named in the verdict", () => {
  const rules = [{ name: "States are equal", holds: true, condition: isState("on", "on") }]
  assert.deepEqual(explained({ associated: true, decidedBy: "States are equal", rules }), {
    isAssociated: true,
    verdict: "“Probe” and “Display” are associated by the rule “States are equal”.",
    parts: [{
      holds: true, text: "Rule “States are equal” holds:",
      parts: [{ holds: true, text: 'actorNode.characteristics.state is "on"; it equals context.state, which is "on".' }],
    }],
  })
})

test("a failed condition is shown with the compared values", () => {
  const { isAssociated, verdict, parts } = explained({ rules: [{ name: "States", holds: false, condition: isState("on", "off") }] })
  assert.equal(isAssociated, false)
  assert.equal(verdict, "“Probe” and “Display” are not associated: its rule does not hold.")
  assert.equal(parts[0].parts[0].text, 'actorNode.characteristics.state is "on"; it should equal context.state, which is "off".')
})

test("different value types and raw values are given as the reason", () => {
  assert.match(explained({ compatible: false, valueTypes: { source: "a", actor: "b" } }).verdict, /not associated: the source gives “a”, the actor takes “b”\.$/)
  assert.match(explained({ compatible: false, useRawIoValues: { source: true, actor: false } }).verdict, /gives raw values, the actor takes JSON values\.$/)
})

test("missing rules are given as the reason", () => {
  assert.match(explained({}).verdict, /not associated: no rule is for “com\.example\.T”\.$/)
})

test("each part of a condition has its own line", () => {
  const condition = {
    holds: false,
    and: [
      { holds: true, or: [{ holds: true, property: ["a", "b.c"], operator: "Exists", operands: [], value: 1 }] },
      { holds: false, not: { holds: true, property: "x", value: 5, operator: "Between", operands: [{ value: 1 }, { value: 9 }] } },
      { holds: false, property: "y", operator: "LessThan", operands: [{ property: "z" }] },
      { holds: false, property: "long", valueBegins: "[1,2", valueLength: 5000, operator: "Contains", operands: [{ value: 7 }] },
      { holds: false, tooDeep: true },
      { holds: false, exhausted: true },
    ],
  }
  const rules = [{ name: "A", holds: false, condition }, { name: "B", holds: false }]
  const { verdict, parts } = explained({ rules })
  assert.match(verdict, /no rule holds\.$/)
  const texts = (parts) => parts.flatMap(({ text, parts = [] }) => [text, ...texts(parts)])
  assert.deepEqual(texts(parts), [
    "Rule “A” does not hold:",
    "All of these hold:",
    "One of these holds at least:",
    "a.b.c is there: 1.",
    "This does not hold:",
    "x is 5; it is between 1 and 9.",
    "y is not there; it should be less than z, which is not there.",
    "long is [1,2… (5000 bytes); it should contain 7.",
    "The condition is nested too deep.",
    "The condition takes too much work.",
    "Rule “B” does not hold.",
  ])
})
