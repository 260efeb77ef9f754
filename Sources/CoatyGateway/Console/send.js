// The view that sends an event of any pattern, and shows the curl command for it.

import { Answers } from "./answers.js"
import { curlCommand } from "./curl.js"
import { copyButton, count, h, replace, setText } from "./dom.js"
import { showFault } from "./fault.js"
import { maximumShown, prettyJSON } from "./json-print.js"
import { NumberError, parseExactJSON } from "./json-text.js"
import { forever } from "./observe.js"
import { OperationOffers, operationOptions } from "./operation-offers.js"
import { fault, frameSize, hasHalfCharacter, maximumFrame, patterns, restRequest, socketRequest } from "./patterns.js"
import { Responder } from "./responder.js"
import { subject } from "./summary.js"
import { token } from "./token.js"

const minimumRows = 4
const maximumRows = 16
/** Milliseconds after the last keystroke until a typed name is written to the address. */
const typingTime = 400

export const view = {
  id: "send",
  title: "Send",
  isPermitted: (access) => permitted(access).length > 0 || mayAnswer(access),
  mount(root, app) {
    const send = new Send(root, app)
    return { show: () => send.show(), hide: () => send.hide(), go: (parameters) => send.go(parameters) }
  },
}

/** Returns the patterns that the user may send. */
const permitted = (access) => patterns.filter(({ event, isRequest }) => access.may(isRequest ? "request" : "publish", event))

const mayAnswer = (access) => access.may("observe", "call") && access.may("answer", "call")

class Send {
  #app
  #patterns
  #answers
  #responder
  #ui
  /** The chosen pattern; undefined if the user may send none. */
  #pattern
  /** Drafts by pattern: the text of the body, the text that the page has filled in, and the parameters. */
  #drafts
  /** The shown fields with their elements. */
  #fields = []
  #operations
  #offers
  #typingTimer

  constructor(root, app) {
    this.#app = app
    this.#operations = app.operations
    this.#offers = new OperationOffers(this.#operations, (name) => this.#chooseOperation(name))
    this.#patterns = permitted(app.access)
    this.#drafts = new Map(this.#patterns.map((pattern) => [pattern, draft(pattern)]))
    this.#ui = this.#build(root)
    if (this.#patterns.length > 0) this.#choose(this.#patterns[0])
    this.#offers.draw()
    this.#operations.addEventListener("change", () => {
      this.#offers.draw()
      // The address may name an operation that is described only now.
      if (this.#pattern?.event === "call" && this.#suggestParameters()) this.#refresh()
    })
    this.#operations.follow(app.client, app.access, forever, (id) => app.names.of(id))
  }

  show() {
    this.#answers.show()
    this.#responder.show()
  }

  hide() {
    this.#answers.hide()
    this.#responder.hide()
  }

  // MARK: - The address

  /** Shows the parameters of an address. */
  go({ pattern: event, ...names }) {
    const pattern = this.#patterns.find((pattern) => pattern.event === event) ?? this.#patterns[0]
    if (pattern === undefined) return
    clearTimeout(this.#typingTimer)
    const { parameters } = this.#drafts.get(pattern)
    // An address without a pattern leaves the drafts as they are.
    if (pattern.event === event) for (const { id } of pattern.fields.filter(isName)) parameters[id] = names[id] ?? ""
    this.#ui.select.value = pattern.event
    this.#choose(pattern)
  }

  #write(isStep = false) {
    clearTimeout(this.#typingTimer)
    const { parameters } = this.#draft
    const names = this.#pattern.fields.filter(isName).map(({ id }) => [id, parameters[id]])
    this.#app.address.write(view.id, { pattern: this.#pattern.event, ...Object.fromEntries(names) }, isStep)
  }

  get #draft() {
    return this.#drafts.get(this.#pattern)
  }

  // MARK: - The form

  #choose(pattern) {
    this.#pattern = pattern
    const ui = this.#ui
    this.#suggestParameters()
    setText(ui.hint, pattern.hint)
    setText(ui.bodyLabel, pattern.isText ? "Text" : "Body")
    this.#showBody()
    const fields = pattern.fields.filter(({ id }) => id !== "retain" || this.#app.access.mayRetain)
    this.#fields = fields.map((field) => this.#field(field))
    replace(ui.fields, this.#fields.map(({ element, field }) => (field.id === "operation" ? [element, this.#offers.element] : element)))
    this.#refresh()
  }

  #field(field) {
    const id = `send-${field.id}`
    const label = h("label", { for: id }, typeof field.label === "string" ? field.label : "")
    const error = h("p", { className: "error", id: `${id}-error`, hidden: true })
    const input = inputFor(field, id)
    // Programs that fill in forms may dispatch only `change`.
    for (const event of ["input", "change"]) input.addEventListener(event, () => this.#typed(field, input))
    const makeNew = field.makeNew && h("button", {
      className: "button", type: "button",
      onclick: () => {
        input.value = field.makeNew()
        this.#typed(field, input)
      },
    }, "New id")
    const element = field.kind === "checkbox"
      ? h("label", { className: "check" }, input, field.label)
      : h("div", { className: field.isWide ? "field wide" : "field" }, label,
          makeNew ? h("div", { className: "with-button" }, input, makeNew) : input,
          field.hint && h("p", { className: "hint", id: `${id}-hint` }, field.hint), error)
    return { field, input, label, error, makeNew, element }
  }

  /** Fills in the name of a known operation. */
  #chooseOperation(name) {
    const { field, input } = this.#fields.find(({ field }) => field.id === "operation")
    input.value = name
    this.#typed(field, input)
    this.#write(true)
    input.focus()
  }

  /** Applies a changed field to the body or the parameters. */
  #typed(field, input) {
    const draft = this.#draft
    if (field.isParameter) {
      draft.parameters[field.id] = valueOf(field, input)
      if (field.id === "operation") this.#suggestParameters()
      clearTimeout(this.#typingTimer)
      this.#typingTimer = setTimeout(() => this.#write(), typingTime)
    } else {
      const { body, error } = this.#read()
      if (error !== undefined || field.get(body) === input.value) return
      field.set(body, input.value)
      draft.text = prettyJSON(body)
      this.#showBody()
    }
    this.#refresh(field)
  }

  /**
   * Fills in the example of the operation, unless the user has changed the body.
   *
   * @returns {boolean} whether the body has changed
   */
  #suggestParameters() {
    const draft = this.#draft
    if (this.#pattern.event !== "call" || draft.text !== draft.suggested) return false
    const example = this.#operations.example(draft.parameters.operation)
    draft.suggested = prettyJSON(example === undefined ? this.#pattern.example() : { parameters: parseExactJSON(example) })
    if (draft.text === draft.suggested) return false
    draft.text = draft.suggested
    this.#showBody()
    return true
  }

  #showBody() {
    const { text } = this.#draft
    this.#ui.body.value = text
    this.#ui.body.rows = Math.min(maximumRows, Math.max(minimumRows, text.split("\n").length))
  }

  #typedBody() {
    if (this.#draft.text === this.#ui.body.value) return
    this.#draft.text = this.#ui.body.value
    this.#refresh()
  }

  /** Returns the body and its frame, or an error text. */
  #read() {
    const { text, parameters } = this.#draft
    const pattern = this.#pattern
    const tooLong = { error: `It is too long: a frame can have at most ${count(maximumFrame)} bytes.` }
    if (text.length > maximumFrame) return tooLong
    if (hasHalfCharacter(text)) return { error: "It has half of a character." }
    try {
      const body = pattern.isText ? text : parseExactJSON(text)
      if (!pattern.isText && (typeof body !== "object" || body === null || Array.isArray(body))) {
        return { error: "Line 1, column 1: the body must be an object, { … }." }
      }
      const frame = socketRequest(pattern, parameters, body)
      return frameSize(frame) > maximumFrame ? tooLong : { body, frame }
    } catch (error) {
      return { error: error instanceof NumberError ? `${error.message} The curl command sends it as it stands.` : error.message }
    }
  }

  /** Updates everything except the field in which the user types. */
  #refresh(typed) {
    const { parameters } = this.#draft
    const { body, error } = this.#read()
    showFault(this.#ui.body, this.#ui.bodyError, error)
    for (const { field, input, label, error: message, makeNew } of this.#fields) {
      if (field.isParameter) {
        const value = parameters[field.id]
        // An empty parameter is reported only when the event is sent.
        const isBlank = value === "" || Number.isNaN(value)
        showFault(input, message, isBlank ? undefined : fault(field, value))
        if (field === typed) continue
        if (field.kind === "checkbox") input.checked = value
        else if (!Number.isNaN(value)) input.value = value
        continue
      }
      // Fields edit the body, so they are disabled while it is invalid.
      input.disabled = error !== undefined
      if (makeNew) makeNew.disabled = input.disabled
      if (typeof field.label === "function") setText(label, field.label(body))
      if (field !== typed && body !== undefined) input.value = field.get(body)
    }
    this.#refreshCommand()
  }

  #refreshCommand() {
    const text = this.#command()
    setText(this.#ui.command, text.length > maximumShown ? `${text.slice(0, maximumShown)}\n… and more, which is copied, too` : text)
  }

  #command() {
    const { text, parameters } = this.#draft
    for (const { field } of this.#fields) {
      const value = parameters[field.id]
      const text = field.isParameter && value !== "" ? fault(field, value) : undefined
      if (text) return `# ${field.label}: ${text}`
    }
    return curlCommand(restRequest(this.#pattern, parameters, text), document.baseURI, token() !== undefined)
  }

  // MARK: - Sending

  async #send() {
    const { frame, error } = this.#read()
    const { body, bodyError } = this.#ui
    if (error !== undefined) return this.#blame(body, bodyError, error)
    for (const { field, input, error } of this.#fields) {
      const text = field.isParameter ? fault(field, valueOf(field, input)) : undefined
      if (text) return this.#blame(input, error, text)
    }
    const { event, isRequest } = this.#pattern
    const { what, options } = frame
    const { client } = this.#app
    if (isRequest) {
      const { operation } = what
      const title = subject(what, this.#app.names)
      this.#operations.note(operation, "called")
      const take = ({ sourceId }) => this.#operations.note(operation, "answered", this.#app.names.of(sourceId))
      return this.#answers.follow(event, title, client.request(what, options), options.timeout, take)
    }
    try {
      this.#answers.deliver(event, await client.publish(what))
    } catch (error) {
      this.#answers.refuse(event, error)
    }
  }

  #blame(input, element, text) {
    showFault(input, element, text)
    input.focus()
    this.#app.announce(text)
  }

  // MARK: - Elements

  #build(root) {
    const select = h("select", { id: "send-pattern", onchange: () => {
      this.#choose(this.#patterns[select.selectedIndex])
      this.#write(true)
    } },
      this.#patterns.map(({ event }) => h("option", { value: event }, event)))
    const hint = h("p", { className: "hint", id: "send-pattern-hint" })
    select.setAttribute("aria-describedby", hint.id)
    const fields = h("div", { className: "send-fields" })
    const bodyLabel = h("label", { for: "send-body" }, "Body")
    const bodyError = h("p", { className: "error", id: "send-body-error", hidden: true })
    const body = h("textarea", {
      id: "send-body", rows: 9, spellcheck: false, autocomplete: "off", "aria-describedby": bodyError.id,
      oninput: () => this.#typedBody(),
      onchange: () => this.#typedBody(),
      onkeydown: (event) => {
        if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return
        event.preventDefault()
        this.#send()
      },
    })
    const form = h("form", { className: "card form send-form", noValidate: true, "aria-label": "Event", onsubmit: (event) => { event.preventDefault(); this.#send() } },
      h("div", { className: "field" }, h("label", { for: select.id }, "Pattern"), select, hint),
      fields,
      h("div", { className: "field" }, bodyLabel, body, bodyError),
      h("div", { className: "toolbar" },
        h("button", { className: "button primary", type: "submit" }, "Send"),
        h("button", { className: "button quiet", type: "button", onclick: () => this.#reset() }, "Start over")))
    const answers = h("section", { className: "card send-answers" })
    this.#answers = new Answers(answers, this.#app)
    const command = h("pre", { className: "json", tabIndex: 0, "aria-label": "Equal curl command" })
    const curl = h("section", { className: "card send-curl" },
      h("div", { className: "card-header" }, h("h2", {}, "The same with curl"), copyButton(() => this.#command())),
      command)
    const calls = h("section", { className: "card send-calls" })
    this.#responder = new Responder(calls, this.#app, this.#operations)
    root.append(h("div", { className: "view-body send" },
      this.#patterns.length > 0 && [form, answers, curl], mayAnswer(this.#app.access) && calls, this.#offers.options))
    return { select, hint, fields, bodyLabel, body, bodyError, command }
  }

  #reset() {
    this.#drafts.set(this.#pattern, draft(this.#pattern))
    this.#choose(this.#pattern)
    this.#write(true)
  }
}

/** Whether a field is a name that an address contains: a channel, an operation or a topic. */
const isName = ({ isParameter, kind }) => isParameter && kind === undefined

/** Returns the initial draft of a pattern. */
function draft(pattern) {
  const body = pattern.example()
  const text = pattern.isText ? body : prettyJSON(body)
  // The body as the page has filled it in.
  return { text, suggested: text, parameters: { ...pattern.parameters } }
}

function inputFor(field, id) {
  const common = { id, "aria-describedby": field.hint ? `${id}-hint ${id}-error` : `${id}-error` }
  switch (field.kind) {
    case "select":
      return h("select", common, field.options.map((value) => h("option", { value }, field.titles?.[value] ?? value)))
    case "checkbox": return h("input", { id, type: "checkbox" })
    case "number": return h("input", { ...common, type: "number", min: String(field.minimum), step: "1", inputMode: "numeric" })
    default:
      return h("input", {
        ...common, type: "text", spellcheck: false, autocomplete: "off", placeholder: field.placeholder,
        list: field.id === "operation" && operationOptions,
      })
  }
}

const valueOf = (field, input) => (field.kind === "checkbox" ? input.checked : field.kind === "number" ? input.valueAsNumber : input.value)
