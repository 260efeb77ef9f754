import assert from "node:assert/strict"
import { test } from "node:test"
import { bytes, steps } from "../../../Sources/CoatyGateway/Console/gateway-clients.js"
import { reloadText, rows } from "../../../Sources/CoatyGateway/Console/gateway-parts.js"
import { ClientRates, Rates, maximumStep, minimumStep, quantile, rateText, span } from "../../../Sources/CoatyGateway/Console/rates.js"
import { runs, scaleEnd } from "../../../Sources/CoatyGateway/Console/sparkline.js"

const of = (rates) => rates.of("delivered").map(({ rate }) => rate)

test("a rate is the increase of a counter per second", () => {
  const rates = new Rates()
  assert.deepEqual(of(rates), [])
  rates.take(1000, 1, { delivered: 100 })
  assert.deepEqual(of(rates), [], "a single answer has no rate")
  rates.take(2000, 1, { delivered: 150 })
  rates.take(4000, 1, { delivered: 150 })
  rates.take(4500, 1, { delivered: 160 })
  assert.deepEqual(of(rates), [50, 0, 20])
  rates.take(4500, 1, { delivered: 999 })
  assert.deepEqual(of(rates), [50, 0, 20], "no time has passed")
})

test("an interval without requests has no rate", () => {
  const rates = new Rates()
  rates.take(0, 1, { delivered: 0 })
  rates.take(maximumStep + 1, 1, { delivered: 50 })
  rates.take(maximumStep + 1001, 1, { delivered: 60 })
  assert.deepEqual(of(rates), [null, 10])
})

test("samples that are close together are not compared", () => {
  const rates = new Rates()
  rates.take(0, 1, { delivered: 0 })
  rates.take(1000, 1, { delivered: 20 })
  rates.take(1000 + minimumStep - 1, 1, { delivered: 40 })
  rates.take(2000, 1, { delivered: 40 })
  assert.deepEqual(of(rates), [20, 20])
  const clients = new ClientRates()
  clients.take(0, 1, [{ client: "a", work: 0 }])
  clients.take(minimumStep - 1, 1, [{ client: "a", work: 20 }])
  assert.equal(clients.of("a", "work"), null)
})

test("counters of different starts are not compared", () => {
  const rates = new Rates()
  rates.take(0, 1, { delivered: 1000 })
  rates.take(1000, 2, { delivered: 1010 })
  assert.deepEqual(of(rates), [])
  rates.take(2000, 2, { delivered: 1015 })
  assert.deepEqual(of(rates), [5])
})

test("two minutes of answers are kept, up to a maximum", () => {
  const rates = new Rates()
  for (let second = 0; second <= 1000; second += 1) rates.take(second * 1000, 1, { delivered: second })
  const points = rates.of("delivered")
  assert.equal(points.length, span / 1000 + 1)
  assert.equal(points[0].time, 1_000_000 - span)
  for (let tick = 1; tick <= 1000; tick += 1) rates.take(1_000_000 + tick, 1, { delivered: 1000 })
  assert.ok(rates.of("delivered").length < 250)
})

test("rates are formatted with few characters", () => {
  assert.deepEqual([0, 0.01, 0.44, 1, 9.94, 9.96, 12.4, 1234.5].map(rateText), ["0", "0.1", "0.4", "1", "9.9", "10", "12", "1,235"])
})

test("the scale ends at a round number above all values", () => {
  assert.deepEqual([0, 0.3, 1, 1.1, 3, 7, 10, 11, 450, 99_999].map(scaleEnd), [1, 1, 1, 2, 5, 10, 10, 20, 500, 100_000])
})

test("the line has gaps where the rate is unknown", () => {
  const points = [0, 1, null, 2, 2, null, 1].map((rate, index) => ({ time: index * 1000, rate }))
  const shown = runs(points, 6000, 2)
  assert.equal(shown.length, 2, "a single point is not drawn")
  assert.deepEqual(shown.map((run) => run.length), [2, 2])
  for (const [x, y] of shown.flat()) assert.ok(x >= 0 && x <= 240 && y >= 0 && y <= 48)
})

test("a gauge has the requested values, and gaps between them", () => {
  const rates = new Rates()
  for (const [time, queued] of [[0, 3], [1000, 7], [maximumStep + 2000, 1]]) rates.take(time, 1, { queued })
  assert.deepEqual(rates.values("queued").map(({ rate }) => rate), [3, 7, null])
})

test("a quantile lies between the bounds of its durations", () => {
  const bounds = [1, 2, 4]
  assert.equal(quantile(bounds, [0, 0, 0, 0], 0.99), null)
  assert.equal(quantile(bounds, [10, 0, 0, 0], 0.5), 0.5)
  assert.equal(quantile(bounds, [5, 0, 5, 0], 0.5), 1)
  assert.equal(quantile(bounds, [5, 0, 5, 0], 0.75), 3)
  assert.equal(quantile(bounds, [0, 0, 4, 0], 1), 4)
  assert.equal(quantile(bounds, [1, 0, 0, 9], 0.99), 4, "beyond the last bound")
})

test("a quantile covers the last ten seconds", () => {
  const rates = new Rates()
  const bounds = [10, 100]
  const take = (time, ...counts) => rates.take(time, 1, { durations: { bounds, counts } })
  const last = () => rates.quantiles("durations", 0.5).at(-1).rate
  take(0, 1000, 0, 0)
  take(1000, 1000, 0, 0)
  assert.equal(last(), null, "nothing since the first answer")
  take(2000, 1000, 4, 0)
  assert.equal(last(), 55)
  for (let time = 3000; time <= 12_000; time += 1000) take(time, 1000 + time, 4, 0)
  assert.equal(last(), 5, "the slow ones are outside the window")
  take(12_000 + maximumStep + 1, 99_999, 8, 0)
  assert.equal(last(), null, "no request in between")
})

test("the usage of clients is known from the second answer", () => {
  const rates = new ClientRates()
  const take = (time, started, ...clients) => rates.take(time, started, clients.map(([client, work]) => ({ client, work })))
  take(0, 1, ["a", 100])
  assert.equal(rates.of("a", "work"), null)
  take(1000, 1, ["a", 150], ["b", 7])
  take(2000, 1, ["a", 300], ["b", 8])
  assert.equal(rates.of("a", "work"), 100)
  assert.equal(rates.of("b", "work"), 1)
  take(3000, 1, ["a", 2])
  assert.equal(rates.of("a", "work"), null, "its account was removed")
  take(4000, 2, ["a", 500])
  assert.equal(rates.of("a", "work"), null, "another start")
  for (let time = 5000; time <= 60_000; time += 1000) take(time, 2, ["a", 500 + (time > 40_000 ? time : 0)])
  assert.equal(rates.of("a", "work"), 1000, "of the last ten seconds")
})

test("steps and bytes are formatted with few characters", () => {
  assert.deepEqual([0, 850.4, 1200, 12_345, 999_400, 3_400_000].map(steps), ["0", "850", "1.2k", "12k", "999k", "3.4M"])
  assert.deepEqual([0, 1023, 2150, 268_435_456].map(bytes), ["0 B", "1023 B", "2.1 KiB", "256 MiB"])
})

test("a tree is flattened to rows, parents first", () => {
  const leaf = (name) => ({ name, state: "active", children: [] })
  const tree = { ...leaf("gateway"), children: [{ ...leaf("REST"), state: "paused", children: [leaf("x")] }, leaf("y")] }
  assert.deepEqual(rows(tree).map(({ name, state, depth }) => `${depth} ${name} ${state}`),
    ["0 gateway active", "1 REST paused", "2 x active", "1 y active"])
})

test("the text of a reload lists the changes", () => {
  assert.equal(reloadText([]), "Reloaded: no setting has changed.")
  assert.equal(reloadText(["access", "log-level"]), "Reloaded: access, log-level changed.")
})
