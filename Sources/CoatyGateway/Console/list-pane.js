// A list to choose from, what stands in its place while it is empty, and beside it what was chosen.

import { h, setCovering, setHidden, setText } from "./dom.js"
import { RowList } from "./row-list.js"

const rowsPerPage = 100

/** Shows the first rows of a list, more where somebody wants them, and opens what was chosen. */
export class ListPane {
  /** What all of this is in. */
  element
  /** The list. */
  rows
  /** What is told below the list. */
  footer
  /** What shows that which was chosen. */
  detail
  /** How many rows are shown at most. */
  limit = rowsPerPage
  #list
  #ui
  #changed

  /**
   * @param {string} name the list's name
   * @param {string} detailName that of what was chosen
   * @param {string} hint what brings something into the list: a command
   * @param {string[]} [heads] the headings of the columns, hidden on narrow screens
   * @param {any[]} cells as of a `RowList`
   * @param {{ open: (entry: any) => void, close: () => void, describe: (entry: any) => any, changed: () => void, pick?: any }} on
   *   `open`, `describe` and `pick` as of a `RowList`; `changed` when more rows, or others, are to be drawn
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

  /** Shows the first rows of another list. */
  startOver() {
    this.limit = rowsPerPage
    this.#changed()
  }

  /**
   * Draws the first of some entries.
   *
   * @param entries at least one more than the limit, where there are more
   * @param opened the one that is opened
   */
  draw(entries, opened) {
    const { more, pane, empty } = this.#ui
    this.#list.draw(entries.slice(0, this.limit), opened)
    setHidden(pane, entries.length === 0)
    setHidden(empty, entries.length > 0)
    setHidden(more, entries.length <= this.limit)
  }

  /** Says why the list is empty, and perhaps what to do. */
  explain(title, text, hasHint) {
    const ui = this.#ui
    setText(ui.title, title)
    setText(ui.text, text)
    setHidden(ui.command, !hasHint)
  }

  /** Makes room for what was chosen. */
  open() {
    setHidden(this.detail, false)
    this.element.classList.add("open")
    setCovering(this.detail, true)
  }

  /**
   * Gives the room back, and the focus to a row.
   *
   * @param {(entry: any) => boolean} isOpened which row
   * @param {HTMLElement} instead what has the focus where that row is not there
   */
  close(isOpened, instead) {
    setCovering(this.detail, false)
    setHidden(this.detail, true)
    this.element.classList.remove("open")
    if (!this.#list.focus(isOpened)) instead.focus()
  }

  /** The view is shown again. */
  show() {
    if (!this.detail.hidden) setCovering(this.detail, true)
  }

  /** Another view is shown. */
  hide() {
    if (!this.detail.hidden) setCovering(this.detail, false)
  }
}
