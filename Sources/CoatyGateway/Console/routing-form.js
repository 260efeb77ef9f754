// A form for the properties of an IO context, without those of every Coaty object.

import { h, plural, replace, setHidden } from "./dom.js"

/** Properties without a field: those of every Coaty object, and `__proto__`. */
const common = new Set([
  "__proto__", "coreType", "objectType", "objectId", "name", "externalId", "parentObjectId", "assigneeUserId", "locationId", "isDeactivated",
])
/** The property with the first field, because most rules depend on it. */
const first = "operatingState"
/** Maximum number of fields. */
const maximumFields = 20

/** Returns the properties with a field, `[{ name, kind }]`, and the number of others, which only the JSON shows. */
export function formFields(context) {
  const own = Object.keys(context).filter((name) => !common.has(name))
  own.sort((one, other) => Number(other === first) - Number(one === first))
  const kinds = { string: "text", number: "number", boolean: "checkbox" }
  const all = own.filter((name) => Object.hasOwn(kinds, typeof context[name])).map((name) => ({ name, kind: kinds[typeof context[name]] }))
  const fields = all.slice(0, maximumFields)
  return { fields, others: own.length - fields.length }
}

/** Returns the short texts in the characteristics of nodes, with which rules may compare a context's properties. */
export function suggestions(nodes) {
  const texts = new Set()
  for (const { characteristics } of nodes) {
    if (typeof characteristics !== "object" || characteristics === null) continue
    for (const value of Object.values(characteristics)) {
      if (typeof value === "string" && value.length <= 80 && texts.size < 50) texts.add(value)
    }
  }
  return [...texts].sort()
}

export class ContextForm {
  element
  #onEdit
  #fields = h("div", { className: "form" })
  #options = h("datalist", { id: "routing-values" })
  #hint = h("p", { className: "hint muted" })
  #inputs = new Map()
  #drawn = ""

  /** @param {(name: string, value: any) => void} onEdit called with a property and its new value */
  constructor(onEdit) {
    this.#onEdit = onEdit
    this.element = h("fieldset", { className: "context-form form" },
      h("legend", { className: "visually-hidden" }, "Properties of the context"), this.#options, this.#fields, this.#hint)
  }

  /** Sets the values that text fields suggest. */
  suggest(values) {
    replace(this.#options, values.map((value) => h("option", { value })))
  }

  /** Shows the properties of a context. Undefined disables the fields: the text of the context can't be parsed. */
  show(context) {
    if (context === undefined) {
      for (const input of this.#inputs.values()) input.disabled = true
      return
    }
    const { fields, others } = formFields(context)
    const drawn = JSON.stringify(fields)
    if (drawn !== this.#drawn) {
      this.#drawn = drawn
      this.#inputs.clear()
      replace(this.#fields, fields.map((field, index) => this.#field(field, index)))
    }
    for (const { name, kind } of fields) {
      const input = this.#inputs.get(name)
      input.disabled = false
      // An equal number keeps the typed text, such as "1." for 1.
      if (kind === "checkbox") input.checked = context[name]
      else if (kind === "number" ? input.valueAsNumber !== context[name] : input.value !== context[name]) input.value = context[name]
    }
    setHidden(this.#fields, fields.length === 0)
    setHidden(this.#hint, others === 0 && fields.length > 0)
    this.#hint.textContent = fields.length === 0 && others === 0 ? "This context has no properties of its own yet: add them to the JSON."
      : `${plural(others, "more property", "more properties")} in the JSON.`
  }

  #field({ name, kind }, index) {
    const id = `routing-property-${index}`
    const input = kind === "checkbox" ? h("input", { id, type: "checkbox" })
      : kind === "number" ? h("input", { id, type: "number", step: "any" })
      : h("input", { id, type: "text", list: "routing-values", spellcheck: false, autocomplete: "off", autocapitalize: "off" })
    input.addEventListener("input", () => {
      const value = kind === "checkbox" ? input.checked : kind === "number" ? input.valueAsNumber : input.value
      // An empty number field is NaN.
      if (!Number.isNaN(value)) this.#onEdit(name, value)
    })
    this.#inputs.set(name, input)
    return kind === "checkbox" ? h("label", { className: "check" }, input, name)
      : h("div", { className: "field" }, h("label", { for: id }, name), input)
  }
}
