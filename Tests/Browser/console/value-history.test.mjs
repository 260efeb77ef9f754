import assert from "node:assert/strict"
import { test } from "node:test"
import { AliveObjects } from "../../../Sources/CoatyGateway/Console/alive-objects.js"
import { stairs, timeOf } from "../../../Sources/CoatyGateway/Console/plot.js"
import { scaleOf } from "../../../Sources/CoatyGateway/Console/sparkline.js"
import {
  Histories, Series, keptTime, maximumSeries, maximumSeriesOfOwner, numbers, numberText, pointTime, summary,
} from "../../../Sources/CoatyGateway/Console/value-history.js"

const values = (points) => points.map(({ value }) => value)

test("values in quick succession are one point with its extremes", () => {
  const series = new Series()
  for (const [time, value] of [[0, 5], [100, 9], [200, 1], [pointTime, 4]]) series.take(time, value)
  assert.deepEqual(series.points, [{ time: 0, value: 1, low: 1, high: 9 }, { time: pointTime, value: 4, low: 4, high: 4 }])
  assert.deepEqual(summary(series.points), { low: 1, high: 9, last: 4 })
  assert.equal(summary([]), undefined)
})

test("points are kept for ten minutes, with the value before them", () => {
  const series = new Series()
  for (let time = 0; time <= 2 * keptTime; time += 1000) series.take(time, time)
  assert.equal(series.points[0].time, keptTime)
  assert.ok(series.points.length <= keptTime / 1000 + 1)
  const slow = new Series()
  slow.take(0, 1)
  slow.take(5 * keptTime, 2)
  assert.deepEqual(values(slow.points), [1, 2])
})

test("a series begins with the first change of a number", () => {
  const histories = new Histories()
  histories.takeChanges("o", [{ property: "name", before: "a", after: "b" }], 0, 1000)
  assert.deepEqual(histories.of("o"), [])
  const change = (before, after) => [{ property: "at", before: { x: before, y: 7, z: "-" }, after: { x: after, y: 7, z: "-" } }]
  histories.takeChanges("o", change(1, 2), 200, 5000)
  histories.takeChanges("o", change(2, 3), 5000, 9000)
  assert.deepEqual(histories.of("o").map(([name, points]) => [name, points.map(({ time, value }) => [time, value])]),
    [["at.x", [[200, 1], [5000, 2], [9000, 3]]]])
  assert.deepEqual(histories.points("o", "at.x").length, 3)
  assert.deepEqual(histories.points("o", "at.y"), [])
})

test("an agent's clock that is ahead creates no point in the future", () => {
  const histories = new Histories()
  histories.takeChanges("o", [{ property: "n", before: 1, after: 2 }], 99_000, 5000)
  assert.deepEqual(histories.points("o", "n").map(({ time, value }) => [time, value]), [[5000 - pointTime, 1], [5000, 2]])
})

test("the number of series is bounded, and the owner with the oldest value is removed", () => {
  const histories = new Histories()
  for (let number = 0; number <= maximumSeries; number += 1) {
    histories.take(`o${number}`, "", number, number)
    histories.take("kept", "", number, number)
  }
  assert.equal(histories.points("o0").length, 0)
  assert.ok(histories.points("kept").length > 0)
  for (let number = 0; number < 100; number += 1) histories.take("many", `n${number}`, 0, number)
  assert.equal(histories.of("many").length, maximumSeriesOfOwner)
})

test("the numbers of an object are kept over a reconnect", () => {
  const event = (change, object) => ({ op: "event", change, sourceId: "agent", size: 100, data: { object: { objectId: "o", ...object } } })
  const alive = new AliveObjects()
  alive.take(event("added", { level: 1, of: { deep: 4 }, label: "x" }), 0)
  alive.take(event("changed", { level: 2, of: { deep: 4 }, label: "y" }), 10_000)
  alive.take(event("changed", { level: 2, of: { deep: 5 }, label: "y" }), 20_000)
  assert.deepEqual(alive.histories.of("o").map(([name, points]) => [name, values(points)]), [["level", [1, 2]], ["of.deep", [4, 5]]])
  alive.histories.interrupt(30_000)
  alive.entries.clear()
  alive.take(event("added", { level: 7, of: { deep: 5 } }), 40_000)
  assert.deepEqual(values(alive.histories.points("o", "level")), [1, 2, null, 7])
})

test("finite numbers are found in data of any shape", () => {
  const found = (value) => [...numbers(value, "p")]
  assert.deepEqual(found(3), [["p", 3]])
  assert.deepEqual(found({ a: 1, b: { c: 2, d: [3] }, e: "4", f: null }), [["p.a", 1], ["p.b.c", 2]])
  assert.deepEqual(found(Infinity), [])
  assert.deepEqual(found({ a: 2n ** 64n, b: 10n ** 400n }), [["p.a", 2 ** 64]])
  assert.deepEqual(found(JSON.parse('{"__proto__": 5}')), [["p.__proto__", 5]])
  let deep = 1
  for (let level = 0; level < 5000; level += 1) deep = { deep }
  assert.deepEqual(found(deep), [])
})

test("a line keeps each value until the next, with gaps while it was not observed", () => {
  const points = [{ time: 0, value: 1, low: 1, high: 1 }, { time: 10, value: 3, low: 1, high: 5 }, { time: 20, value: null }, { time: 30, value: 2, low: 2, high: 2 }]
  assert.deepEqual(stairs(points, 40).map(({ time, rate }) => [time, rate]),
    [[0, 1], [10, 1], [10, 1], [10, 5], [10, 3], [20, 3], [20, null], [30, 2], [40, 2]])
  assert.deepEqual(stairs([], 40), [])
})

test("the shown time fits the points", () => {
  const since = (age) => timeOf([{ time: 1e9 - age }], 1e9)
  assert.deepEqual([0, 60_000, 61_000, 130_000, 301_000, 9e9].map(since), [60_000, 60_000, 120_000, 300_000, 600_000, 600_000])
})

test("a scale has round bounds around its values", () => {
  assert.deepEqual(scaleOf(0, 10), { begin: 0, end: 10 })
  assert.deepEqual(scaleOf(20.13, 20.87), { begin: 20, end: 21 })
  assert.deepEqual(scaleOf(-3, 48), { begin: -20, end: 60 })
  for (const [low, high] of [[21, 21], [0, 0], [-7, -7], [0.1, 0.3], [1e-9, 3e-9], [-1e308, 1e308], [123456, 123457]]) {
    const { begin, end } = scaleOf(low, high)
    assert.ok(begin <= low && high <= end && begin < end, `${low} ${high}: ${begin} ${end}`)
  }
})

test("values are formatted with few characters", () => {
  assert.deepEqual([0, 21.5, -3, 1234567.8, 0.1 + 0.2, 12e12, 0.0000042].map(numberText),
    ["0", "21.5", "-3", "1,234,570", "0.3", "1.2e+13", "4.2e-6"])
})
