import assert from "node:assert/strict"
import { test } from "node:test"
import { maximumWidths, TextWidths } from "../../../Sources/CoatyGateway/Console/text-widths.js"

test("a text is measured once per style", () => {
  const measured = []
  const widths = new TextWidths((text, style) => measured.push(`${style} ${text}`) && text.length)
  for (const style of ["name", "type", "name", "type"]) assert.equal(widths.of("Probe", style), 5)
  assert.deepEqual(measured, ["name Probe", "type Probe"])
  assert.deepEqual([widths.of("", "name"), widths.of("__proto__", "name"), widths.of("", "name")], [0, 9, 0])
  assert.equal(measured.length, 4)
})

test("the number of kept widths is bounded", () => {
  let count = 0
  const widths = new TextWidths(() => ++count)
  for (let index = 0; index < maximumWidths; index++) widths.of(`${index}`, "name")
  assert.equal(widths.of("0", "name"), 1)
  widths.of("one more", "name")
  widths.of("0", "name")
  assert.equal(count, maximumWidths + 2)
})
