// "What may I do, and why not?": asks the gateway whether an operation is allowed, without performing it.

import { questions } from "./access.js"
import { missingGrant } from "./denial.js"
import { h, replace, setHidden, setText } from "./dom.js"
import { showFault } from "./fault.js"
import { parseJSON } from "./json-text.js"
import { coreTypes } from "./patterns.js"

/** Milliseconds after the last keystroke until a typed name is written to the address. */
const typingTime = 400

/** By decision, the kind of the notice and the beginning of its text. */
const verdicts = {
  __proto__: null,
  allowed: ["ok", "Allowed"],
  conditional: ["warn", "Allowed where a condition holds"],
  denied: ["bad", "Denied"],
}

/** Returns the body of `POST v1/access/check`. @param value the texts of the form */
export function question(verb, pattern, { name = "", json, others = false, retain = false }) {
  const { field, root } = questions[verb][pattern]
  const key = field?.name === "type" && coreTypes.includes(name) ? "coreType" : field?.name
  return {
    [verb]: pattern,
    ...(field && name !== "" && { [key]: name }),
    ...(json !== undefined && { [root]: json }),
    ...(others && { others }),
    ...(retain && { retain }),
  }
}

/** The card with the form and its answer. */
export class AccessCheck {
  element
  #app
  #ui
  /** The kind of name in the name field. */
  #field
  #turn = 0
  #typingTimer
  #write

  /** @param {(parameters: Record<string, string>, isStep: boolean) => void} write writes the selection to the address */
  constructor(app, write) {
    this.#app = app
    this.#write = (isStep) => {
      clearTimeout(this.#typingTimer)
      write(this.#parameters, isStep)
    }
    this.#ui = this.#build()
    this.#chooseVerb()
  }

  /** Shows the parameters of an address, and ignores unknown ones. It does not check them: the user presses the button. */
  go({ verb, pattern, name = "", others, retain }) {
    clearTimeout(this.#typingTimer)
    const ui = this.#ui
    ui.verb.value = Object.hasOwn(questions, verb ?? "") ? verb : Object.keys(questions)[0]
    this.#chooseVerb()
    if (Object.hasOwn(questions[this.#verb], pattern ?? "")) ui.pattern.value = pattern
    this.#choosePattern()
    ui.name.value = name
    ui.others.checked = others === "true"
    ui.retain.checked = retain === "true"
  }

  get #parameters() {
    const ui = this.#ui
    const { field, others, retain } = questions[this.#verb][this.#pattern]
    return {
      verb: this.#verb,
      pattern: this.#pattern,
      name: field ? ui.name.value.trim() : "",
      others: others && ui.others.checked ? "true" : "",
      retain: retain && ui.retain.checked ? "true" : "",
    }
  }

  get #verb() {
    return this.#ui.verb.value
  }

  get #pattern() {
    return this.#ui.pattern.value
  }

  #chooseVerb() {
    const { pattern } = this.#ui
    replace(pattern, Object.keys(questions[this.#verb]).map((name) => h("option", { value: name }, name)))
    this.#choosePattern()
  }

  #choosePattern() {
    const ui = this.#ui
    const { field, root, others, retain } = questions[this.#verb][this.#pattern]
    // A name of another kind would be misleading.
    if (field?.name !== this.#field) ui.name.value = ""
    this.#field = field?.name
    setHidden(ui.nameField, field === undefined)
    setText(ui.nameLabel, field?.label ?? "")
    setHidden(ui.jsonField, root === undefined)
    setText(ui.jsonLabel, root === "request" ? "Payload of the request (JSON)" : "Object (JSON)")
    setHidden(ui.othersLabel, !others)
    setHidden(ui.retainLabel, !retain)
    this.#clear()
  }

  #clear() {
    this.#turn += 1
    replace(this.#ui.answer)
    showFault(this.#ui.name, this.#ui.nameError)
    showFault(this.#ui.json, this.#ui.jsonError)
  }

  #blame(input, element, text) {
    showFault(input, element, text)
    input.focus()
    this.#app.announce(text)
  }

  async #ask() {
    this.#clear()
    const ui = this.#ui
    const turn = this.#turn
    const { field, root, others, retain } = questions[this.#verb][this.#pattern]
    const name = ui.name.value.trim()
    if (field?.isNeeded && name === "") return this.#blame(ui.name, ui.nameError, "This is needed.")
    const text = root === undefined ? "" : ui.json.value.trim()
    let json
    try {
      json = text === "" ? undefined : parseJSON(text)
    } catch (error) {
      return this.#blame(ui.json, ui.jsonError, error.message)
    }
    const flags = { others: Boolean(others) && ui.others.checked, retain: Boolean(retain) && ui.retain.checked }
    const body = question(this.#verb, this.#pattern, { name, json, ...flags })
    try {
      const answer = await this.#app.rest("v1/access/check", { method: "POST", body })
      if (turn === this.#turn) this.#show(answer.json)
    } catch (error) {
      if (turn === this.#turn) this.#say("bad", error.detail ?? error.message)
    }
  }

  #show({ decision, grants = [], missing }) {
    const [kind, verdict] = verdicts[decision] ?? ["warn", String(decision)]
    const names = grants.join(", ")
    const reason =
      decision === "denied" ? (names ? `: the condition of ${names} is not true, or can't be evaluated.` : ": no grant of your roles is for this.")
      : names ? ` by ${names}.` : ": your access is not restricted."
    this.#say(kind, verdict + reason, missingGrant(missing))
  }

  #say(kind, text, ...more) {
    replace(this.#ui.answer, h("div", { className: "notice", "data-kind": kind }, h("p", {}, text), more))
    this.#app.announce(text)
  }

  #build() {
    const field = (label, input, error) => h("div", { className: "field" }, label, input, error)
    const select = (id, onchange, options = []) => h("select", { id, onchange }, options.map((name) => h("option", { value: name }, name)))
    const chosen = (choose) => () => {
      choose()
      this.#write(true)
    }
    const verb = select("check-verb", chosen(() => this.#chooseVerb()), Object.keys(questions))
    const pattern = select("check-pattern", chosen(() => this.#choosePattern()))
    const fault = (id) => h("p", { className: "error", id, hidden: true })
    const [nameError, jsonError] = [fault("check-name-error"), fault("check-json-error")]
    const common = { spellcheck: false, autocomplete: "off", oninput: () => this.#clear() }
    const name = h("input", {
      id: "check-name", type: "text", "aria-describedby": nameError.id, ...common,
      oninput: () => {
        this.#clear()
        clearTimeout(this.#typingTimer)
        this.#typingTimer = setTimeout(() => this.#write(false), typingTime)
      },
    })
    const json = h("textarea", { id: "check-json", rows: 4, placeholder: "optional: conditions are judged by it", "aria-describedby": jsonError.id, ...common })
    const nameLabel = h("label", { for: name.id })
    const jsonLabel = h("label", { for: json.id })
    const [nameField, jsonField] = [field(nameLabel, name, nameError), field(jsonLabel, json, jsonError)]
    const flag = (label) => {
      const input = h("input", { type: "checkbox", onchange: chosen(() => this.#clear()) })
      return [input, h("label", { className: "check" }, input, label)]
    }
    const [others, othersLabel] = flag("of another user")
    const [retain, retainLabel] = flag("retained by the broker")
    const answer = h("div", { className: "outcome" })
    const form = h("form", { className: "form", noValidate: true, onsubmit: (event) => { event.preventDefault(); this.#ask() } },
      h("div", { className: "form-row" }, field(h("label", { for: verb.id }, "Verb"), verb), field(h("label", { for: pattern.id }, "Pattern"), pattern), nameField),
      h("div", { className: "toolbar" }, othersLabel, retainLabel),
      jsonField,
      h("div", { className: "toolbar" }, h("button", { className: "button primary", type: "submit" }, "Check")),
      answer)
    this.element = h("section", { className: "card", "aria-label": "What may I do, and why not?" }, h("h2", {}, "What may I do, and why not?"), form)
    return { verb, pattern, name, nameLabel, nameField, nameError, json, jsonLabel, jsonField, jsonError, others, othersLabel, retain, retainLabel, answer }
  }
}
