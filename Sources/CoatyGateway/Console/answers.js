// The answers to requests, and the results of publications.

import { isForbidden } from "./access.js"
import { AnswerHistory } from "./answer-history.js"
import { missingGrant } from "./denial.js"
import { clock, copyButton, count, eventTag, frames, h, plural, replace, setHidden, setText } from "./dom.js"
import { maximumShown, prettyJSON } from "./json-print.js"
import { isFailure, subject } from "./summary.js"

/** Maximum number of answers that are shown, and their maximum bytes. Further answers are only counted. */
export const maximumAnswers = 200
export const maximumBytes = 16 << 20
const drawsPerSecond = 4
/** Maximum rate at which the number of answers is announced to screen readers. */
const announcementsPerSecond = 0.5

const reasons = {
  __proto__: null,
  limit: () => "limit",
  timeout: (timeout) => `timeout after ${count(timeout)} ms`,
  cancelled: () => "cancelled",
  offline: () => "the gateway lost its broker connection; answers may be missing",
  disconnected: () => "the connection was lost; answers may be missing",
  overflow: () => "more answers than can be kept",
  closed: () => "the connection was closed",
}

/** The client's problem type for a lost connection, after which it is unknown whether the event was sent. */
const disconnected = "urn:coaty-client:problem:disconnected"

/** The answers to a request: the first ones are kept, the others only counted. */
export class Kept {
  /** Frames queued for drawing. */
  #queued = []
  #bytes = 0
  kept = 0
  total = 0

  /** Counts a frame, and keeps it unless it or an earlier frame exceeds a maximum. */
  add(frame) {
    const isFull = this.more > 0 || this.kept === maximumAnswers || this.#bytes + frame.size > maximumBytes
    this.total += 1
    if (isFull) return
    this.#queued.push(frame)
    this.#bytes += frame.size
    this.kept += 1
  }

  /** Number of answers that are not kept. */
  get more() {
    return this.total - this.kept
  }

  /** Removes and returns the next frame to draw; undefined if there is none. */
  take() {
    return this.#queued.shift()
  }
}

/** The card with the answers. */
export class Answers {
  #app
  #ui
  #responses
  #answers = new Kept()
  /** A text about the end of the request; undefined while it is pending. */
  #outcome
  /** The request that was sent last, `{ event, title, at }`; undefined if the last event was no request. */
  #request
  #history = new AnswerHistory()
  #isShown = false
  #drawing = frames(() => this.#draw(), drawsPerSecond)
  #announcing = frames(() => this.#app.announce(plural(this.#answers.total, "answer")), announcementsPerSecond)

  /** @param {HTMLElement} card */
  constructor(card, app) {
    this.#app = app
    this.#ui = build(card, this.#history, () => this.#responses?.cancel())
    app.names.addEventListener("change", () => { if (this.#isShown) this.#name() })
    this.#showEmpty("Nothing has been sent", "Choose a pattern, and press Send. Answers are shown here as they arrive.")
  }

  show() {
    this.#isShown = true
    this.#name()
    this.#requestDrawing()
  }

  /** Stops drawing; answers still arrive. */
  hide() {
    this.#isShown = false
    this.#drawing.stop()
  }

  /**
   * Shows the answers to a request until it ends or something else is sent, which moves them into the history.
   *
   * @param {string} title the subject of the request
   * @param {(frame: any) => void} take called with each answer
   */
  async follow(event, title, responses, timeout, take) {
    this.#begin(event, responses)
    this.#request = { event, title, at: Date.now() }
    this.#showEmpty("Waiting for answers", `Answers are shown as they arrive, for at most ${count(timeout)} ms.`)
    setHidden(this.#ui.cancel, false)
    try {
      for await (const frame of responses) {
        if (responses !== this.#responses) return
        take(frame)
        this.#answers.add(frame)
        this.#requestDrawing()
        this.#announcing.request()
      }
      if (responses !== this.#responses) return
      const withheld = responses.filtered ? "; answers that you may not read are withheld" : ""
      this.#finish((reasons[responses.reason]?.(timeout) ?? String(responses.reason)) + withheld, timeout)
    } catch (error) {
      if (responses !== this.#responses) return
      if (this.#answers.total > 0) this.#finish(error.message, timeout)
      else this.refuse(event, error)
    }
  }

  /** Shows that a one-way event was published, or is queued. */
  deliver(event, { deferred }) {
    this.#begin(event)
    const text = deferred ? "The gateway is not connected to its broker. The event is queued until it is." : `Published at ${clock(Date.now())}.`
    this.#notify(deferred ? "warn" : "ok", text)
    this.#showEmpty("No answers", "Events of this kind have no answers. The live feed shows the event as other agents see it.", this.#feedLink)
    this.#app.announce(text)
  }

  /** Shows that an event was refused, or that it is unknown whether it was sent. */
  refuse(event, error) {
    this.#begin(event)
    const namesPointer = !error.pointer || error.message.includes(error.pointer)
    this.#notify("bad", namesPointer ? error.message : `${error.message} (at ${error.pointer})`, missingGrant(error.missing))
    if (error.type === disconnected) this.#showEmpty("The event may have been sent", "The connection was lost before the gateway replied. Check whether the event took effect before you send it again.", this.#feedLink)
    else if (isForbidden(error)) this.#showEmpty("Nothing was sent", "Your roles do not allow it.", h("a", { href: "#access" }, "What may I do?"))
    else this.#showEmpty("Nothing was sent", "Correct the error, and send it again.")
    this.#app.announce(error.message)
  }

  /** A link to the live feed, if the user may see it. */
  get #feedLink() {
    return this.#app.access.may("observe", "traffic") && h("a", { href: "#feed" }, "Live feed")
  }

  #begin(event, responses) {
    this.#keepAnswers()
    this.#responses?.cancel()
    this.#responses = responses
    this.#answers = new Kept()
    this.#outcome = undefined
    this.#drawing.stop()
    this.#announcing.stop()
    const { tag, list, status, cancel, notice, more } = this.#ui
    tag.dataset.pattern = event
    setText(tag, event)
    setHidden(tag, false)
    replace(list)
    setText(status, "")
    for (const element of [cancel, notice, more]) setHidden(element, true)
  }

  /** Moves the answers to the former request into the history. */
  #keepAnswers() {
    if (this.#request === undefined) return
    this.#draw()
    this.#history.add({ ...this.#request, outcome: this.#outcome ?? `${plural(this.#answers.total, "answer")} · cancelled` }, [...this.#ui.list.children])
    this.#request = undefined
  }

  #finish(reason, timeout) {
    this.#responses = undefined
    const { total } = this.#answers
    this.#outcome = `${plural(total, "answer")} · ${reason}`
    this.#announcing.stop()
    setHidden(this.#ui.cancel, true)
    if (total === 0) this.#showEmpty("No answers", reason.startsWith("timeout") ? `None arrived within ${count(timeout)} ms. Agents without an answer do not respond. “Agents & objects” lists the agents in the network.` : `The request ended: ${reason}.`)
    this.#app.announce(this.#outcome)
    this.#requestDrawing()
  }

  #requestDrawing() {
    if (this.#isShown) this.#drawing.request()
  }

  #draw() {
    const { list, empty, status, more } = this.#ui
    const answers = this.#answers
    const isRequest = this.#responses !== undefined || this.#outcome !== undefined
    if (!isRequest) return
    for (let frame = answers.take(); frame !== undefined; frame = answers.take()) list.append(this.#item(frame))
    setHidden(empty, answers.total > 0)
    setHidden(list, answers.total === 0)
    setText(status, this.#outcome ?? `${plural(answers.total, "answer")} so far`)
    setHidden(more, answers.more === 0)
    setText(more, `${plural(answers.more, "more answer")} not shown.`)
  }

  /** Returns the row of an answer. If it can't be built, the row shows the error, and the other answers are not affected. */
  #item(frame) {
    try {
      return this.#row(frame, this.#ui.list.children.length === 0)
    } catch (error) {
      return h("li", { className: "note" }, `An answer can't be shown: ${error.message}`)
    }
  }

  #row(frame, isFirst) {
    const { names } = this.#app
    const sender = h("span", { "data-sender": frame.sourceId, title: names.uncut(frame.sourceId) }, names.of(frame.sourceId))
    const summary = h("summary", { className: "answer-line" },
      eventTag(frame.event, isFailure(frame)),
      h("span", { className: "clip answer-subject" }, subject(frame, this.#app.names) || "–"),
      h("span", { className: "clip answer-sender" }, "from ", sender),
      h("span", { className: "num muted" }, `${count(frame.ms)} ms`))
    const details = h("details", { open: isFirst }, summary)
    const fill = () => {
      if (!details.open || details.children.length > 1) return
      details.append(
        h("pre", { className: "json", tabIndex: 0, "aria-label": "Answer" }, prettyJSON(frame.data, { maximum: maximumShown })),
        copyButton(() => prettyJSON(frame.data), "Copy data"))
    }
    details.addEventListener("toggle", fill)
    fill()
    return h("li", {}, details)
  }

  /** Updates the names of the senders. */
  #name() {
    const { names } = this.#app
    for (const element of this.#ui.scroll.querySelectorAll("[data-sender]")) {
      const { sender } = element.dataset
      setText(element, names.of(sender))
      element.title = names.uncut(sender) ?? ""
    }
  }

  #notify(kind, text, ...more) {
    this.#ui.notice.dataset.kind = kind
    replace(this.#ui.notice, h("p", {}, text), more)
    setHidden(this.#ui.notice, false)
  }

  #showEmpty(title, text, ...more) {
    const { empty, list } = this.#ui
    replace(empty, h("h3", {}, title), h("p", {}, text), ...more)
    setHidden(empty, false)
    setHidden(list, true)
  }
}

function build(card, history, onCancel) {
  const tag = h("span", { className: "tag", hidden: true })
  const status = h("p", { className: "muted num" })
  const cancel = h("button", { className: "button", type: "button", hidden: true, onclick: onCancel }, "Cancel")
  const notice = h("div", { className: "notice", hidden: true })
  const list = h("ol", { className: "rows", "aria-label": "Answers", hidden: true })
  const empty = h("div", { className: "empty" })
  const more = h("p", { className: "pane-footer", hidden: true })
  const scroll = h("div", { className: "answers-scroll" }, notice, list, empty, more, history.element)
  card.append(
    h("div", { className: "card-header" }, h("h2", {}, "Answers"), tag, status, cancel),
    scroll)
  return { tag, status, cancel, notice, list, empty, more, scroll }
}
