import assert from "node:assert/strict"
import test from "node:test"
import { shortId } from "../../../Sources/CoatyGateway/Console/dom.js"
import { prettyJSON } from "../../../Sources/CoatyGateway/Console/json-print.js"
import { kind, octets, sender, subject } from "../../../Sources/CoatyGateway/Console/summary.js"

const known = new Map([["a-1", "Lamp agent"], ["s-1", "Thermometer"], ["t-1", "Heating"]])
const names = { of: (id) => known.get(id) ?? shortId(id) }
const object = { objectId: "o-1", objectType: "com.example.Door", coreType: "CoatyObject", name: "Front\ndoor" }

test("an event is summarized in one line", () => {
  const cases = [
    [{ event: "advertise", data: { object } }, "Front door"],
    [{ event: "advertise", data: { object: { ...object, name: " " } } }, "o-1"],
    [{ event: "deadvertise", data: { objectIds: ["a-1"] } }, "Lamp agent"],
    [{ event: "deadvertise", data: { objectIds: ["a-1", "o-1"] } }, "2 objects"],
    [{ event: "channel", channelId: "news", data: { objects: [object, object] } }, "news › 2 objects"],
    [{ event: "discover", data: { coreTypes: ["Identity"] } }, "Identity"],
    [{ event: "query", data: { objectTypes: ["a.B", "a.C"] } }, "a.B, a.C"],
    [{ event: "resolve", data: { relatedObjects: [object] } }, "1 related object"],
    [{ event: "retrieve", data: { objects: [object] } }, "Front door"],
    [{ event: "call", operation: "add", data: { parameters: [1, 2] } }, "add(1, 2)"],
    [{ event: "call", operation: "off", data: {} }, "off()"],
    [{ event: "return", data: { result: { sum: 3 } } }, '{ "sum": 3 }'],
    [{ event: "return", data: { error: { code: -32602, message: "Invalid params" } } }, "-32602 Invalid params"],
    [{ event: "associate", data: { ioSourceId: "s-1", ioActorId: "t-1", associatingRoute: "r" } }, "Thermometer → Heating"],
    [{ event: "associate", data: { ioSourceId: "s-1", ioActorId: "t-1" } }, "Thermometer → Heating, no longer"],
    [{ event: "iovalue", data: { value: 21.5 } }, "21.5"],
    [{ event: "raw", topic: "t", data: { encoding: "base64", value: btoa("open") } }, "open"],
  ]
  for (const [frame, text] of cases) assert.equal(subject(frame, names), text)
})

test("data of any shape is summarized", () => {
  const parts = [
    null, true, 7, 2n ** 64n, "x", "", [], {}, [null], [[]], { length: 20 }, { toString: 1, valueOf: 1 }, { length: { toLocaleString: 1 } },
    JSON.parse('{"__proto__":{"name":1},"constructor":2}'), { name: {}, objectId: [] }, { code: { toString: 1 }, message: [] },
  ]
  const members = ["object", "objects", "objectIds", "coreTypes", "objectTypes", "objectId", "externalId", "relatedObjects", "error",
    "result", "parameters", "ioSourceId", "ioActorId", "associatingRoute", "value", "encoding"]
  const payloads = [{}, ...members.flatMap((member) => parts.flatMap((part) => [{ [member]: part }, { [member]: [part] }]))]
  const events = ["advertise", "deadvertise", "channel", "discover", "resolve", "query", "retrieve", "update", "complete", "call",
    "return", "associate", "iovalue", "raw"]
  for (const event of events) {
    for (const data of payloads) {
      const frame = { event, data, topic: "t", sourceId: "a-1" }
      for (const text of [subject(frame, names), kind(frame), sender(frame, names)]) {
        assert.equal(typeof text, "string", `${event} ${prettyJSON(data)}`)
        assert.ok(text.length < 500 && !text.includes("\n"), `${event} ${prettyJSON(data)}`)
      }
    }
  }
})

test("the length of a summary is bounded", () => {
  const long = { event: "advertise", data: { object: { ...object, name: "x".repeat(1e6), objectType: "y".repeat(1e6) } } }
  assert.ok(subject(long, names).length < 300)
  assert.ok(kind(long).length < 300)
})

test("the sender or the IO source is named", () => {
  assert.equal(sender({ event: "call", sourceId: "a-1", data: {} }, names), "Lamp agent")
  assert.equal(sender({ event: "iovalue", ioSourceId: "s-1", data: {} }, names), "Thermometer")
  assert.equal(sender({ event: "raw", data: {} }, names), "")
})

test("binary octets are shown as their number", () => {
  assert.equal(octets({ value: btoa("\xff\xfe\x00") }), "3 octets")
  assert.equal(octets({ value: "" }), "")
})
