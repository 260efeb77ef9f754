// A card in which the user answers calls of an operation.

import { ago, clock, count, frames, h, line, plural, replace, setHidden, setText } from "./dom.js"
import { missingGrant } from "./denial.js"
import { showFault } from "./fault.js"
import { prettyJSON } from "./json-print.js"
import { parseExactJSON } from "./json-text.js"
import { operationOptions } from "./operation-offers.js"
import { frameSize, maximumFrame } from "./patterns.js"

/** Maximum number of queued calls. Further calls are dropped … */
const maximumCalls = 100
/** … unless the oldest call that the user has not begun to answer is older than this, in milliseconds: then that one is. */
const keptTime = 10_000
/** Maximum number of answered calls that are listed, latest first. */
const maximumAnswered = 20
/** Maximum number of characters of a call's parameters that are kept; the live feed shows more. */
const maximumParameters = 20_000
const drawsPerSecond = 4
/** Maximum rate at which new calls are announced to screen readers. */
const announcementsPerSecond = 0.5
/** Milliseconds between two updates of the ages. */
const agingInterval = 1000

/** The card with the calls of an operation. */
export class Responder {
  #app
  #operations
  #ui
  #subscription
  /** Whether the gateway has begun the subscription. */
  #isListening = false
  #operation = ""
  /** The queued calls, oldest first. */
  #calls = []
  #answered = []
  #passed = 0
  /** Number of calls that have not been announced yet. */
  #unannounced = 0
  #note
  #isShown = false
  #aging
  #drawing = frames(() => this.#draw(), drawsPerSecond)
  #announcing = frames(() => this.#announce(), announcementsPerSecond)

  /** @param {HTMLElement} card @param operations the `KnownOperations` */
  constructor(card, app, operations) {
    this.#app = app
    this.#operations = operations
    this.#ui = this.#build(card)
    app.names.addEventListener("change", () => this.#request())
    this.#draw()
  }

  show() {
    this.#isShown = true
    this.#request()
    this.#aging = setInterval(() => this.#age(), agingInterval)
  }

  /** Stops drawing. Calls still arrive; a toast reports the first queued one. */
  hide() {
    this.#isShown = false
    this.#drawing.stop()
    this.#announcing.stop()
    this.#unannounced = 0
    clearInterval(this.#aging)
  }

  // MARK: - Calls

  async #begin() {
    const operation = this.#ui.operation.value.trim()
    if (operation === "") return this.#refuse("The name of the operation is needed.")
    replace(this.#ui.missing)
    const subscription = this.#app.client.subscribe({ event: "call", operation })
    this.#subscription = subscription
    this.#operation = operation
    this.#note = undefined
    this.#passed = 0
    this.#isListening = false
    this.#draw()
    try {
      await subscription.ready
      this.#isListening = true
      this.#request()
      for await (const frame of subscription) this.#came(frame)
      if (subscription === this.#subscription) this.#end()
    } catch (error) {
      if (subscription !== this.#subscription) return
      this.#end()
      this.#refuse(error.message, missingGrant(error.missing))
    }
  }

  #end() {
    this.#subscription?.close()
    this.#subscription = undefined
    this.#request()
  }

  #refuse(text, missing) {
    showFault(this.#ui.operation, this.#ui.error, text)
    replace(this.#ui.missing, missing)
    this.#ui.operation.focus()
    this.#app.announce(text)
  }

  #came(frame) {
    if (frame.op === "gap") {
      this.#note = frame.dropped === null ? "The connection was interrupted: calls may be missing." : `${plural(frame.dropped, "call")} passed too fast.`
      return this.#request()
    }
    if (this.#calls.length >= maximumCalls) {
      this.#passed += 1
      const isOver = this.#calls.find((call) => !call.isTouched())
      if (!isOver || isOver.milliseconds < keptTime) return this.#request()
      this.#remove(isOver)
    }
    this.#calls.push(new Call(frame, this.#app, (call, data) => this.#answer(call, data), (call) => this.#dismiss(call)))
    if (this.#isShown) {
      this.#unannounced += 1
      this.#announcing.request()
    } else if (this.#calls.length === 1) {
      // The toast is also announced to screen readers.
      this.#app.toast(`A call of ${line(this.#operation, 60)} needs an answer`)
    }
    this.#request()
  }

  #announce() {
    this.#app.announce(`${plural(this.#unannounced, "new call")} of ${line(this.#operation, 60)}`)
    this.#unannounced = 0
  }

  /** Sends the user's answer to a call. */
  async #answer(call, data) {
    await this.#app.client.respond(call.frame, data)
    this.#remove(call)
    this.#answered.unshift({ at: Date.now(), sender: call.frame.sourceId, operation: call.frame.operation, data })
    this.#answered.length = Math.min(this.#answered.length, maximumAnswered)
    this.#operations.note(call.frame.operation, "answered", "this page")
    this.#app.announce("Returned")
    this.#goOn()
  }

  #dismiss(call) {
    this.#remove(call)
    this.#goOn()
  }

  #remove(call) {
    this.#calls = this.#calls.filter((other) => other !== call)
    call.element?.remove()
  }

  /** Moves the focus to the next call. */
  #goOn() {
    if (!this.#isShown) return
    this.#draw();
    (this.#calls[0]?.textarea ?? this.#ui.heading).focus()
  }

  // MARK: - Drawing

  #request() {
    if (this.#isShown) this.#drawing.request()
  }

  #draw() {
    const ui = this.#ui
    const isAnswering = this.#subscription !== undefined
    ui.operation.readOnly = isAnswering
    if (isAnswering) showFault(ui.operation, ui.error)
    setText(ui.button, isAnswering ? "Stop" : "Answer calls")
    ui.button.classList.toggle("primary", !isAnswering)
    for (const call of this.#calls) if (!call.element) ui.calls.append(call.build())
    setHidden(ui.calls, this.#calls.length === 0)
    setHidden(ui.empty, this.#calls.length > 0)
    if (this.#calls.length === 0) this.#showEmpty(isAnswering)
    const note = [this.#note, this.#passed > 0 && `${plural(this.#passed, "call")} dropped: at most ${count(maximumCalls)} are queued.`].filter(Boolean).join(" ")
    setHidden(ui.note, note === "")
    setText(ui.note, note)
    setHidden(ui.answered, this.#answered.length === 0)
    replace(ui.answeredList, this.#answered.map((one) => this.#answeredRow(one)))
    this.#age()
  }

  #showEmpty(isAnswering) {
    setText(this.#ui.emptyTitle, !isAnswering ? "Answer calls yourself" : this.#isListening ? "Waiting for calls" : "Subscribing …")
    setText(this.#ui.emptyText, isAnswering
      ? `Calls of ${line(this.#operation, 60)} appear here. Send one from this page, or from an agent.`
      : "Enter an operation: its calls appear here, and you write the answer to each.")
  }

  #answeredRow({ at, sender, operation, data }) {
    const text = data.error ? `${data.error.code} ${data.error.message}` : line(data.result)
    return h("li", { className: "answered-line" },
      h("span", { className: "num muted" }, clock(at)),
      h("span", { className: "clip", title: this.#app.names.uncut(sender) }, this.#app.names.of(sender)),
      h("span", { className: data.error ? "clip mono attention" : "clip mono" }, line(`${operation} → ${text}`)))
  }

  #age() {
    for (const call of this.#calls) call.age()
  }

  #build(card) {
    const heading = h("h2", { tabIndex: -1 }, "Answer calls by hand")
    const error = h("p", { className: "error", id: "responder-error", hidden: true })
    const operation = h("input", { id: "responder-operation", type: "text", spellcheck: false, autocomplete: "off", placeholder: "com.example.add", list: operationOptions, "aria-describedby": error.id, oninput: () => showFault(operation, error) })
    const button = h("button", { className: "button primary", type: "submit" }, "Answer calls")
    const form = h("form", { className: "field", noValidate: true, onsubmit: (event) => { event.preventDefault(); this.#subscription ? this.#end() : this.#begin() } },
      h("label", { for: operation.id }, "Operation"),
      h("div", { className: "with-button" }, operation, button), error)
    const missing = h("div")
    const note = h("p", { className: "notice", "data-kind": "warn", hidden: true })
    const calls = h("ol", { className: "rows calls", "aria-label": "Calls" })
    const emptyTitle = h("h3")
    const emptyText = h("p")
    const empty = h("div", { className: "empty" }, emptyTitle, emptyText)
    const answeredList = h("ol", { className: "rows", "aria-label": "Answered" })
    const answered = h("div", {}, h("h3", {}, "Answered"), answeredList)
    card.append(heading, form, missing, note, calls, empty, answered)
    return { heading, operation, button, error, missing, note, calls, emptyTitle, emptyText, empty, answered, answeredList }
  }
}

/** The number of the last call. Element ids use numbers, because ids from the network may be any text. */
let lastNumber = 0

/** A queued call. */
class Call {
  element
  textarea
  #app
  #at = Date.now()
  #parameters
  #answer
  #dismiss
  #isReturning = false
  #ui

  constructor({ data, ...frame }, app, answer, dismiss) {
    this.frame = frame
    this.#parameters = shownParameters(data)
    this.#app = app
    this.#answer = answer
    this.#dismiss = dismiss
  }

  /** Returns whether the user has begun to answer it. */
  isTouched() {
    if (!this.#ui) return false
    const { isError, code } = this.#ui
    return this.#isReturning || this.textarea.value !== "" || isError.checked || code.value !== code.defaultValue || this.element.contains(document.activeElement)
  }

  /** Its age. */
  get milliseconds() {
    return Date.now() - this.#at
  }

  /** Updates the shown age and the caller's name. */
  age() {
    if (!this.#ui) return
    setText(this.#ui.sender, this.#app.names.full(this.frame.sourceId))
    setText(this.#ui.age, ago(this.#at))
  }

  build() {
    const id = `call-${lastNumber += 1}`
    const sender = h("strong", { className: "clip" })
    const age = h("span", { className: "num muted" })
    const error = h("p", { className: "error", id: `${id}-error`, hidden: true })
    const label = h("label", { for: id }, "Result")
    const textarea = h("textarea", { id, rows: 2, spellcheck: false, autocomplete: "off", placeholder: "JSON; empty is null", "aria-describedby": error.id, oninput: () => this.#showFault() })
    const code = h("input", { id: `${id}-code`, type: "number", step: "1", defaultValue: "1", "aria-describedby": error.id, oninput: () => this.#showFault() })
    const codeField = h("div", { className: "field call-code", hidden: true }, h("label", { for: code.id }, "Code"), code)
    const isError = h("input", {
      type: "checkbox",
      onchange: () => {
        setText(label, isError.checked ? "Message" : "Result")
        textarea.placeholder = isError.checked ? "What went wrong" : "JSON; empty is null"
        setHidden(codeField, !isError.checked)
        this.#showFault()
      },
    })
    this.textarea = textarea
    this.#ui = { sender, age, error, isError, code }
    this.element = h("li", {}, h("form", { className: "call", noValidate: true, onsubmit: (event) => { event.preventDefault(); this.#submit() } },
      h("div", { className: "call-line" }, sender, age),
      this.#parameters === undefined ? h("p", { className: "muted" }, "Without parameters") : h("pre", { className: "json", tabIndex: 0, "aria-label": "Parameters" }, this.#parameters),
      h("div", { className: "call-result" }, codeField, h("div", { className: "field" }, label, textarea, error)),
      h("div", { className: "toolbar" },
        h("button", { className: "button primary", type: "submit" }, "Return"),
        h("label", { className: "check" }, isError, "as an error"),
        h("button", { className: "button quiet", type: "button", onclick: () => this.#dismiss(this) }, "Dismiss"))))
    this.age()
    return this.element
  }

  /** Returns the data of the answer, or an error text and its input. */
  #read() {
    const text = this.textarea.value
    const { isError, code } = this.#ui
    const number = code.valueAsNumber
    if (isError.checked && !Number.isSafeInteger(number)) return { input: code, fault: "The code must be a whole number." }
    try {
      const data = isError.checked ? { error: { code: number, message: text } } : { result: text.trim() === "" ? null : parseExactJSON(text) }
      if (frameSize({ what: { ...this.frame, data } }) <= maximumFrame) return { data }
      return { input: this.textarea, fault: `It is too long: the gateway takes ${count(maximumFrame)} bytes, with all that is around it.` }
    } catch (problem) {
      return { input: this.textarea, fault: problem.message }
    }
  }

  async #submit() {
    if (this.#isReturning) return
    const { data, input, fault } = this.#read()
    this.#showFault(input, fault)
    if (fault !== undefined) return
    this.#isReturning = true
    try {
      await this.#answer(this, data)
    } catch (problem) {
      this.#showFault(this.textarea, problem.message)
    } finally {
      this.#isReturning = false
    }
  }

  /** Shows the error of an input; without an input, removes all errors. */
  #showFault(input, text) {
    const { error, code } = this.#ui
    for (const each of [this.textarea, code]) showFault(each, error)
    if (!input) return
    showFault(input, error, text)
    input.focus()
    this.#app.announce(text)
  }
}

/** Returns the parameters of a call as text, or an error text if that fails; undefined if there are none. */
function shownParameters(data) {
  try {
    return data.parameters === undefined ? undefined : prettyJSON(data.parameters, { maximum: maximumParameters })
  } catch (error) {
    return `They can't be shown: ${error.message}`
  }
}
