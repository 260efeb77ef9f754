// Data of any shape from the network neither breaks the routing view nor takes long.

import assert from "node:assert/strict"
import { test } from "node:test"
import { line } from "../../../Sources/CoatyGateway/Console/dom.js"
import { explain } from "../../../Sources/CoatyGateway/Console/explanation.js"
import { layout } from "../../../Sources/CoatyGateway/Console/layout.js"
import { mergePatch } from "../../../Sources/CoatyGateway/Console/merge-patch.js"
import { Associations, edgesOf, graphNodes, rateText, ratesOfSources, routesOf, valueText } from "../../../Sources/CoatyGateway/Console/routing-model.js"

const deep = (levels) => {
  let value = 1
  for (let level = 0; level < levels; level++) value = level % 2 ? [value] : { a: value }
  return value
}
const shapes = [
  undefined, null, true, 0, -1, 1e308, 2n ** 64n, "", "x", "\u0000\ud800", "x".repeat(1_000_000), [], [null], [[]], {}, { a: null },
  JSON.parse('{"__proto__":{"toString":1},"toString":1,"valueOf":1,"toJSON":1,"length":-1}'),
  { then: 1, [Symbol.iterator.description]: 1 }, deep(500), deep(100_000), Array.from({ length: 1000 }, (_, index) => index),
]
const measure = (text) => text.length * 7
const plan = (nodes, edges) => layout({ nodes, edges, width: 800, measure })
const agentName = (id) => {
  assert.equal(typeof id, "string")
  return line(id)
}

/** Yields the shape, and copies of `whole` with the shape in the place of each property. */
function* substitutions(whole, shape) {
  yield shape
  if (typeof whole !== "object" || whole === null) return
  for (const name of Object.keys(whole)) {
    for (const part of substitutions(whole[name], shape)) yield Array.isArray(whole) ? Object.assign([...whole], { [name]: part }) : { ...whole, [name]: part }
  }
}
function forEachShape(whole, take) {
  for (const shape of shapes) for (const value of substitutions(whole, shape)) take(value)
}

test("IO nodes", () => {
  const point = { objectId: "s", name: "n", valueType: "t", externalRoute: "x/y" }
  const node = { objectId: "n", parentObjectId: "p", characteristics: { floor: 3 }, ioSources: [point], ioActors: [{ ...point, objectId: "a" }] }
  forEachShape([node], (nodes) => {
    const drawn = graphNodes(nodes, [], agentName)
    plan(drawn, [])
    routesOf(drawn.flatMap(({ sources }) => sources))
    for (const { title, notes, sources, actors } of drawn) {
      for (const text of [title, ...notes, ...[...sources, ...actors].flatMap(({ name, valueType }) => [name, valueType])]) {
        assert.ok(typeof text === "string" && text.length <= 201)
      }
    }
  })
})

test("associations", () => {
  const association = { ioSourceId: "s", ioActorId: "a", updateRate: 5 }
  forEachShape({ added: [association], changed: [association], removed: [association] }, (changes) => {
    const associations = new Associations()
    associations.apply(changes)
    for (const marks of [null, { whatIf: changes }]) {
      const edges = edgesOf(associations, marks, {})
      for (const rate of ratesOfSources(edges).values()) rateText(rate)
      plan(graphNodes([], edges, agentName), edges)
    }
  })
})

test("values", () => {
  forEachShape({ value: 1 }, (data) => assert.ok(valueText(data).length <= 201))
  forEachShape({ encoding: "base64", value: "AAAA" }, (data) => assert.ok(valueText(data).length <= 201))
})

test("explanations", () => {
  const condition = { holds: true, property: ["a"], operator: "Equals", value: 1, operands: [{ value: 1 }, { property: "b", value: 2 }] }
  const conditions = { holds: true, and: [condition, { holds: true, or: [condition] }, { holds: false, not: condition }] }
  const explanation = {
    associated: false, compatible: true, decidedBy: "A", valueTypes: { source: "t", actor: "t" },
    useRawIoValues: { source: false, actor: false }, rules: [{ name: "A", holds: true, condition: conditions }],
  }
  forEachShape(explanation, (explanation) => assert.equal(typeof explain(explanation, "s", "a").verdict, "string"))
  forEachShape(condition, (condition) => explain({ ...explanation, rules: [{ name: "A", holds: true, condition }] }, "s", "a"))
})

test("contexts", () => {
  const context = { objectId: "c", a: { b: [1] } }
  forEachShape(context, (other) => {
    if (typeof other !== "object" || other === null) return
    mergePatch(context, other)
    mergePatch(other, context)
  })
})

test("many sources and actors, with duplicate IDs", () => {
  const points = Array.from({ length: 100_000 }, (_, index) => ({ objectId: `s${index % 50_000}`, name: "n".repeat(50), valueType: "t", externalRoute: `r/${index}` }))
  const nodes = graphNodes([{ objectId: "n", ioSources: points, ioActors: points }], [], agentName)
  assert.deepEqual([nodes[0].sources.length, nodes[0].actors.length], [50_000, 0])
  assert.ok(plan(nodes, []).points.length < 1000)
  const { routes, beyond } = routesOf(nodes[0].sources)
  assert.equal(routes.size + beyond, 50_000)
})
