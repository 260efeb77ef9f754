import assert from "node:assert/strict"
import test from "node:test"
import { conditionOf, operators, rowsOf } from "../../../Sources/CoatyGateway/Console/condition.js"

const one = (property, operator, value = "") => conditionOf({ join: "and", rows: [{ property, operator, value }] })

test("rows are converted to a condition", () => {
  assert.deepEqual(one("name", "Like", "%door%"), ["name", ["Like", "%door%"]])
  assert.deepEqual(one(" status ", "Equals", "3"), ["status", ["Equals", 3]])
  assert.deepEqual(one("status", "Equals", '"3"'), ["status", ["Equals", "3"]])
  assert.deepEqual(one("isOpen", "Equals", "true"), ["isOpen", ["Equals", true]])
  assert.deepEqual(one("a.b", "Between", "1, 9"), ["a.b", ["Between", 1, 9]])
  assert.deepEqual(one("state", "In", "open, half open"), ["state", ["In", ["open", "half open"]]])
  assert.deepEqual(one("state", "In", '"a, b", 3'), ["state", ["In", ["a, b", 3]]])
  assert.deepEqual(one("state", "In"), ["state", ["In", []]])
  assert.deepEqual(one("name", "Exists", "ignored"), ["name", ["Exists"]])
  assert.equal(one("", "Equals", "x"), undefined)
  const rows = [{ property: "a", operator: "Exists", value: "" }, { property: "", operator: "Equals", value: "" }, { property: "b", operator: "LessThan", value: "1" }]
  assert.deepEqual(conditionOf({ join: "or", rows }), { or: [["a", ["Exists"]], ["b", ["LessThan", 1]]] })
})

test("conditions made from rows are converted back to rows", () => {
  const values = ["door", "3", '"3"', "true", "null", '[1, "a"]', '{"a":1}', "", "a, b", "%", "it's", '"']
  for (const [operator, { values: count }] of Object.entries(operators)) {
    for (const value of count === 2 ? ["1, 9", "a, b"] : values) {
      for (const join of ["and", "or"]) {
        const rows = [{ property: "a.b", operator, value }, { property: "c", operator: "Exists", value: "" }]
        for (const form of [{ join: "and", rows: rows.slice(0, 1) }, { join, rows }]) {
          const condition = conditionOf(form)
          const again = rowsOf(condition)
          // A row can't show an object as an operand.
          if (again === undefined) assert.match(value, /^\{/)
          else assert.deepEqual(conditionOf(again), condition)
        }
      }
    }
  }
})

test("conditions that rows can't express are not converted", () => {
  const others = [
    null, true, 7, "x", [], {}, ["name"], [["a", "b"], ["Equals", 1]], ["name", ["Is", 1]], ["name", ["Equals"]], ["name", ["Equals", 1, 2]],
    ["name", ["toString", 1]], ["name", [7, 1]], ["name", ["Equals", { property: "b" }]], ["name", ["In", 1]], ["name", "Equals"], ["", ["Exists"]],
    { not: ["name", ["Exists"]] }, { and: [] }, { and: [{ or: [] }] }, { and: ["name"] }, { and: [["a", ["Exists"]]], or: [] }, { and: 1 },
    // A single condition differs from a list with one condition.
    [" a", ["Exists"]],
  ]
  for (const condition of others) assert.equal(rowsOf(condition), undefined, JSON.stringify(condition))
  assert.deepEqual(rowsOf(undefined), { join: "and", rows: [] })
})
