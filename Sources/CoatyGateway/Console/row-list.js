// Rows to choose from: elements that are made once, and then show other entries.

import { h, setHidden, setText } from "./dom.js"

/**
 * What a row shows: the texts of its cells, of which the one that is a tag may have a pattern or a kind, and the one that is a
 * picture is drawn; or a note.
 *
 * @typedef {{ cells: string[], pattern?: string, kind?: string, isDimmed?: boolean, drawPicture?: (cell: HTMLElement) => void }
 *   | { note: string }} Row
 */
export class RowList {
  #list
  #cells
  #open
  #describe
  #rows = []

  /**
   * @param {HTMLElement} list
   * @param {string[]} cells the class names of a row's cells
   * @param {(entry: any) => void} open called with the entry whose row was pressed
   * @param {(entry: any) => Row} describe
   */
  constructor(list, cells, open, describe) {
    this.#list = list
    this.#cells = cells
    this.#open = open
    this.#describe = describe
  }

  /** Shows entries, the first on top, of which one may be opened. */
  draw(entries, opened) {
    while (this.#rows.length < entries.length) this.#append()
    this.#rows.forEach((row, place) => {
      row.entry = entries[place]
      setHidden(row.li, row.entry === undefined)
      if (row.entry !== undefined) this.#fill(row, row.entry === opened)
    })
  }

  /**
   * Puts the focus on the row of the first entry that is wanted.
   *
   * @returns whether there is one
   */
  focus(isWanted) {
    const row = this.#rows.find(({ entry }) => entry !== undefined && isWanted(entry))
    row?.button.focus()
    return row !== undefined
  }

  #append() {
    const cells = this.#cells.map((className) => h("span", { className }))
    const button = h("button", { className: "row", type: "button" }, cells)
    const note = h("p", { className: "note", hidden: true })
    const row = { li: h("li", {}, button, note), button, note, cells, entry: undefined }
    button.addEventListener("click", () => { if (row.entry !== undefined) this.#open(row.entry) })
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
      if (this.#cells[place].includes("picture")) return shown.drawPicture?.(cell)
      setText(cell, shown.cells[place] ?? "")
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

function setData(element, name, value) {
  if (element.dataset[name] === value) return
  if (value === undefined) delete element.dataset[name]
  else element.dataset[name] = value
}
