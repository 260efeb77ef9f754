// A list of rows whose elements are created once and reused for other entries.

import { h, isNarrow, setHidden, setText } from "./dom.js"

/**
 * A list of rows.
 *
 * A `Row` is either a note or the texts of its cells. The tag cell may have a pattern or a kind; `drawPicture` draws the picture
 * cell, and `uncut` has the full texts of cells whose text is cut. A `Cell` may consist of parts with separate texts. A part with
 * `pick` has its own click action.
 *
 * @typedef {string | { className: string, parts: { className?: string, pick?: string }[] }} Cell
 * @typedef {{ cells: (string | string[])[], pattern?: string, kind?: string, isDimmed?: boolean,
 *   uncut?: Record<number, string | undefined>, drawPicture?: (cell: HTMLElement) => void } | { note: string }} Row
 */
export class RowList {
  #list
  #cells
  #open
  #describe
  #pick
  #rows = []

  /**
   * @param {HTMLElement} list
   * @param {Cell[]} cells the class names of a row's cells
   * @param {(entry: any) => void} open called with the entry whose row was pressed
   * @param {(entry: any) => Row} describe returns the row of an entry
   * @param {(entry: any, pick: string) => void} [pick] called with the entry when the user clicks a part with `pick`
   */
  constructor(list, cells, open, describe, pick) {
    this.#list = list
    this.#cells = cells
    this.#open = open
    this.#describe = describe
    this.#pick = pick
    list.addEventListener("keydown", (event) => this.#move(event))
  }

  /** Shows entries, and highlights the opened one. */
  draw(entries, opened) {
    while (this.#rows.length < entries.length) this.#append()
    this.#rows.forEach((row, place) => {
      row.entry = entries[place]
      setHidden(row.li, row.entry === undefined)
      if (row.entry !== undefined) this.#fill(row, row.entry === opened)
    })
  }

  /**
   * Focuses the row of the first entry that matches.
   *
   * @returns whether there is one
   */
  focus(isWanted) {
    const row = this.#rows.find(({ entry }) => entry !== undefined && isWanted(entry))
    row?.button.focus()
    return row !== undefined
  }

  /** Moves the focus between the rows with the arrow keys, Home and End. */
  #move(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return
    const buttons = this.#rows.map(({ button }) => button).filter((button) => button.checkVisibility())
    const place = buttons.indexOf(event.target)
    const next = { ArrowDown: place + 1, ArrowUp: place - 1, Home: 0, End: buttons.length - 1 }[event.key]
    if (place < 0 || next === undefined) return
    event.preventDefault()
    buttons[next]?.focus()
  }

  #append() {
    const cells = this.#cells.map((cell) => (typeof cell === "string" ? h("span", { className: cell })
      : h("span", { className: cell.className }, cell.parts.map(({ className, pick }) => h("span", { className, "data-pick": pick })))))
    const button = h("button", { className: "row", type: "button" }, cells)
    const note = h("p", { className: "note", hidden: true })
    const row = { li: h("li", {}, button, note), button, note, cells, entry: undefined }
    button.addEventListener("click", (event) => {
      if (row.entry === undefined) return
      const part = this.#pick && partAt(button, event)
      if (part) this.#pick(row.entry, part.dataset.pick)
      else this.#open(row.entry)
    })
    this.#rows.push(row)
    this.#list.append(row.li)
  }

  #fill(row, isOpened) {
    const shown = this.#describe(row.entry)
    const isNote = "note" in shown
    setHidden(row.button, isNote)
    setHidden(row.note, !isNote)
    row.li.toggleAttribute("data-gap", isNote)
    if (isNote) return setText(row.note, shown.note)
    row.cells.forEach((cell, place) => {
      const content = shown.cells[place] ?? ""
      setData(cell, "uncut", shown.uncut?.[place])
      if (typeof this.#cells[place] !== "string") {
        return [...cell.children].forEach((part, index) => setText(part, (Array.isArray(content) ? content[index] : content) ?? ""))
      }
      if (this.#cells[place].includes("picture")) return shown.drawPicture?.(cell)
      setText(cell, content)
      if (!this.#cells[place].includes("tag")) return
      setData(cell, "pattern", shown.pattern)
      setData(cell, "kind", shown.kind)
    })
    row.li.toggleAttribute("data-dimmed", shown.isDimmed === true)
    if (isOpened !== row.button.hasAttribute("aria-current")) {
      if (isOpened) row.button.setAttribute("aria-current", "true")
      else row.button.removeAttribute("aria-current")
    }
  }
}

/**
 * Returns the part with `pick` at the position of a click: not all browsers dispatch clicks to the children of a button. Returns
 * undefined for a key press and on narrow screens, which open the row.
 */
function partAt(button, { detail, clientX, clientY }) {
  if (detail === 0 || isNarrow()) return undefined
  return [...button.querySelectorAll("[data-pick]")].find((part) => {
    const [{ left, right, top, bottom }, { right: end }] = [part.getBoundingClientRect(), part.parentElement.getBoundingClientRect()]
    return clientX >= left && clientX <= Math.min(right, end) && clientY >= top && clientY <= bottom
  })
}

function setData(element, name, value) {
  if (element.dataset[name] === value) return
  if (value === undefined) delete element.dataset[name]
  else element.dataset[name] = value
}
