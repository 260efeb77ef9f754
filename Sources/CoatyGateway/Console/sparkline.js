// A small chart of a rate over the last two minutes, and the curves and scales of all charts.

import { s } from "./dom.js"
import { rateText, span } from "./rates.js"

const width = 240
const height = 48
/** Space above the line in pixels, so that the stroke is not cut off. */
const inset = 2
/** Maximum number of steps of a scale, before its bounds are rounded outwards. */
const maximumSteps = 5

/** Returns the end of a scale that begins at 0: the smallest of 1, 2, 5, 10, 20, 50 … that is not below the rate. */
export function scaleEnd(rate) {
  if (rate <= 1) return 1
  const power = 10 ** Math.floor(Math.log10(rate))
  return [1, 2, 5, 10].map((step) => step * power).find((end) => rate <= end)
}

/** Returns a scale `{ begin, end }` for values from `low` to `high`, in steps of 1, 2 or 5 times a power of ten. */
export function scaleOf(low, high) {
  const size = high - low || Math.abs(high) || 1
  if (!Number.isFinite(size)) return { begin: low, end: high }
  const power = 10 ** Math.floor(Math.log10(size))
  const step = [0.2, 0.5, 1, 2].map((part) => part * power).find((step) => size / step <= maximumSteps)
  const [first, last] = [Math.floor(low / step), Math.ceil(high / step)]
  const bound = (steps) => Number((steps * step).toPrecision(12))
  return first === last ? { begin: bound(first - 1), end: bound(last + 1) } : { begin: bound(first), end: bound(last) }
}

/**
 * Returns the runs of consecutive points with rates, as coordinates in the chart.
 *
 * @param {number} begin the value at the bottom @param {number} end the value at the top
 * @param {number} time the time that the chart covers, in milliseconds
 */
export function runs(points, now, end, begin = 0, time = span) {
  const runs = [[]]
  for (const { time: at, rate } of points) {
    if (rate === null) runs.push([])
    else runs.at(-1).push([width * (1 - (now - at) / time), height - (height - inset) * (rate - begin) / (end - begin)])
  }
  return runs.filter((run) => run.length > 1)
}

const d = (run) => run.map(([x, y], index) => `${index === 0 ? "M" : "L"}${x.toFixed(1)} ${y.toFixed(1)}`).join("")

/** A line over time, and the area below it. */
export class Curve {
  #area = s("path", { class: "spark-area" })
  #line = s("path", { class: "spark-line" })
  element

  /** @param {string} className added to `spark` */
  constructor(className = "") {
    const attributes = { class: `spark ${className}`.trim(), viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none" }
    this.element = s("svg", attributes, this.#area, this.#line)
  }

  /**
   * @param {{time: number, rate: number | null}[]} points
   * @param {number} now the time at the right edge
   * @param {{begin: number, end: number}} scale
   * @param {number} time the time that the chart covers, in milliseconds
   */
  draw(points, now, { begin, end }, time) {
    const shown = runs(points, now, end, begin, time)
    this.#line.setAttribute("d", shown.map(d).join(""))
    this.#area.setAttribute("d", shown.map((run) => `${d(run)}L${run.at(-1)[0].toFixed(1)} ${height}L${run[0][0].toFixed(1)} ${height}Z`).join(""))
  }
}

/** The chart of a rate. */
export class Sparkline {
  #curve = new Curve()
  #label
  #unit

  /** @param {string} unit follows a number in the accessible name */
  constructor(label, unit = " a second") {
    this.#label = label
    this.#unit = unit
    this.element.setAttribute("role", "img")
    this.draw([], 0)
  }

  get element() {
    return this.#curve.element
  }

  /**
   * @param {{time: number, rate: number | null}[]} points
   * @param {number} now the time at the right edge
   */
  draw(points, now) {
    const highest = Math.max(0, ...points.map(({ rate }) => rate ?? 0))
    this.#curve.draw(points, now, { begin: 0, end: scaleEnd(highest) }, span)
    this.element.setAttribute("aria-label", `${this.#label} in the last two minutes: at most ${rateText(highest)}${this.#unit}`)
  }
}
