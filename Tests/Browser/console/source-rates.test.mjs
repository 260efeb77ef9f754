import assert from "node:assert/strict"
import { test } from "node:test"
import { valueNumbers } from "../../../Sources/CoatyGateway/Console/routing-source.js"
import { SourceRates, measuredText } from "../../../Sources/CoatyGateway/Console/source-rates.js"

test("a rate is the mean of the last intervals", () => {
  const rates = new SourceRates()
  assert.equal(rates.of("s", 0), undefined)
  rates.take("s", 0)
  assert.equal(measuredText(rates.of("s", 10)), "one value")
  for (const time of [900, 2100, 3000]) rates.take("s", time)
  assert.deepEqual(rates.of("s", 3500, 1000), { interval: 1000, silence: 500, isSilent: false })
  assert.equal(measuredText(rates.of("s", 3500)), "every 1 s")
  for (let number = 0; number < 40; number += 1) rates.take("fast", number * 20)
  assert.equal(measuredText(rates.of("fast", 800)), "every 20 ms")
  assert.equal(measuredText(null), "not known now", "while the gateway is away")
  assert.equal(measuredText(undefined), "no value yet")
})

test("a source without values for several intervals is silent", () => {
  const rates = new SourceRates()
  for (const time of [0, 1000, 2000]) rates.take("s", time)
  assert.equal(rates.of("s", 4900, 1000).isSilent, false)
  assert.equal(measuredText(rates.of("s", 14_000, 1000)), "silent for 12 s")
  // With a longer agreed interval, the source is not silent.
  assert.equal(rates.of("s", 14_000, 5000).isSilent, false)
  rates.clear()
  assert.equal(rates.of("s", 14_000), undefined)
})

test("a source with long intervals has a rate", () => {
  const rates = new SourceRates()
  for (const time of [0, 300_000, 600_000]) rates.take("s", time)
  assert.equal(measuredText(rates.of("s", 700_000, 300_000)), "every 5 min")
})

test("values of an earlier rate are ignored", () => {
  const rates = new SourceRates()
  for (const time of [0, 100, 200, 300]) rates.take("s", time)
  for (let time = 70_000; time < 140_000; time += 10_000) rates.take("s", time)
  assert.equal(rates.of("s", 140_000).interval, 10_000)
})

test("numbers are found in IO values", () => {
  const octets = (text) => ({ encoding: "base64", value: btoa(text) })
  assert.deepEqual(valueNumbers({ value: 21.5 }), [["", 21.5]])
  assert.deepEqual(valueNumbers({ value: { t: 1, at: { x: 2 }, y: 3, z: 4 } }), [["t", 1], ["at.x", 2], ["y", 3]])
  assert.deepEqual(valueNumbers(octets(" 21.5 ")), [["", 21.5]])
  for (const data of [octets("open"), octets(""), { value: "7" }, { value: null }, undefined, octets("Infinity")]) assert.deepEqual(valueNumbers(data), [])
})
