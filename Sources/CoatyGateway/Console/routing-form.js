// A form for the properties of an IO context, without those that every Coaty object has.

import { h, plural, replace, setHidden } from "./dom.js"

/** Properties of every Coaty object, which do not affect routing. */
const common = new Set([
  "__proto__", "coreType", "objectType", "objectId", "name", "externalId", "parentObjectId", "assigneeUserId", "locationId", "isDeactivated",
])
/** The property that most rules depend on. */
const first = "operatingState"
/** Maximum number of fields. */
const maximumFields = 20

/** The properties that have a field, `[{ name, kind }]`, and how many others only the JSON has. */
export function formFields(context) {
  const own = Object.keys(context).filter((name) => !common.has(name))
  own.sort((one, other) => Number(other === first) - Number(one === first))
  const kinds = { string: "text", number: "number", boolean: "checkbox" }
  const all = own.filter((name) => Object.hasOwn(kinds, typeof context[name])).map((name) => ({ name, kind: kinds[typeof context[name]] }))
  const fields = all.slice(0, maximumFields)
  return { fields, others: own.length - fields.length }
}

/** The short texts in the characteristics of nodes: what a context's property may be compared with. */
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

  /** Offers values for texts. */
  suggest(values) {
    replace(this.#options, values.map((value) => h("option", { value })))
  }

  /** Shows the properties of a context; undefined if its text can't be read, so that nobody knows what a field would change. */
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
      // A text that is being typed stays: "1." is 1, too.
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
      // An empty field has no number yet.
      if (!Number.isNaN(value)) this.#onEdit(name, value)
    })
    this.#inputs.set(name, input)
    return kind === "checkbox" ? h("label", { className: "check" }, input, name)
      : h("div", { className: "field" }, h("label", { for: id }, name), input)
  }
}
