// The chosen IO source: its values over time, and its agreed and measured rates.

import { h, replace, setHidden, setText } from "./dom.js"
import { Plots } from "./plot.js"
import { rateText } from "./routing-model.js"
import { measuredText } from "./source-rates.js"
import { octets } from "./summary.js"
import { numbers } from "./value-history.js"

/** Maximum number of numbers of one value that are plotted. */
const maximumNumbers = 3
const numeral = /^\s*-?\d+(\.\d+)?([eE][+-]?\d+)?\s*$/

/** Returns the numbers in an IO value or its octets as text, `[[name, number]]`. The value itself has an empty name. */
export function valueNumbers(data) {
  if (data?.encoding !== undefined) {
    const text = octets(data)
    return numeral.test(text) ? [["", Number(text)]] : []
  }
  const found = []
  for (const [path, number] of numbers(data?.value, "")) {
    if (found.length === maximumNumbers) break
    found.push([path.replace(/^\./, ""), number])
  }
  return found
}

export class SourceCard {
  element
  #heading = h("h3")
  #plots = new Plots()
  #none = h("p", { className: "muted" })
  #agreed = h("dd")
  #measured = h("dd")
  #last = h("dd", { className: "mono" })
  #shown

  constructor() {
    this.element = h("section", { className: "source-values", "aria-label": "Chosen source", hidden: true },
      this.#heading, this.#plots.element, this.#none,
      h("dl", { className: "facts num" },
        h("dt", {}, "Agreed rate"), this.#agreed, h("dt", {}, "Measured rate"), this.#measured, h("dt", {}, "Last value"), this.#last))
  }

  /**
   * Shows a source, or nothing.
   *
   * @param source `{ id, name, agreed, isAssociated, measured, last, series }`: `agreed` is the rate of its associations, null if
   *   they differ, undefined if there is none; `measured` is of `SourceRates.of`, `last` a text, `series` `[[name, points]]`
   * @param {number} [until] the time until which values are known
   */
  draw(source, until) {
    setHidden(this.element, source === undefined)
    if (source === undefined) return
    const { id, name, agreed, isAssociated, measured, last, series } = source
    if (id !== this.#shown) this.#plots.clear()
    this.#shown = id
    setText(this.#heading, name)
    this.#plots.draw(series.map(([member, points]) => [member === "" ? "Value" : member, points]), Date.now(), until)
    setHidden(this.#none, series.length > 0)
    setText(this.#none, last === undefined ? "Values are plotted when they arrive." : "Its values are not numbers.")
    setText(this.#agreed, !isAssociated ? "not associated" : agreed === null ? "differs between actors" : rateText(agreed))
    setText(this.#measured, measuredText(measured))
    setText(this.#last, last ?? "–")
  }
}
