// The detail of an object, updated as the object changes.

import { isAgent } from "./alive-objects.js"
import { codeOfObject } from "./code-of.js"
import { copyCodeButtons } from "./copy-code.js"
import { ago, copyButton, count, dateTime, h, line, plural, replace, setHidden, setText } from "./dom.js"
import { maximumShown, prettyJSON } from "./json-print.js"
import { shown } from "./object-changes.js"
import { Plots } from "./plot.js"
import { token } from "./token.js"

/** Maximum number of an agent's objects that are listed. */
const maximumListed = 20

/** The detail of an object. Unchanged elements are kept, so that they keep the focus. */
export class ObjectDetail {
  #entry
  #owned = ""
  #names
  #away
  #open
  #ui

  /**
   * @param {HTMLElement} aside the element that contains it
   * @param {{ names: any, away: any, open: (id: string) => void, close: () => void }} on
   */
  constructor(aside, { names, away, open, close }) {
    this.#names = names
    this.#away = away
    this.#open = open
    this.#ui = build(aside, close, () => this.#entry)
  }

  /** Shows another object. */
  begin(entry, owned, series) {
    this.#entry = undefined
    this.#owned = ""
    this.#ui.plots.clear()
    this.show(entry, owned, series)
    this.#ui.aside.scrollTop = 0
    this.#ui.heading.focus({ preventScroll: true })
  }

  /**
   * Updates the object.
   *
   * @param owned the objects that it advertises, if it is an agent
   * @param series of its numeric properties that have changed: `[[name, points]]`
   */
  show(entry, owned, series) {
    const ui = this.#ui
    setText(ui.changed, `${dateTime(entry.changed)} · ${ago(entry.changed)}`)
    setText(ui.owner, this.#names.full(entry.owner))
    this.#showOwned(owned)
    setHidden(ui.values, series.length === 0)
    ui.plots.draw(series, Date.now(), entry.state === "gone" ? entry.changed : this.#away.since)
    if (entry === this.#entry) return
    this.#entry = entry
    const { object, changes } = entry
    setText(ui.heading, entry.name)
    setText(ui.type, line(object.objectType))
    setText(ui.coreType, line(object.coreType))
    setText(ui.id, line(entry.id))
    setText(ui.since, dateTime(entry.since))
    setText(ui.changedTerm, entry.state !== "gone" ? "Last change" : isAgent(entry) ? "Left" : "Removed")
    setHidden(ui.changes, changes.length === 0)
    replace(ui.changesBody, changes.map(({ property, before, after }) =>
      h("tr", {}, h("td", {}, line(property, 60)), h("td", { className: "mono muted" }, shown(before)), h("td", { className: "mono" }, shown(after)))))
    setText(ui.json, prettyJSON(object, { maximum: maximumShown }))
  }

  #showOwned(owned) {
    const { ownedPart, ownedTitle, ownedList, ownedMore } = this.#ui
    const listed = owned.slice(0, maximumListed)
    const key = listed.map(({ id, name }) => id + name).join("\n")
    setHidden(ownedPart, owned.length === 0)
    setText(ownedTitle, `Its ${plural(owned.length, "object")}`)
    setText(ownedMore, owned.length > maximumListed ? `and ${count(owned.length - maximumListed)} more` : "")
    if (key === this.#owned) return
    this.#owned = key
    replace(ownedList, listed.map((other) => h("li", {}, h("button", { className: "row", type: "button", onclick: () => this.#open(other.id) },
      h("span", { className: "clip" }, other.name), h("span", { className: "clip muted" }, line(other.object.objectType))))))
  }
}

function build(aside, close, current) {
  const text = (tag, className = "") => h(tag, { className })
  const ui = {
    aside,
    heading: h("h2", { tabIndex: -1 }),
    type: text("span"), coreType: text("span", "muted"), id: text("span", "mono"), owner: text("span"), since: text("span", "num"),
    changedTerm: h("dt"), changed: text("dd", "num"),
    changesBody: h("tbody"),
    ownedTitle: h("h3"), ownedList: h("ul", { className: "rows owned" }), ownedMore: text("p", "muted"),
    json: h("pre", { className: "json", tabIndex: 0, "aria-label": "Object" }),
  }
  ui.changes = h("div", {}, h("h3", {}, "What changed last"), h("table", { className: "table property-changes" },
    h("thead", {}, h("tr", {}, ["Property", "Before", "Now"].map((text) => h("th", { scope: "col" }, text)))), ui.changesBody))
  ui.plots = new Plots()
  ui.values = h("div", { hidden: true }, h("h3", {}, "Values"), ui.plots.element)
  ui.ownedPart = h("div", {}, ui.ownedTitle, ui.ownedList, ui.ownedMore)
  const fact = (term, ...what) => [h("dt", {}, term), h("dd", {}, what)]
  aside.append(
    h("div", { className: "detail-header" }, ui.heading, h("button", { className: "button quiet", type: "button", onclick: close }, "Close")),
    h("dl", { className: "facts" },
      fact("Type", ui.type, h("br"), ui.coreType), fact("Object id", ui.id), fact("Advertised by", ui.owner), fact("Alive since", ui.since),
      ui.changedTerm, ui.changed),
    ui.values, ui.changes, ui.ownedPart,
    h("div", {}, h("div", { className: "detail-header" }, h("h3", {}, "Object"), copyButton(() => prettyJSON(current().object), "Copy object")), ui.json),
    h("div", { className: "toolbar copy-code" }, copyCodeButtons(() => codeOfObject(current().object, document.baseURI, token() !== undefined))))
  return ui
}
