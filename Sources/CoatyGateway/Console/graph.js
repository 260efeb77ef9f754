// Draws the graph of an IO context as SVG. Elements of edges are reused, so that edges move to their new place visibly.

import { s } from "./dom.js"
import { arrow, lineHeight, padding, port, smallLineHeight, wrap } from "./layout.js"
import { TextWidths } from "./text-widths.js"

/** Maximum number of edges that are pulsing at a time. */
const maximumPulses = 80
/** With more edges than this, they are drawn fainter. */
const manyEdges = 60
const pulseTime = 700
const fadeTime = 250
const fonts = { title: "600 13px", name: "500 13px", value: "600 13px", type: "11px" }

export class Graph {
  element = s("svg", { class: "graph", role: "img" })
  #headings = s("g", { class: "headings" })
  #boxes = s("g", { class: "boxes" })
  #edges = s("g", { class: "edges" })
  #rates = s("g", { class: "rates" })
  #drawn = ""
  /** Elements by edge key, which is also `data-edge`. */
  #edgeElements = new Map()
  /** Elements of values, by source id. */
  #values = new Map()
  #points = []
  #pulses = 0
  #isStill = matchMedia("(prefers-reduced-motion: reduce)")

  /** @param onPoint `(side, id)`, called when a source or an actor is clicked */
  constructor(onPoint) {
    this.element.append(this.#headings, this.#edges, this.#boxes, this.#rates)
    this.element.addEventListener("click", (event) => {
      const point = event.target.closest("[data-point]")
      if (point) onPoint(point.getAttribute("data-side"), point.getAttribute("data-point"))
    })
  }

  /** Returns the width of a text in pixels. @param style `title`, `name`, `value` or `type` */
  measure = measuring()

  /**
   * Draws a plan.
   *
   * @param plan of `layout`
   * @param chosen `{sourceId, actorId}`; either may be undefined
   * @param rates texts by source id
   * @param label the accessible name of the graph
   */
  draw(plan, chosen, rates, label) {
    this.element.setAttribute("viewBox", `0 0 ${plan.width} ${plan.height}`)
    this.element.setAttribute("width", plan.width)
    this.element.setAttribute("height", plan.height)
    this.element.setAttribute("aria-label", label)
    this.element.toggleAttribute("data-many", plan.edges.length > manyEdges)
    const boxes = JSON.stringify([plan.width, plan.boxes])
    // Moves are animated only while the boxes stay where they are.
    this.element.classList.toggle("moving", boxes === this.#drawn)
    if (boxes !== this.#drawn) {
      this.#drawn = boxes
      this.#drawHeadings(plan)
      this.#drawBoxes(plan)
    }
    for (const { element, side, id } of this.#points) {
      const isChosen = id === (side === "sources" ? chosen.sourceId : chosen.actorId)
      element.toggleAttribute("data-chosen", isChosen)
    }
    this.#drawEdges(plan.edges, chosen)
    this.#drawRates(plan, rates)
  }

  /** Shows the last values of sources. @param values `{text}` by source id */
  show(values) {
    for (const [sourceId, { text }] of values) {
      const value = this.#values.get(sourceId)
      if (!value || value.text === text) continue
      value.text = text
      value.element.removeAttribute("data-none")
      const [shown] = wrap(text, value.width, 1, (text) => this.measure(text, "value"))
      value.element.replaceChildren(...textChildren(shown, text))
    }
  }

  /** Animates a pulse along the edges of sources. @param sourceIds a set of ids */
  pulse(sourceIds) {
    if (this.#isStill.matches) return
    for (const edge of this.#edgeElements.values()) {
      if (!sourceIds.has(edge.sourceId) || !edge.isReal || edge.isPulsing || this.#pulses >= maximumPulses) continue
      edge.isPulsing = true
      this.#pulses += 1
      const steps = [{ strokeDashoffset: 8, opacity: 1 }, { strokeDashoffset: -100, opacity: 1 }]
      const animation = edge.pulse.animate(steps, { duration: pulseTime, easing: "ease-in-out" })
      animation.onfinish = animation.oncancel = () => {
        if (edge.isPulsing) this.#pulses -= 1
        edge.isPulsing = false
      }
    }
  }

  #drawHeadings({ columns }) {
    this.#headings.replaceChildren(
      s("text", { class: "heading", x: columns.sources.x, y: 14 }, "Sources"),
      s("text", { class: "heading", x: columns.actors.x, y: 14 }, "Actors"),
    )
  }

  #drawBoxes({ boxes }) {
    this.#values.clear()
    this.#points = []
    this.#boxes.replaceChildren(...boxes.map((box) => this.#box(box)))
  }

  #box(box) {
    const group = s("g", { class: "box" })
    const { x, y, width, height } = box
    const heading = s("g", {})
    let baseline = y + padding - 5
    heading.append(...texts("title", x + padding, box.titles, box.title, () => (baseline += lineHeight)))
    for (const { shown, whole } of box.notes) heading.append(...texts("type", x + padding, [shown], whole, () => (baseline += smallLineHeight)))
    const frame = s("rect", { class: "frame", x: x + 0.5, y: y + 0.5, width: width - 1, height: height - 1, rx: 8 })
    group.append(frame, heading)
    for (const point of box.points) group.append(this.#point(point))
    return group
  }

  #point(point) {
    const { side, id, x, y, width, height, lines, type, value } = point
    const group = s("g", { class: "point", "data-point": id, "data-side": side })
    group.append(
      s("rect", { class: "hit", x: x + 1, y, width: width - 2, height: height - 1, rx: 7 }),
      s("line", { class: "rule", x1: x + 1, x2: x + width - 1, y1: y, y2: y }),
    )
    let baseline = y + 3
    group.append(...texts("name", x + padding, lines, point.name, () => (baseline += lineHeight)))
    if (type) group.append(...texts("type", x + padding, [type], point.valueType, () => (baseline += smallLineHeight)))
    if (value) {
      const anchor = value.isBeside ? "end" : "start"
      const place = { x: x + value.dx, y: y + value.dy, "text-anchor": anchor }
      const element = s("text", { class: "value", ...place, "data-none": "" }, "no value yet")
      this.#values.set(id, { element, width: value.width, text: undefined })
      group.append(element)
    }
    const end = port(point)
    group.append(
      side === "sources"
        ? s("circle", { class: "port", cx: end.x, cy: end.y, r: 4 })
        : s("path", { class: "port", d: `M ${end.x} ${end.y - 5} l ${arrow + 3} 5 l ${-arrow - 3} 5 Z` }),
    )
    this.#points.push({ element: group, side, id })
    return group
  }

  #drawEdges(edges, chosen) {
    const wanted = new Map(edges.map((edge) => [edge.key, edge]))
    const free = [...this.#edgeElements.values()].filter(({ key }) => !wanted.has(key))
    for (const edge of edges) {
      let element = this.#edgeElements.get(edge.key)
      if (!element) {
        // A removed edge is reused for the new one, preferably of the same source, else of the same actor.
        element =
          takeOne(free, (other) => other.sourceId === edge.sourceId) ??
          takeOne(free, (other) => other.actorId === edge.actorId)
        if (element) this.#edgeElements.delete(element.key)
        else element = this.#newEdge()
        element.group.setAttribute("data-edge", edge.key)
        this.#edgeElements.set(edge.key, element)
      }
      Object.assign(element, { key: edge.key, sourceId: edge.sourceId, actorId: edge.actorId, isReal: edge.isReal })
      for (const path of [element.wire, element.pulse]) {
        if (path.getAttribute("d") !== edge.path) path.setAttribute("d", edge.path)
      }
      mark(element.group, "data-mark", edge.mark)
      element.group.toggleAttribute("data-real", edge.isReal)
      element.group.toggleAttribute("data-chosen", edge.sourceId === chosen.sourceId || edge.actorId === chosen.actorId)
    }
    for (const element of free) this.#leave(element)
  }

  #newEdge() {
    const wire = s("path", { class: "wire" })
    const pulse = s("path", { class: "pulse", pathLength: 100 })
    const group = s("g", { class: "edge" }, wire, pulse)
    this.#edges.append(group)
    return { group, wire, pulse, isPulsing: false }
  }

  #leave({ key, group }) {
    this.#edgeElements.delete(key)
    group.removeAttribute("data-edge")
    group.removeAttribute("data-mark")
    if (this.#isStill.matches) return group.remove()
    group.animate([{ opacity: 1 }, { opacity: 0 }], { duration: fadeTime, fill: "forwards" }).onfinish = () => group.remove()
  }

  #drawRates({ edges }, rates) {
    const slopes = new Map()
    for (const { sourceId, from, to } of edges) {
      slopes.set(sourceId, { from, slope: (slopes.get(sourceId)?.slope ?? 0) + to.y - from.y })
    }
    const labels = []
    for (const [sourceId, { from, slope }] of slopes) {
      const text = rates.get(sourceId)
      // Below the port if most edges go up, else above it.
      if (text) labels.push(s("text", { class: "rate", x: from.x + 10, y: from.y + (slope < 0 ? 14 : -6) }, text))
    }
    this.#rates.replaceChildren(...labels)
  }
}

/** Returns a function that measures texts. The fonts are looked up once: they are the same in all color schemes. */
function measuring() {
  const context = document.createElement("canvas").getContext("2d")
  const computed = getComputedStyle(document.documentElement)
  const [sans, mono] = ["--sans", "--mono"].map((name) => computed.getPropertyValue(name))
  const widths = new TextWidths((text, style) => {
    context.font = `${fonts[style]} ${style === "type" ? mono : sans}`
    return context.measureText(text).width
  })
  return (text, style) => widths.of(text, style)
}

/** Returns the elements of a text in lines. @param nextBaseline returns the baseline of each line */
function texts(style, x, lines, whole, nextBaseline) {
  const isWhole = lines.length > 1 && !lines.at(-1).endsWith("…")
  return lines.map((line) => s("text", { class: style, x, y: nextBaseline() }, textChildren(line, isWhole ? line : whole)))
}

/** Returns the children of a text; a text that is cut off has the whole text as its title. */
function textChildren(shown, whole) {
  return shown === whole ? [document.createTextNode(shown)] : [s("title", {}, whole), document.createTextNode(shown)]
}

function takeOne(list, matches) {
  const index = list.findIndex(matches)
  return index < 0 ? undefined : list.splice(index, 1)[0]
}

function mark(element, name, value) {
  if (value === undefined) element.removeAttribute(name)
  else if (element.getAttribute(name) !== value) element.setAttribute(name, value)
}
