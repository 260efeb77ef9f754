import assert from "node:assert/strict"
import { test } from "node:test"
import { keepEnd, layout, maximumEdges, maximumPoints, maximumRoomyPoints, wrap } from "../../../Sources/CoatyGateway/Console/layout.js"

/** Measures ten pixels per character. */
const measure = (text) => Array.from(text).length * 10
const point = (id, name = id) => ({ id, name, valueType: "com.example.Temperature[Celsius]" })
const node = (id, sources, actors, notes = []) => ({ id, title: `Agent ${id}`, notes, sources, actors })
const edge = (sourceId, actorId) => ({ key: `${sourceId}:${actorId}`, sourceId, actorId })
const points = (prefix, count) => Array.from({ length: count }, (_, index) => point(`${prefix}${index}`))

const plan = (nodes, edges, width = 800, wanted) => layout({ nodes, edges, width, measure, wanted })

test("sources are on the left, actors on the right, and edges connect them", () => {
  const { columns, points, edges, width } = plan([node("n1", [point("s1"), point("s2")], []), node("n2", [], [point("a1")])], [edge("s2", "a1")])
  assert.equal(columns.sources.x, 0)
  assert.equal(columns.actors.x + columns.actors.width, width)
  assert.ok(columns.sources.width < columns.actors.x)
  const source = points.find(({ id }) => id === "s2")
  const actor = points.find(({ id }) => id === "a1")
  assert.deepEqual(points.map(({ side }) => side), ["sources", "sources", "actors"])
  const [{ from, to, path }] = edges
  assert.equal(from.x, source.x + source.width)
  assert.ok(from.y > source.y && from.y < source.y + source.height)
  assert.ok(to.x <= actor.x && to.y > actor.y && to.y < actor.y + actor.height)
  assert.ok(path.startsWith(`M ${from.x} ${from.y} C `) && path.endsWith(` ${to.x} ${to.y}`))
})

test("a node with sources and actors has a box on each side", () => {
  const { boxes } = plan([node("n1", [point("s1")], [point("a1")])], [])
  assert.deepEqual(boxes.map(({ side, nodeId }) => [side, nodeId]), [["sources", "n1"], ["actors", "n1"]])
})

test("boxes hold their points, and nothing overlaps", () => {
  const nodes = [node("n1", points("s", 3), points("a", 2), ["floor: 3"]), node("n2", points("t", 2), points("b", 4))]
  const { boxes, height } = plan(nodes, [], 360)
  for (const side of ["sources", "actors"]) {
    let end = 0
    for (const box of boxes.filter((box) => box.side === side)) {
      assert.ok(box.y >= end)
      let inner = box.y
      for (const point of box.points) {
        assert.ok(point.y >= inner)
        inner = point.y + point.height
      }
      end = box.y + box.height
      assert.ok(inner <= end && end <= height)
    }
  }
})

test("boxes stay where they are when associations change", () => {
  const nodes = [node("n1", points("s", 3), []), node("n2", [], points("a", 3))]
  assert.deepEqual(plan(nodes, [edge("s0", "a0")]).boxes, plan(nodes, [edge("s0", "a2"), edge("s1", "a1")]).boxes)
})

test("the layout fits the width of a phone", () => {
  const nodes = [node("n1", [point("s1", "Temperature of the room")], []), node("n2", [], [point("a1", "Unbreakablename".repeat(5))])]
  const { boxes, points } = plan(nodes, [edge("s1", "a1")], 330)
  for (const { x, width } of boxes) assert.ok(x >= 0 && x + width <= 330)
  for (const { lines, type, width } of points) for (const text of [...lines, type]) assert.ok(measure(text) < width)
})

test("the number of drawn boxes is bounded, and omitted ones are counted", () => {
  const nodes = [node("n1", points("s", maximumPoints + 7), []), node("n2", [], points("a", 50))]
  const all = nodes[0].sources.flatMap(({ id: source }) => nodes[1].actors.map(({ id: actor }) => edge(source, actor)))
  const { points: drawn, edges, hidden } = plan(nodes, all)
  assert.equal(drawn.length, maximumPoints + 50)
  assert.equal(edges.length, maximumEdges)
  assert.deepEqual(hidden, { sources: 7, actors: 0, edges: all.length - maximumEdges })
})

test("wanted nodes are drawn beyond the bound", () => {
  const last = `s${maximumPoints + 6}`
  const nodes = [node("n1", points("s", maximumPoints + 7), []), node("n2", [], [point("a")])]
  const { edges, hidden } = plan(nodes, [edge(last, "a")], 800, new Set([last]))
  assert.deepEqual(edges.map(({ sourceId }) => sourceId), [last])
  assert.equal(hidden.sources, 6)
})

test("points take one line each if there are many", () => {
  const heights = (count) => plan([node("n", points("s", count), [])], []).points[0].height
  assert.ok(heights(maximumRoomyPoints + 1) < heights(maximumRoomyPoints))
})

test("an edge between points that are not drawn is left out", () => {
  assert.deepEqual(plan([node("n", [point("s")], [])], [edge("s", "nowhere")]).edges, [])
})

test("texts break at spaces, separators and within camelCase, and end in an ellipsis", () => {
  assert.deepEqual(wrap("Temperature Source 1", 120, 2, measure), ["Temperature", "Source 1"])
  assert.deepEqual(wrap("NormalStateActorAgent", 120, 2, measure), ["NormalState", "ActorAgent"])
  assert.deepEqual(wrap("short", 120, 2, measure), ["short"])
  assert.deepEqual(wrap("com.example.Light", 110, 1, measure), ["com.exampl…"])
  assert.deepEqual(wrap("one two three four", 70, 2, measure), ["one two", "three…"])
  assert.deepEqual(wrap("xxxxxxxxxxxx", 50, 2, measure), ["xxxxx", "xxxx…"])
  assert.equal(keepEnd("com.example.Light", 60, measure), "…Light")
})

test("a text is not cut within a character", () => {
  for (const width of [30, 50, 70]) {
    for (const text of [...wrap("🌡".repeat(20), width, 2, measure), keepEnd("🌡".repeat(20), width, measure)]) {
      assert.ok(text.isWellFormed?.() ?? !/[\uD800-\uDBFF](?![\uDC00-\uDFFF])/.test(text), text)
    }
  }
})

test("a value next to a name leaves room for the name", () => {
  const placed = (count, width) => plan([node("n", points("source", count), [])], [], width).points[0]
  for (const [count, width] of [[1, 800], [1, 330], [30, 800], [30, 330]]) {
    const { lines, value, width: row } = placed(count, width)
    const name = Math.max(...lines.map(measure))
    if (value?.isBeside) assert.ok(name + value.width < row, `${count} points in ${width} pixels`)
  }
  assert.ok(placed(1, 330).value && placed(30, 800).value)
  assert.equal(placed(30, 330).value, undefined)
})
