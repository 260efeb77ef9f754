// The layout of the graph of an IO context: IO nodes as boxes, those with sources on the left, those with actors on the right,
// and the edges between them. Pure. All lengths are in pixels.

/** Maximum number of sources, and of actors, that are drawn, apart from wanted ones. */
export const maximumPoints = 150
/** Maximum number of edges that are drawn. */
export const maximumEdges = 400
/** Maximum number of points on a side for a roomy layout. With more, the layout is dense: each point takes one line. */
export const maximumRoomyPoints = 24

/** Space between a box and its texts. */
export const padding = 12
const betweenBoxes = 16
/** Line height of names and titles. */
export const lineHeight = 18
/** Line height of types and notes. */
export const smallLineHeight = 16
const headingHeight = 28
/** In roomy columns narrower than this, such as on a phone, the value is below the name. */
const narrowColumn = 240
/** Dense columns narrower than this show no values. */
const narrowestColumnWithValue = 180
const widestColumn = 360
const widestValue = 96

/**
 * Returns the plan of a graph.
 *
 * @param nodes `[{id, title, notes, sources: [{id, name, valueType}], actors: […]}]`
 * @param edges `[{key, sourceId, actorId, …}]`, by priority: those beyond the maximum are not drawn
 * @param width of the graph
 * @param measure `(text, style) => width`, with the style `name`, `type` or `title`
 * @param wanted ids of points that are drawn even beyond the maximum
 * @returns `{width, height, isDense, columns, boxes, points, edges, hidden: {sources, actors, edges}}`
 */
export function layout({ nodes, edges, width, measure, wanted = new Set() }) {
  const gap = Math.min(Math.max(width * 0.24, 84), 340)
  const columnWidth = Math.floor(Math.min((width - gap) / 2, widestColumn))
  const picked = { sources: pick(nodes, "sources", wanted), actors: pick(nodes, "actors", wanted) }
  const isDense = Math.max(picked.sources.count, picked.actors.count) > maximumRoomyPoints
  const columns = {
    sources: column(picked.sources.nodes, "sources", 0, columnWidth, isDense, measure),
    actors: column(picked.actors.nodes, "actors", width - columnWidth, columnWidth, isDense, measure),
  }
  const bottom = Math.max(columns.sources.bottom, columns.actors.bottom)
  // The shorter column is centred, but moved by at most 120 pixels, so that it stays in sight.
  for (const { boxes, bottom: own } of Object.values(columns)) {
    const down = isDense ? 0 : Math.min(Math.floor((bottom - own) / 2), 120)
    for (const box of boxes) {
      box.y += down
      for (const point of box.points) point.y += down
    }
  }
  const boxes = [...columns.sources.boxes, ...columns.actors.boxes]
  const points = boxes.flatMap((box) => box.points)
  const ports = { sources: new Map(), actors: new Map() }
  for (const point of points) ports[point.side].set(point.id, port(point))
  const drawn = []
  for (const edge of edges) {
    if (drawn.length === maximumEdges) break
    const from = ports.sources.get(edge.sourceId)
    const to = ports.actors.get(edge.actorId)
    if (from && to) drawn.push({ ...edge, from, to, path: curve(from, to) })
  }
  return {
    width,
    height: bottom,
    isDense,
    columns: { sources: { x: 0, width: columnWidth }, actors: { x: width - columnWidth, width: columnWidth } },
    boxes,
    points,
    edges: drawn,
    hidden: {
      sources: picked.sources.hidden,
      actors: picked.actors.hidden,
      edges: edges.length - drawn.length,
    },
  }
}

/** Returns the nodes with drawn points on a side, and the numbers of drawn and hidden points. */
function pick(nodes, side, wanted) {
  let count = 0
  let hidden = 0
  const picked = []
  for (const node of nodes) {
    const points = []
    for (const point of node[side]) {
      if (count < maximumPoints || wanted.has(point.id)) {
        points.push(point)
        count += 1
      } else {
        hidden += 1
      }
    }
    if (points.length > 0) picked.push({ ...node, points })
  }
  return { nodes: picked, count, hidden }
}

function column(nodes, side, x, width, isDense, measure) {
  let y = headingHeight
  const inner = width - 2 * padding
  const boxes = nodes.map((node) => {
    const titles = wrap(node.title, inner, 2, (text) => measure(text, "title"))
    const notes = node.notes.map((whole) => ({ whole, shown: keepEnd(whole, inner, (text) => measure(text, "type")) }))
    const box = { nodeId: node.id, side, x, y, width, titles, title: node.title, notes, points: [] }
    y += padding + titles.length * lineHeight + notes.length * smallLineHeight + padding / 2
    for (const point of node.points) {
      const placed = row(point, side, x, y, width, isDense, measure)
      box.points.push(placed)
      y += placed.height
    }
    box.height = y - box.y
    y += betweenBoxes
    return box
  })
  return { boxes, bottom: boxes.length > 0 ? y - betweenBoxes : y }
}

function row(point, side, x, y, width, isDense, measure) {
  const inner = width - 2 * padding
  const hasValue = side === "sources"
  const isBeside = hasValue && width >= (isDense ? narrowestColumnWithValue : narrowColumn)
  const valueWidth = Math.min(Math.floor(inner * 0.4), widestValue)
  const nameWidth = inner - (isBeside ? valueWidth : 0)
  const lines = wrap(point.name, nameWidth, isDense ? 1 : 2, (text) => measure(text, "name"))
  const type = isDense ? "" : keepEnd(point.valueType, inner, (text) => measure(text, "type"))
  let height = 8 + lines.length * lineHeight + (type ? smallLineHeight : 0) + 6
  let value
  if (isBeside) value = { dx: width - padding, dy: 21, width: valueWidth - 8, isBeside }
  else if (hasValue && !isDense) {
    value = { dx: padding, dy: height + 7, width: inner, isBeside }
    height += lineHeight
  }
  return { id: point.id, side, x, y, width, height, lines, type, value, name: point.name, valueType: point.valueType }
}

/** Distance by which the arrow of an actor extends beyond its box. */
export const arrow = 6

/** Returns the position at which edges are attached to a point. */
export function port({ side, x, y, width, height }) {
  return { x: side === "sources" ? x + width : x - arrow, y: y + Math.floor(height / 2) }
}

function curve(from, to) {
  const bend = Math.round((to.x - from.x) * 0.45)
  return `M ${from.x} ${from.y} C ${from.x + bend} ${from.y} ${to.x - bend} ${to.y} ${to.x} ${to.y}`
}

/** Wraps a text into at most `maximumLines` lines. If it does not fit, the last line ends in "…". */
export function wrap(text, width, maximumLines, measure) {
  const lines = []
  let rest = text.trim()
  while (lines.length < maximumLines - 1 && measure(rest) > width) {
    const fitting = longest(Math.min(rest.length, longestMeasured), (length) => measure(rest.slice(0, length)) <= width)
    const end = breakBefore(rest, fitting)
    if (end === 0) break
    lines.push(rest.slice(0, end).trimEnd())
    rest = rest.slice(end).trimStart()
  }
  lines.push(keepBegin(rest, width, measure))
  return lines
}

/** Returns the last break position up to `end`: after a space or separator, between the parts of a camelCase name, else `end`. */
function breakBefore(text, end) {
  if (text[end] === " ") return end
  for (let index = end; index > 0; index--) {
    if (/[\s.:/_-]/.test(text[index - 1]) || /\p{Ll}\p{Lu}/u.test(text.slice(index - 1, index + 1))) return index
  }
  // Not within a surrogate pair.
  return /[\uDC00-\uDFFF]/.test(text[end]) ? end - 1 : end
}

function keepBegin(text, width, measure) {
  if (measure(text) <= width) return text
  const characters = Array.from(text.slice(0, longestMeasured))
  const length = longest(characters.length, (length) => measure(characters.slice(0, length).join("") + "…") <= width)
  return characters.slice(0, length).join("").trimEnd() + "…"
}

/** Cuts a text at its beginning, because the end of a name such as `com.example.Value` is the most specific part. */
export function keepEnd(text, width, measure) {
  if (measure(text) <= width) return text
  const characters = Array.from(text.slice(-longestMeasured))
  const length = longest(characters.length, (length) => measure("…" + characters.slice(-length).join("")) <= width)
  return "…" + (length > 0 ? characters.slice(-length).join("") : "")
}

/** Maximum length of a text that is cut to a width. */
const longestMeasured = 512

/** Returns the largest number up to a bound for which `holds` is true. It must be true for all smaller ones. */
function longest(bound, holds) {
  let low = 0
  let high = bound
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    if (holds(middle)) low = middle
    else high = middle - 1
  }
  return low
}
