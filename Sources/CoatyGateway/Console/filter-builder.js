// A form for the conditions of a filter.

import { conditionOf, operators, rowsOf } from "./condition.js"
import { h, replace, setHidden, setText } from "./dom.js"

export class FilterBuilder {
  element
  #changed
  #rows = []
  #list = h("ul", { className: "conditions" })
  #join
  #joinField
  #note = h("p", { className: "hint" })
  #properties = h("datalist", { id: "filter-properties" })
  #add

  /** @param {(condition: any) => void} changed called with the condition when the user edits the form; undefined if it is empty */
  constructor(changed) {
    this.#changed = changed
    this.#join = h("select", { id: "filter-join", onchange: () => this.#typed() },
      h("option", { value: "and" }, "all conditions"), h("option", { value: "or" }, "one condition at least"))
    this.#joinField = h("div", { className: "field" }, h("label", { for: this.#join.id }, "An event must meet"), this.#join)
    this.#add = h("button", { className: "button", type: "button", onclick: () => this.#append() }, "Add condition")
    this.element = h("fieldset", { className: "filter-builder" }, h("legend", { className: "label" }, "Conditions on the object of an event"),
      this.#joinField, this.#list, this.#add, this.#note, this.#properties)
    this.show(undefined)
  }

  /** Shows a condition, or a note if the form can't express it. */
  show(condition) {
    const form = rowsOf(condition)
    this.#rows = []
    replace(this.#list)
    setHidden(this.#add, form === undefined)
    setText(this.#note, form === undefined ? "The form cannot show this filter. Edit its JSON." : "")
    if (form === undefined) return this.#arrange()
    this.#join.value = form.join
    const { rows } = form
    for (const row of rows.length > 0 ? rows : [{ property: "", operator: "Equals", value: "" }]) this.#insert(row)
    this.#arrange()
  }

  /** Sets the property names that the form suggests. @param {string[]} names */
  offer(names) {
    replace(this.#properties, names.map((value) => h("option", { value })))
  }

  #append() {
    const row = this.#insert({ property: "", operator: "Equals", value: "" })
    this.#arrange()
    row.property.focus()
  }

  #insert({ property, operator, value }) {
    const row = {
      property: h("input", { value: property, list: this.#properties.id, placeholder: "name", spellcheck: false, autocomplete: "off", "aria-label": "Property", oninput: () => this.#typed() }),
      operator: h("select", { "aria-label": "Operator", onchange: () => this.#typed() },
        Object.entries(operators).map(([name, { title }]) => h("option", { value: name }, title))),
      value: h("input", { value, spellcheck: false, autocomplete: "off", "aria-label": "Value", oninput: () => this.#typed() }),
    }
    row.operator.value = operator
    const remove = h("button", { className: "button quiet", type: "button", "aria-label": "Remove condition", onclick: () => this.#remove(row) }, "×")
    row.element = h("li", {}, row.property, row.operator, row.value, remove)
    this.#rows.push(row)
    this.#list.append(row.element)
    return row
  }

  #remove(row) {
    this.#rows = this.#rows.filter((other) => other !== row)
    row.element.remove()
    if (this.#rows.length === 0) this.#insert({ property: "", operator: "Equals", value: "" })
    this.#typed()
    this.#add.focus()
  }

  #typed() {
    this.#arrange()
    const rows = this.#rows.map(({ property, operator, value }) => ({ property: property.value, operator: operator.value, value: value.value }))
    this.#changed(conditionOf({ join: this.#join.value, rows }))
  }

  /** Shows the fields that the current rows need. */
  #arrange() {
    setHidden(this.#joinField, this.#rows.length < 2)
    for (const { operator, value } of this.#rows) {
      const { values, hint = "text or JSON" } = operators[operator.value]
      value.placeholder = values === 0 ? "" : hint
      value.disabled = values === 0
    }
  }
}
