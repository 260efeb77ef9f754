// Offers known operations by name: as suggestions of inputs, and as buttons.

import { h, replace, setHidden } from "./dom.js"
import { originText } from "./known-operations.js"

/** The id of the datalist, which inputs reference by `list`. */
export const operationOptions = "operation-names"
/** Maximum number of buttons. */
const maximumButtons = 6

/** A list of suggestions for inputs, and a row of buttons that fill one in. */
export class OperationOffers {
  /** The suggestions. */
  options = h("datalist", { id: operationOptions })
  /** The buttons. */
  element
  #operations
  #buttons = h("div", { className: "chips" })
  #drawn = ""

  /** @param {(name: string) => void} choose called with the name of the pressed button */
  constructor(operations, choose) {
    this.#operations = operations
    this.element = h("div", { className: "field wide offers", role: "group", "aria-label": "Known operations", hidden: true },
      h("p", { className: "label" }, "Known operations"), this.#buttons)
    this.#buttons.addEventListener("click", (event) => {
      const button = event.target.closest("button")
      if (button) choose(button.dataset.operation)
    })
  }

  /** Shows the operations that are known now. */
  draw() {
    const { all } = this.#operations
    const drawn = JSON.stringify(all)
    if (drawn === this.#drawn) return
    this.#drawn = drawn
    setHidden(this.element, all.length === 0)
    replace(this.options, all.map((operation) => h("option", { value: operation.name, label: originText(operation) })))
    replace(this.#buttons, all.slice(0, maximumButtons).map((operation) =>
      h("button", { className: "chip offer", type: "button", "data-operation": operation.name, title: originText(operation) }, operation.name)))
  }
}
