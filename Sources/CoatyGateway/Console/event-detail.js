// The detail of an event.

import { codeOfEvent } from "./code-of.js"
import { copyCodeButtons } from "./copy-code.js"
import { clock, copyButton, eventTag, h, line, plural, replace } from "./dom.js"
import { dimensions, valueOf } from "./feed-filter.js"
import { maximumShown, prettyJSON } from "./json-print.js"
import { isFailure, isRequest, senderId, subject } from "./summary.js"
import { token } from "./token.js"

/** Maximum number of related events that are listed. */
const maximumRelated = 20
/** Maximum number of characters of a topic or an id. */
const maximumText = 1000

/** The detail of an event: its sender, topic and data, related events, and code for it. */
export class EventDetail {
  #aside
  #app
  #on
  #item
  #isFiltered = false
  #related = h("div")
  /** The related events. */
  #listed = []

  /**
   * @param {HTMLElement} aside the element that contains it
   * @param {any} app
   * @param {{ open: (item: any) => void, close: () => void, pick: (frame: any, dimension: string) => void }} on
   */
  constructor(aside, app, on) {
    this.#aside = aside
    this.#app = app
    this.#on = on
  }

  /**
   * Shows an event.
   *
   * @param {any[]} related the responses to a request, or the request of a response
   * @param {boolean} isFiltered whether the gateway filters the events, and may leave out related ones
   */
  show(item, related, isFiltered) {
    const { names } = this.#app
    const { frame, at } = item
    this.#item = item
    this.#isFiltered = isFiltered
    const id = senderId(frame)
    const heading = h("h2", { tabIndex: -1 }, subject(frame, names) || frame.event)
    const facts = [
      ["Event", eventTag(frame.event, isFailure(frame))],
      ["Received", h("span", { className: "num" }, clock(at))],
      id && [frame.event === "iovalue" ? "IO source" : "Sender", named(id, names), this.#pick("sender")],
      valueOf(frame, "type") && ["Type", valueOf(frame, "type"), this.#pick("type")],
      frame.topic && ["Topic", mono(frame.topic), this.#pick("topic")],
      frame.channelId && ["Channel", line(frame.channelId), this.#pick("channel")],
      frame.operation && ["Operation", line(frame.operation), this.#pick("operation")],
      frame.contextName && ["IO context", line(frame.contextName), this.#pick("context")],
      frame.correlationId && ["Correlation", mono(frame.correlationId)],
    ].filter(Boolean)
    replace(
      this.#aside,
      h("div", { className: "detail-header" }, heading, h("button", { className: "button quiet", type: "button", onclick: this.#on.close }, "Close")),
      h("dl", { className: "facts" }, facts.map(([term, ...what]) => [h("dt", {}, term), h("dd", {}, what)])),
      this.#related,
      h("div", {},
        h("div", { className: "detail-header" }, h("h3", {}, "Data"), copyButton(() => prettyJSON(frame.data), "Copy data")),
        h("pre", { className: "json", tabIndex: 0, "aria-label": "Data" }, prettyJSON(frame.data, { maximum: maximumShown }))),
      h("div", { className: "toolbar copy-code" }, copyCodeButtons(() => codeOfEvent(frame, document.baseURI, token() !== undefined))),
    )
    this.#listed = []
    this.#list(related)
    this.#aside.scrollTop = 0
    heading.focus({ preventScroll: true })
  }

  /** Updates the related events. */
  update(related) {
    if (related.length !== this.#listed.length) this.#list(related)
  }

  /** Returns a button that shows only events with the same value in a dimension. */
  #pick(dimension) {
    const { frame } = this.#item
    if (valueOf(frame, dimension) === undefined) return undefined
    const label = `Show only events of this ${dimensions[dimension].noun}`
    return h("button", { className: "button quiet pick-button", type: "button", "aria-label": label, onclick: () => this.#on.pick(frame, dimension) }, "Only this")
  }

  #list(related) {
    const item = this.#item
    this.#listed = related
    if (!item.frame.correlationId) return replace(this.#related)
    const { names } = this.#app
    const asks = isRequest(item.frame.event)
    const shown = related.slice(0, maximumRelated)
    const rest = related.length > shown.length && h("p", { className: "muted" }, `and ${related.length - shown.length} more`)
    const filtered = this.#isFiltered ? " The filter may leave them out." : ""
    const none = asks ? `None so far.${filtered}` : `Its request is not among the events that are kept.${filtered}`
    replace(this.#related,
      h("h3", {}, asks ? plural(related.length, "response") : "Answers"),
      shown.length === 0
        ? h("p", { className: "muted" }, none)
        : h("ul", { className: "rows related" }, shown.map((other) =>
            h("li", {}, h("button", { className: "row", type: "button", onclick: () => this.#on.open(other) },
              eventTag(other.frame.event, isFailure(other.frame)),
              h("span", { className: "clip" }, subject(other.frame, names)),
              h("span", { className: "muted num" }, `${other.at - item.at >= 0 ? "+" : "−"}${Math.abs(other.at - item.at)} ms`))))),
      rest)
  }
}

function named(id, names) {
  return h("span", {}, names.has(id) ? names.full(id) : h("span", { className: "muted" }, "name unknown"), h("br"), mono(id, "muted"))
}

function mono(text, extra = "") {
  return h("span", { className: `mono ${extra}`.trim() }, line(text, maximumText))
}
