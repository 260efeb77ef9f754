// A list of rows with a detail pane, and a placeholder while the list is empty.

import { h, setCovering, setHidden, setText } from "./dom.js"
import { RowList } from "./row-list.js"

const rowsPerPage = 100

/** A list that shows its first rows, more on demand, and the detail of the opened entry. */
export class ListPane {
  /** The element with the list and the detail. */
  element
  /** The list. */
  rows
  /** The text below the list. */
  footer
  /** The detail of the opened entry. */
  detail
  /** Maximum number of rows that are shown. */
  limit = rowsPerPage
  #list
  #ui
  #changed

  /**
   * @param {string} name the accessible name of the list
   * @param {string} detailName the accessible name of the detail
   * @param {string} hint a command that creates a first entry
   * @param {string[]} [heads] the headings of the columns, hidden on narrow screens
   * @param {any[]} cells as of a `RowList`
   * @param {{ open: (entry: any) => void, close: () => void, describe: (entry: any) => any, changed: () => void, pick?: any }} on
   *   `open`, `describe` and `pick` as of a `RowList`; `changed` is called when other rows must be drawn
   */
  constructor({ name, detailName, hint, heads, cells }, { open, close, describe, changed, pick }) {
    this.#changed = changed
    this.rows = h("ol", { className: "rows", "aria-label": name })
    this.footer = h("p", { className: "pane-footer num" })
    const onkeydown = (event) => { if (event.key === "Escape") close() }
    this.detail = h("aside", { className: "pane detail", "aria-label": detailName, hidden: true, onkeydown })
    const more = h("button", { className: "button quiet", type: "button", hidden: true, onclick: () => this.#more() }, "Show more")
    // The list is not a table: screen readers read each row as a whole.
    const head = heads && h("div", { className: "row row-heads", "aria-hidden": "true" }, heads.map((text) => h("span", { className: "clip" }, text)))
    const pane = h("div", { className: "pane", hidden: true }, head, h("div", { className: "pane-scroll" }, this.rows, more), this.footer)
    const [title, text, command] = [h("h2"), h("p"), h("pre", {}, hint)]
    const empty = h("div", { className: "empty", hidden: true }, title, text, command)
    this.element = h("div", { className: "split" }, h("div", { className: "split-list" }, pane, empty), this.detail)
    this.#ui = { more, pane, empty, title, text, command }
    this.#list = new RowList(this.rows, cells, open, describe, pick)
  }

  #more() {
    this.limit += rowsPerPage
    this.#changed()
  }

  /** Shows only the first rows again, for example of another selection. */
  startOver() {
    this.limit = rowsPerPage
    this.#changed()
  }

  /**
   * Draws the first entries.
   *
   * @param entries more than `limit` if there are more, so that “Show more” appears
   * @param opened the opened entry
   */
  draw(entries, opened) {
    const { more, pane, empty } = this.#ui
    this.#list.draw(entries.slice(0, this.limit), opened)
    setHidden(pane, entries.length === 0)
    setHidden(empty, entries.length > 0)
    setHidden(more, entries.length <= this.limit)
  }

  /** Explains why the list is empty, and optionally shows the command. */
  explain(title, text, hasHint) {
    const ui = this.#ui
    setText(ui.title, title)
    setText(ui.text, text)
    setHidden(ui.command, !hasHint)
  }

  /** Shows the detail. */
  open() {
    setHidden(this.detail, false)
    this.element.classList.add("open")
    setCovering(this.detail, true)
  }

  /**
   * Hides the detail, and focuses the row of the entry.
   *
   * @param {(entry: any) => boolean} isOpened returns whether an entry was the opened one
   * @param {HTMLElement} instead gets the focus if there is no such row
   */
  close(isOpened, instead) {
    setCovering(this.detail, false)
    setHidden(this.detail, true)
    this.element.classList.remove("open")
    if (!this.#list.focus(isOpened)) instead.focus()
  }

  /** Called when the view is shown again. */
  show() {
    if (!this.detail.hidden) setCovering(this.detail, true)
  }

  /** Called when another view is shown. */
  hide() {
    if (!this.detail.hidden) setCovering(this.detail, false)
  }
}
