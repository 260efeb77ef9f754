import assert from "node:assert/strict"
import test from "node:test"
import { eventKey } from "../../../Sources/CoatyGateway/Console/event-key.js"
import { exportLines, fileName } from "../../../Sources/CoatyGateway/Console/feed-export.js"
import { FeedFilter, nameDimension, valueOf } from "../../../Sources/CoatyGateway/Console/feed-filter.js"

const object = { objectId: "o-1", objectType: "com.example.Door", coreType: "CoatyObject", name: "Front door" }
const frames = {
  door: { op: "event", event: "advertise", sourceId: "a-1", topic: "coaty/3/-/ADV:CoatyObject/a-1", data: { object } },
  news: { op: "event", event: "channel", channelId: "news", sourceId: "a-2", data: { object } },
  call: { op: "event", event: "call", operation: "add", sourceId: "a-1", correlationId: "c-1", data: { parameters: [1] } },
  answer: { op: "event", event: "return", sourceId: "a-2", correlationId: "c-1", data: { result: 1 } },
  value: { op: "event", event: "iovalue", ioSourceId: "s-1", data: { value: 1 } },
  raw: { op: "event", event: "raw", topic: "sensors/1", data: { encoding: "base64", value: "" } },
  gap: { op: "gap", dropped: 1 },
}

function shown(parameters) {
  const filter = FeedFilter.from(parameters)
  return Object.keys(frames).filter((name) => filter.shows(frames[name], (text) => name.includes(text)))
}

test("only matching events are shown", () => {
  assert.deepEqual(shown({}), Object.keys(frames))
  assert.deepEqual(shown({ kinds: "call,return" }), ["call", "answer", "gap"], "a gap is shown for any kinds")
  assert.deepEqual(shown({ kinds: "call,raw" }), ["call", "raw", "gap"])
  assert.deepEqual(shown({ sender: "a-1" }), ["door", "call"])
  assert.deepEqual(shown({ sender: "s-1" }), ["value"])
  assert.deepEqual(shown({ type: "com.example.Door", channel: "news" }), ["news"])
  assert.deepEqual(shown({ operation: "add", kinds: "return" }), [])
  assert.deepEqual(shown({ topic: "sensors/1" }), ["raw"])
  assert.deepEqual(shown({ find: " DOOR " }), ["door"])
  assert.deepEqual(shown({ kinds: "nothing", unknown: "x", __proto__: { sender: "x" } }), Object.keys(frames))
})

test("parameters that were read are written unchanged", () => {
  const parameters = { kinds: "call,return", sender: "a-1", type: "t" }
  assert.deepEqual(FeedFilter.from({ ...parameters, event: "x" }).parameters, parameters)
  assert.deepEqual(FeedFilter.from({ kinds: "raw,return,x,call" }).parameters, { kinds: "call,return,raw" })
})

test("the name of an event is found", () => {
  assert.equal(nameDimension(frames.news), "channel")
  assert.equal(nameDimension(frames.call), "operation")
  assert.equal(nameDimension(frames.raw), "topic")
  assert.equal(nameDimension(frames.door), undefined)
  assert.equal(valueOf({ ...frames.door, data: { object: { objectType: 7 } } }, "type"), undefined)
})

test("an event is found by its key", () => {
  const keys = Object.values(frames).filter(({ op }) => op === "event").map(eventKey)
  assert.equal(new Set(keys).size, keys.length)
  assert.equal(eventKey(structuredClone(frames.door)), eventKey(frames.door))
  assert.notEqual(eventKey({ ...frames.door, data: { object: { ...object, isOpen: true } } }), eventKey(frames.door))
  assert.equal(eventKey({ ...frames.call, data: {} }), eventKey(frames.call))
})

test("events are exported as lines of JSON", () => {
  const text = exportLines([{ at: 0, frame: { ...frames.door, size: 9 } }, { at: 1500, frame: { ...frames.call, data: { parameters: ["a\nb"] } } }])
  const lines = text.split("\n")
  assert.equal(lines.pop(), "")
  const { op, ...door } = frames.door
  assert.deepEqual(JSON.parse(lines[0]), { time: "1970-01-01T00:00:00.000Z", ...door })
  assert.deepEqual(JSON.parse(lines[1]).data, { parameters: ["a\nb"] })
  assert.equal(fileName(0), "coaty-events-1970-01-01T00-00-00.ndjson")
})
