import assert from "node:assert/strict"
import { test } from "node:test"
import { Rates, maximumStep, rateText, span } from "../../../Sources/CoatyGateway/Console/rates.js"
import { runs, scaleEnd } from "../../../Sources/CoatyGateway/Console/sparkline.js"

const of = (rates) => rates.of("delivered").map(({ rate }) => rate)

test("a rate is what a counter grew by in a second", () => {
  const rates = new Rates()
  assert.deepEqual(of(rates), [])
  rates.take(1000, 1, { delivered: 100 })
  assert.deepEqual(of(rates), [], "one answer has no rate")
  rates.take(2000, 1, { delivered: 150 })
  rates.take(4000, 1, { delivered: 150 })
  rates.take(4500, 1, { delivered: 160 })
  assert.deepEqual(of(rates), [50, 0, 20])
  rates.take(4500, 1, { delivered: 999 })
  assert.deepEqual(of(rates), [50, 0, 20], "no time has passed")
})

test("where nobody has asked there is no rate", () => {
  const rates = new Rates()
  rates.take(0, 1, { delivered: 0 })
  rates.take(maximumStep + 1, 1, { delivered: 50 })
  rates.take(maximumStep + 1001, 1, { delivered: 60 })
  assert.deepEqual(of(rates), [null, 10])
})

test("another start is not compared", () => {
  const rates = new Rates()
  rates.take(0, 1, { delivered: 1000 })
  rates.take(1000, 2, { delivered: 1010 })
  assert.deepEqual(of(rates), [])
  rates.take(2000, 2, { delivered: 1015 })
  assert.deepEqual(of(rates), [5])
})

test("two minutes are kept, and not more than so many answers", () => {
  const rates = new Rates()
  for (let second = 0; second <= 1000; second += 1) rates.take(second * 1000, 1, { delivered: second })
  const points = rates.of("delivered")
  assert.equal(points.length, span / 1000 + 1)
  assert.equal(points[0].time, 1_000_000 - span)
  for (let tick = 1; tick <= 1000; tick += 1) rates.take(1_000_000 + tick, 1, { delivered: 1000 })
  assert.ok(rates.of("delivered").length < 250)
})

test("rates are short", () => {
  assert.deepEqual([0, 0.01, 0.44, 1, 9.94, 9.96, 12.4, 1234.5].map(rateText), ["0", "0.1", "0.4", "1", "9.9", "10", "12", "1,235"])
})

test("the scale ends at a round number that nothing reaches beyond", () => {
  assert.deepEqual([0, 0.3, 1, 1.1, 3, 7, 10, 11, 450, 99_999].map(scaleEnd), [1, 1, 1, 2, 5, 10, 10, 20, 500, 100_000])
})

test("the line is interrupted where there is no rate", () => {
  const points = [0, 1, null, 2, 2, null, 1].map((rate, index) => ({ time: index * 1000, rate }))
  const shown = runs(points, 6000, 2)
  assert.equal(shown.length, 2, "one point is no line")
  assert.deepEqual(shown.map((run) => run.length), [2, 2])
  for (const [x, y] of shown.flat()) assert.ok(x >= 0 && x <= 240 && y >= 0 && y <= 48)
})
