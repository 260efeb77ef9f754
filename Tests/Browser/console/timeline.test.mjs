import assert from "node:assert/strict"
import test from "node:test"
import { maximumItems } from "../../../Sources/CoatyGateway/Console/ring.js"
import { Timeline } from "../../../Sources/CoatyGateway/Console/timeline.js"

const all = () => true

function push(timeline, ...numbers) {
  for (const number of numbers) timeline.push({ op: "event", number, size: 1 }, number)
}

/** Returns the shown entries: events as numbers, gaps and pauses as texts. */
const shown = (timeline, limit = 100) => timeline.entries(all, limit).map(({ frame, came, gone }) =>
  frame === undefined ? `${came} came, ${gone} gone` : frame.op === "gap" ? "gap" : frame.number)

test("the newest events come first", () => {
  const timeline = new Timeline()
  push(timeline, 1, 2, 3)
  assert.deepEqual(shown(timeline), [3, 2, 1])
  assert.deepEqual(shown(timeline, 2), [3, 2])
  assert.deepEqual(timeline.entries(({ frame }) => frame.number !== 2, 100).map(({ frame }) => frame.number), [3, 1])
})

test("a paused timeline is unchanged and counts new events", () => {
  const timeline = new Timeline()
  push(timeline, 1, 2)
  timeline.stop("asked")
  push(timeline, 3, 4)
  assert.equal(timeline.isPaused, true)
  assert.deepEqual(shown(timeline), [2, 1])
  assert.deepEqual(timeline.missed(), { came: 2, gone: 0 })
  timeline.resume()
  assert.equal(timeline.reason, undefined)
  assert.deepEqual(shown(timeline), [4, 3, "2 came, 0 gone", 2, 1])
  timeline.stop("asked")
  assert.deepEqual(shown(timeline), [4, 3, "2 came, 0 gone", 2, 1])
  timeline.resume()
  assert.deepEqual(shown(timeline), [4, 3, "2 came, 0 gone", 2, 1], "no new events")
})

test("a pause by pointing leaves no mark", () => {
  const timeline = new Timeline()
  push(timeline, 1)
  timeline.stop("held")
  assert.equal(timeline.isPaused, false)
  push(timeline, 2)
  assert.deepEqual(shown(timeline), [1])
  timeline.stop("opened")
  assert.deepEqual(shown(timeline), [1], "opening the event keeps the shown events")
  assert.equal(timeline.isPaused, true)
  timeline.stop("held")
  timeline.resume()
  assert.deepEqual(shown(timeline), [2, 1])
})

test("a paused timeline keeps the shown events and counts those no longer kept", () => {
  const timeline = new Timeline()
  push(timeline, 1, 2)
  timeline.stop("asked")
  push(timeline, ...Array.from({ length: maximumItems + 5 }, (_, number) => number + 3))
  assert.deepEqual(shown(timeline), [2, 1])
  assert.deepEqual(timeline.missed(), { came: maximumItems + 5, gone: 5 })
  timeline.resume()
  assert.equal(timeline.kept, maximumItems)
  const entries = shown(timeline, Infinity)
  assert.equal(entries[0], maximumItems + 7)
  assert.deepEqual(entries.slice(-2), [8, `${maximumItems + 5} came, 5 gone`])
  push(timeline, ...Array.from({ length: maximumItems }, () => 0))
  assert.deepEqual(shown(timeline, Infinity).slice(-1), [0], "the mark is removed with its events")
})

test("gaps are counted as dropped events", () => {
  const timeline = new Timeline()
  push(timeline, 1)
  timeline.stop("asked")
  timeline.push({ op: "gap", dropped: 7, size: 0 }, 2)
  timeline.push({ op: "gap", dropped: null, size: 0 }, 2)
  push(timeline, 2)
  assert.deepEqual(timeline.missed(), { came: 1, gone: 0 })
  timeline.resume()
  assert.equal(timeline.events, 2)
  assert.equal(timeline.dropped, 7)
  assert.deepEqual(shown(timeline), [2, "gap", "gap", "1 came, 0 gone", 1])
})

test("a cleared timeline takes new events", () => {
  const timeline = new Timeline()
  push(timeline, 1)
  timeline.stop("asked")
  push(timeline, 2)
  timeline.clear()
  push(timeline, 3)
  assert.deepEqual(shown(timeline), [3])
  assert.equal(timeline.events, 3)
})

test("many events of one kind do not displace others, and a request keeps its responses", () => {
  const timeline = new Timeline()
  const push = (event, correlationId) => timeline.push({ op: "event", event, correlationId, size: 1 }, 0)
  push("call", "c")
  for (let number = 0; number < maximumItems + 10; number += 1) push("iovalue")
  push("return", "c")
  push("return", "other")
  push("retrieve", "c")
  assert.equal(timeline.kept, maximumItems + 4)
  assert.deepEqual(timeline.correlated({ event: "call", correlationId: "c" }, 10).map(({ frame }) => frame.event), ["call", "return"])
  assert.deepEqual(timeline.correlated({ event: "complete", correlationId: "c" }, 10), [])
  const events = timeline.entries(({ frame }) => frame.event !== "iovalue", 100).map(({ frame }) => frame.event)
  assert.deepEqual(events, ["retrieve", "return", "return", "call"], "newest first")
  assert.equal(timeline.entries(all, 5).length, 5)
  assert.equal(timeline.find(({ frame }) => frame.event === "call").frame.correlationId, "c")
})

test("the mark of a pause is shown if a filter matches few events", () => {
  const timeline = new Timeline()
  push(timeline, 1)
  timeline.stop("asked")
  push(timeline, 2)
  timeline.resume()
  push(timeline, 3)
  assert.deepEqual(timeline.entries(({ frame }) => frame.number === 3, 100).map(({ frame, came }) => frame?.number ?? `${came} came`), [3, "1 came"])
})
