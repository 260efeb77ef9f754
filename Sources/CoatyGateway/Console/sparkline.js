// A small picture of a rate over the last two minutes, and the curves and scales of all pictures.

import { s } from "./dom.js"
import { rateText, span } from "./rates.js"

const width = 240
const height = 48
/** What is left above the line, so that it is not cut. */
const inset = 2
/** A scale of values has at most so many steps, each 2, 5 or 10 times a power of ten. */
const maximumSteps = 5

/** The end of a scale that begins at 0: the next of 1, 2, 5, 10, 20, 50 … that a rate does not reach beyond. */
export function scaleEnd(rate) {
  if (rate <= 1) return 1
  const power = 10 ** Math.floor(Math.log10(rate))
  return [1, 2, 5, 10].map((step) => step * power).find((end) => rate <= end)
}

/** A scale with round bounds for values that need not begin at 0: `{ begin, end }`. */
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
 * The runs of points between which there are rates, as coordinates in the picture.
 *
 * @param {number} begin the value at the bottom @param {number} end that at the top
 * @param {number} time how much time the picture shows, in milliseconds
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

/** A line over time, and the area below it; `draw` draws it anew. */
export class Curve {
  #area = s("path", { class: "spark-area" })
  #line = s("path", { class: "spark-line" })
  element

  /** @param {string} className that of the picture, beside `spark` */
  constructor(className = "") {
    const attributes = { class: `spark ${className}`.trim(), viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none" }
    this.element = s("svg", attributes, this.#area, this.#line)
  }

  /**
   * @param {{time: number, rate: number | null}[]} points
   * @param {number} now the time at the right side
   * @param {{begin: number, end: number}} scale
   * @param {number} time how much time the picture shows, in milliseconds
   */
  draw(points, now, { begin, end }, time) {
    const shown = runs(points, now, end, begin, time)
    this.#line.setAttribute("d", shown.map(d).join(""))
    this.#area.setAttribute("d", shown.map((run) => `${d(run)}L${run.at(-1)[0].toFixed(1)} ${height}L${run[0][0].toFixed(1)} ${height}Z`).join(""))
  }
}

/** The picture of a rate. */
export class Sparkline {
  #curve = new Curve()
  #label
  #unit

  /** @param {string} unit what follows a number when it is read out */
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
   * @param {number} now the time at the right side.
   */
  draw(points, now) {
    const highest = Math.max(0, ...points.map(({ rate }) => rate ?? 0))
    this.#curve.draw(points, now, { begin: 0, end: scaleEnd(highest) }, span)
    this.element.setAttribute("aria-label", `${this.#label} in the last two minutes: at most ${rateText(highest)}${this.#unit}`)
  }
}
