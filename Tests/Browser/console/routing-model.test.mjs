import assert from "node:assert/strict"
import { test } from "node:test"
import { Associations, edgesOf, graphNodes, isPlainTopic, maximumExternalRoutes, rateText, ratesOfSources, routesOf, unobservedText, valueText } from "../../../Sources/CoatyGateway/Console/routing-model.js"

const pair = (ioSourceId, ioActorId, updateRate) => ({ ioSourceId, ioActorId, updateRate })
const keys = (associations) => [...associations.values()].map(({ key }) => key)
const name = (id) => `agent ${id}`

test("changes are applied to the associations", () => {
  const associations = new Associations()
  associations.apply({ added: [pair("s1", "a1", 5000), pair("s2", "a1")], removed: [], changed: [] })
  associations.apply({ added: [pair("s1", "a2", 5000)], removed: [pair("s1", "a1")], changed: [pair("s2", "a1", 100)] })
  assert.deepEqual(keys(associations), ["s2:a1", "s1:a2"])
  assert.equal(associations.get("s2:a1").rate, 100)
  assert.ok(associations.has("s1", "a2") && !associations.has("s1", "a1"))
  associations.clear()
  assert.equal(associations.size, 0)
})

test("malformed changes are ignored", () => {
  const associations = new Associations()
  for (const changes of [undefined, null, {}, { added: "x" }]) associations.apply(changes)
  assert.equal(associations.size, 0)
})

test("associations that would change are marked and come first", () => {
  const associations = new Associations()
  associations.apply({ added: [pair("s1", "a1", 5000), pair("s2", "a1")] })
  const edges = edgesOf(associations, { whatIf: { added: [pair("s2", "a2")], removed: [pair("s2", "a1")], changed: [] } })
  assert.deepEqual(edges.map(({ key, mark, isReal }) => [key, mark, isReal]), [
    ["s2:a2", "added", false],
    ["s2:a1", "removed", true],
    ["s1:a1", undefined, true],
  ])
})

test("the requested pair is marked, whether associated or not", () => {
  const associations = new Associations()
  associations.apply({ added: [pair("s1", "a1", 5000)] })
  const marked = (sourceId, actorId) => edgesOf(associations, { explained: { sourceId, actorId } }).map(({ key, mark, isReal, rate }) => [key, mark, isReal, rate])
  assert.deepEqual(marked("s1", "a1"), [["s1:a1", "explained", true, 5000]])
  assert.deepEqual(marked("s1", "a2"), [["s1:a2", "explained", false, undefined], ["s1:a1", undefined, true, 5000]])
})

test("the edges of the selected source and actor come first", () => {
  const associations = new Associations()
  associations.apply({ added: [pair("s1", "a1"), pair("s2", "a1"), pair("s2", "a2"), pair("s3", "a3")] })
  const keys = edgesOf(associations, null, { sourceId: "s3", actorId: "a2" }).map(({ key }) => key)
  assert.deepEqual(keys, ["s2:a2", "s3:a3", "s1:a1", "s2:a1"])
})

test("nodes have the names of their agents, and their points", () => {
  const [node] = graphNodes(
    [{
      objectId: "n", parentObjectId: "p", characteristics: { floor: 3, owner: { a: 1 }, more: 1 },
      ioSources: [{ objectId: "s", name: "Probe", valueType: "t", externalRoute: "plant/1" }], ioActors: [],
    }],
    [], name)
  assert.deepEqual(node, {
    id: "n", title: "agent p", notes: ["floor: 3", 'owner: { "a": 1 }'],
    sources: [{ id: "s", name: "Probe", valueType: "t", externalRoute: "plant/1" }], actors: [],
  })
})

test("points that only associations name are shown", () => {
  const nodes = graphNodes([], [{ sourceId: "s", actorId: "a" }, { sourceId: "s", actorId: "b" }], name)
  assert.deepEqual(nodes.map(({ sources, actors }) => [sources.map(({ id }) => id), actors.map(({ id }) => id)]), [[["s"], ["a", "b"]]])
})

test("malformed nodes are accepted", () => {
  const nodes = graphNodes(
    [
      { objectId: "n", ioSources: "x", ioActors: [null, 7, { objectId: 3 }, { objectId: "a", name: 5 }, { objectId: "a" }], characteristics: null },
      {},
    ],
    [], name)
  assert.deepEqual(nodes.map(({ actors }) => actors), [[{ id: "a", name: "a", valueType: "", externalRoute: undefined }], []])
})

test("rates are formatted as text", () => {
  assert.deepEqual([undefined, 0, 250, 1500, 5000, 90_000].map(rateText), ["as they come", "every 0 ms", "every 250 ms", "every 1.5 s", "every 5 s", "every 1.5 min"])
})

test("a source has the rate of its associations if they are equal", () => {
  const edge = (sourceId, rate, isReal = true, mark) => ({ sourceId, rate, isReal, mark })
  const rates = ratesOfSources([edge("s1", 5), edge("s1", 5), edge("s2", 5), edge("s2", 6), edge("s3", 1, false, "explained"), edge("s4", 7, false, "added")])
  assert.deepEqual([...rates], [["s1", 5], ["s2", null], ["s4", 7]])
})

test("values are formatted as text that fits one line", () => {
  const octets = (bytes) => ({ encoding: "base64", value: Buffer.from(bytes).toString("base64") })
  assert.deepEqual([{ value: 20.5 }, { value: "warm" }, { value: null }, { value: { a: [1] } }].map(valueText), ["20.5", "warm", "null", '{ "a": [1] }'])
  assert.equal(valueText({ value: "x".repeat(5000) }).length, 201)
  assert.equal(valueText(octets("23.75 °C")), "23.75 °C")
  assert.equal(valueText(octets([0xff, 0xfe, 0x00])), "3 octets")
  assert.equal(valueText(octets("x".repeat(5000))).length, 201)
  assert.deepEqual([undefined, null, {}].map(valueText), ["", "", ""])
})

test("a topic is plain if values can be published on it", () => {
  const plain = ["plant/1", "/", "a", "ö/雪", "coat", "a/$b"]
  const others = ["", "#", "+", "a/+/b", "a/#", "$SYS/broker", "$share/g/a", "a\u0000", "a\n", "\ud800", "x".repeat(70_000), "a/".repeat(300)]
  assert.deepEqual(plain.filter((topic) => !isPlainTopic(topic)), [])
  assert.deepEqual(others.filter(isPlainTopic), [])
})

test("the number of observed routes is bounded, and the rest is counted", () => {
  const sources = Array.from({ length: maximumExternalRoutes + 2 }, (_, index) => ({ id: `s${index}`, externalRoute: `r/${index}` }))
  const { routes, improper, beyond } = routesOf([...sources, { id: "a", externalRoute: "#" }, { id: "b", externalRoute: "r/0" }, { id: "c" }, { id: "d", externalRoute: "coaty/3/-/IOV/d" }])
  assert.deepEqual([routes.size, routes.get("r/0"), improper, beyond], [maximumExternalRoutes, ["s0", "b"], 1, 2])
  assert.equal(
    unobservedText({ improper, beyond, refused: 1 }),
    "Values on 4 external routes are not shown: 1 is no plain topic, 2 are beyond the 32 that are observed, 1 is refused by the gateway.")
  assert.equal(unobservedText({ improper: 1, beyond: 0, refused: 0 }), "Values on 1 external route are not shown: 1 is no plain topic.")
  assert.equal(unobservedText({ improper: 0, beyond: 0, refused: 0 }), "")
})
