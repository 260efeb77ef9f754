// A small picture of a rate or a value over the last two minutes.

import { s } from "./dom.js"
import { rateText, span } from "./rates.js"

const width = 240
const height = 48
/** What is left above the line, so that it is not cut. */
const inset = 2

/** The end of a scale that begins at 0: the next of 1, 2, 5, 10, 20, 50 … that a rate does not reach beyond. */
export function scaleEnd(rate) {
  if (rate <= 1) return 1
  const power = 10 ** Math.floor(Math.log10(rate))
  return [1, 2, 5, 10].map((step) => step * power).find((end) => rate <= end)
}

/** The runs of points between which there are rates, as coordinates in the picture. */
export function runs(points, now, end) {
  const runs = [[]]
  for (const { time, rate } of points) {
    if (rate === null) runs.push([])
    else runs.at(-1).push([width * (1 - (now - time) / span), height - (height - inset) * rate / end])
  }
  return runs.filter((run) => run.length > 1)
}

const d = (run) => run.map(([x, y], index) => `${index === 0 ? "M" : "L"}${x.toFixed(1)} ${y.toFixed(1)}`).join("")

/** The picture; `draw` draws it anew. */
export class Sparkline {
  #area = s("path", { class: "spark-area" })
  #line = s("path", { class: "spark-line" })
  element
  #label
  #unit

  /** @param {string} unit what follows a number when it is read out */
  constructor(label, unit = " a second") {
    this.#label = label
    this.#unit = unit
    this.element = s("svg", { class: "spark", viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img" }, this.#area, this.#line)
    this.draw([], 0)
  }

  /**
   * @param {{time: number, rate: number | null}[]} points
   * @param {number} now the time at the right side.
   */
  draw(points, now) {
    const highest = Math.max(0, ...points.map(({ rate }) => rate ?? 0))
    const shown = runs(points, now, scaleEnd(highest))
    this.#line.setAttribute("d", shown.map(d).join(""))
    this.#area.setAttribute("d", shown.map((run) => `${d(run)}L${run.at(-1)[0].toFixed(1)} ${height}L${run[0][0].toFixed(1)} ${height}Z`).join(""))
    this.element.setAttribute("aria-label", `${this.#label} in the last two minutes: at most ${rateText(highest)}${this.#unit}`)
  }
}
