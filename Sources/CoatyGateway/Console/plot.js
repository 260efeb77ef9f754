// Charts of a numeric value over the last minutes: one with a scale, and a small one for lists.

import { duration, h, setText } from "./dom.js"
import { Curve, scaleOf } from "./sparkline.js"
import { keptTime, numberText, summary } from "./value-history.js"

/** The times that a chart can cover, in milliseconds. It covers the shortest one that includes all points. */
const times = [60_000, 120_000, 300_000, keptTime]

/** Returns the corners of a stepped line that holds each value until the next point or `until`. */
export function stairs(points, until) {
  const corners = []
  for (const { time, value, low, high } of points) {
    const last = corners.at(-1)
    if (last !== undefined && last.rate !== null) corners.push({ time, rate: last.rate })
    if (value === null) {
      corners.push({ time, rate: null })
      continue
    }
    if (low < value) corners.push({ time, rate: low })
    if (high > value) corners.push({ time, rate: high })
    corners.push({ time, rate: value })
  }
  if (corners.length > 0 && corners.at(-1).rate !== null && until > corners.at(-1).time) corners.push({ time: until, rate: corners.at(-1).rate })
  return corners
}

/** Returns the time that the chart of some points covers, in milliseconds. */
export function timeOf(points, now) {
  const age = points.length === 0 ? 0 : now - points[0].time
  return times.find((time) => age <= time) ?? keptTime
}

/** The chart of a value, with its scale. */
export class ValuePlot {
  element
  #name
  #curve = new Curve("plot-picture")
  #ui = { last: h("strong", { className: "num" }), end: h("span"), begin: h("span"), since: h("span"), range: h("span") }

  /** @param {string} name a property's path, or the name of a source */
  constructor(name) {
    this.#name = name
    const { last, end, begin, since, range } = this.#ui
    this.#curve.element.setAttribute("role", "img")
    this.element = h("figure", { className: "plot" },
      h("figcaption", { className: "plot-head" }, h("span", { className: "plot-name" }, name), last),
      h("div", { className: "plot-body" }, this.#curve.element,
        h("div", { className: "plot-scale num", "aria-hidden": "true" }, end, begin)),
      h("div", { className: "plot-axis num" }, since, range, h("span", {}, "now")))
  }

  /**
   * @param points of a `Series`
   * @param {number} now the time at the right edge
   * @param {number} until the time until which the last value was current
   */
  draw(points, now, until = now) {
    const { low, high, last } = summary(points) ?? { low: 0, high: 0, last: 0 }
    const time = timeOf(points, now)
    const scale = scaleOf(low, high)
    this.#curve.draw(stairs(points, until), now, scale, time)
    const ui = this.#ui
    setText(ui.last, numberText(last))
    setText(ui.begin, numberText(scale.begin))
    setText(ui.end, numberText(scale.end))
    setText(ui.since, `${duration(time / 1000)} ago`)
    setText(ui.range, `${numberText(low)} to ${numberText(high)}`)
    const label = `${this.#name} in the last ${duration(time / 1000)}: from ${numberText(low)} to ${numberText(high)}, ${until < now ? "last" : "now"} ${numberText(last)}`
    if (this.#curve.element.getAttribute("aria-label") !== label) this.#curve.element.setAttribute("aria-label", label)
  }
}

/** A small chart for a list. Screen readers skip it, because the list also shows the value as text. */
export class SmallPlot {
  #curve = new Curve("spark-small")

  constructor() {
    this.#curve.element.setAttribute("aria-hidden", "true")
  }

  get element() {
    return this.#curve.element
  }

  /** Draws points as `ValuePlot.draw`. */
  draw(points, now, until = now) {
    const { low, high } = summary(points) ?? { low: 0, high: 0 }
    this.#curve.draw(stairs(points, until), now, scaleOf(low, high), timeOf(points, now))
  }
}

/** The plots of an object or a source, one for each series. They are reused while the names of the series stay the same. */
export class Plots {
  element = h("div", { className: "plots" })
  #plots = new Map()

  /** @param series `[[name, points]]` @param until as of `ValuePlot.draw` */
  draw(series, now, until = now) {
    const names = series.map(([name]) => name)
    if (names.join("\n") !== [...this.#plots.keys()].join("\n")) {
      this.#plots = new Map(names.map((name) => [name, this.#plots.get(name) ?? new ValuePlot(name)]))
      this.element.replaceChildren(...[...this.#plots.values()].map(({ element }) => element))
    }
    for (const [name, points] of series) this.#plots.get(name).draw(points, now, until)
  }

  clear() {
    this.#plots.clear()
    this.element.replaceChildren()
  }
}
