// The associations of a context as a table: the content of the graph for screen readers and small screens.

import { clock, h, replace, setHidden, setText } from "./dom.js"
import { SmallPlot } from "./plot.js"
import { rateText } from "./routing-model.js"
import { measuredText } from "./source-rates.js"

const marks = { added: ["would be added", "ok"], removed: ["would be removed", "bad"] }

export class AssociationsTable {
  element
  #body = h("tbody", {})
  /** By source id, the cells with the last value, the measured rate and the plot of each association. */
  #cells = new Map()
  #drawn = ""

  constructor() {
    const heads = ["Source", "Actor", "Agreed rate", "Measured rate", "Last minutes", "Last value"].map((text) => h("th", { scope: "col" }, text))
    const table = h("table", { className: "table", "aria-label": "Associations" }, h("thead", {}, h("tr", {}, heads)), this.#body)
    this.element = h("section", { className: "card associations" }, h("h2", {}, "Associations"),
      h("div", { className: "table-scroll", tabIndex: 0, role: "group", "aria-label": "Associations, a table" }, table))
  }

  /** Draws the rows. @param edges of the graph @param nameOf returns the name of a source or an actor by its id */
  draw(edges, nameOf) {
    const shown = edges.filter(({ isReal, mark }) => isReal || mark === "added")
    const rows = shown.map((edge) => ({ ...edge, source: nameOf(edge.sourceId), actor: nameOf(edge.actorId) }))
    const drawn = JSON.stringify(rows.map(({ key, source, actor, rate, mark }) => [key, source, actor, rate, mark]))
    if (drawn === this.#drawn) return
    this.#drawn = drawn
    setHidden(this.element, rows.length === 0)
    this.#cells.clear()
    replace(this.#body, rows.map((edge) => {
      const value = h("td", { className: "mono last" })
      const measured = h("td", { className: "measured" })
      const picture = new SmallPlot()
      const cells = this.#cells.get(edge.sourceId) ?? []
      this.#cells.set(edge.sourceId, [...cells, { value, measured, picture, rate: edge.rate }])
      const mark = marks[edge.mark]
      return h("tr", {},
        h("td", {}, edge.source), h("td", {}, edge.actor),
        h("td", {}, rateText(edge.rate), mark && [" ", h("span", { className: "tag", "data-kind": mark[1] }, mark[0])]),
        measured, h("td", {}, picture.element), value)
    }))
  }

  /** Shows the last values. @param values `{text, time}` by source id */
  show(values) {
    for (const [sourceId, { text, time }] of values) {
      for (const { value } of this.#cells.get(sourceId) ?? []) {
        setText(value, text)
        value.title = `at ${clock(time)}`
      }
    }
  }

  /** Updates measured rates and plots. @param measure `(sourceId, rate)`, as of `SourceRates.of` @param pointsOf `(sourceId)` @param {number} [until] the time until which values are known */
  measure(measure, pointsOf, until) {
    const now = Date.now()
    for (const [sourceId, cells] of this.#cells) {
      const points = pointsOf(sourceId)
      for (const { measured, picture, rate } of cells) {
        const rateNow = measure(sourceId, rate)
        setText(measured, measuredText(rateNow))
        measured.classList.toggle("attention", rateNow?.isSilent === true)
        picture.element.toggleAttribute("hidden", points.length === 0)
        picture.draw(points, now, until)
      }
    }
  }
}
