// One event, opened.

import { clock, copyButton, h, line, plural, replace } from "./dom.js"
import { maximumShown, prettyJSON } from "./json-print.js"
import { isRequest, senderId, subject } from "./summary.js"

/** How many events that belong to it are listed. */
const maximumRelated = 20
/** The most characters of a topic or an id. */
const maximumText = 1000

/**
 * Shows an event: what it carries, who sent it, on which topic, and what belongs to it.
 *
 * @param {HTMLElement} aside what it is shown in
 * @param {{ item: any, names: any, related: any[], open: (item: any) => void, close: () => void }} what
 */
export function showEvent(aside, { item, names, related, open, close }) {
  const { frame, at } = item
  const id = senderId(frame)
  const heading = h("h2", { tabIndex: -1 }, subject(frame, names) || frame.event)
  const facts = [
    ["Event", h("span", { className: "tag", "data-pattern": frame.event }, frame.event)],
    ["Came", h("span", { className: "num" }, clock(at))],
    frame.event === "iovalue" ? ["IO source", named(id, names)] : id && ["Sender", named(id, names)],
    frame.topic && ["Topic", mono(frame.topic)],
    frame.channelId && ["Channel", line(frame.channelId)],
    frame.operation && ["Operation", line(frame.operation)],
    frame.contextName && ["IO context", line(frame.contextName)],
    frame.correlationId && ["Correlation", mono(frame.correlationId)],
  ].filter(Boolean)
  replace(
    aside,
    h("div", { className: "detail-header" }, heading, h("button", { className: "button quiet", type: "button", onclick: close }, "Close")),
    h("dl", { className: "facts" }, facts.map(([term, what]) => [h("dt", {}, term), h("dd", {}, what)])),
    relatedList(item, names, related, open),
    h("div", {},
      h("div", { className: "detail-header" }, h("h3", {}, "Data"), copyButton(() => prettyJSON(frame.data), "Copy data")),
      h("pre", { className: "json", tabIndex: 0, "aria-label": "Data" }, prettyJSON(frame.data, { maximum: maximumShown }))),
  )
  aside.scrollTop = 0
  heading.focus({ preventScroll: true })
}

function relatedList(item, names, related, open) {
  if (!item.frame.correlationId) return undefined
  const asks = isRequest(item.frame.event)
  const shown = related.slice(0, maximumRelated)
  const title = asks ? plural(related.length, "response") : "Answers"
  const rest = related.length > shown.length ? h("p", { className: "muted" }, `and ${related.length - shown.length} more`) : undefined
  const none = asks ? "None so far, among the events that are shown." : "Its request is not among the events that are kept."
  return h("div", {},
    h("h3", {}, title),
    shown.length === 0
      ? h("p", { className: "muted" }, none)
      : h("ul", { className: "rows related" }, shown.map((other) =>
          h("li", {}, h("button", { className: "row", type: "button", onclick: () => open(other) },
            h("span", { className: "tag", "data-pattern": other.frame.event }, other.frame.event),
            h("span", { className: "clip" }, subject(other.frame, names)),
            h("span", { className: "muted num" }, `${other.at - item.at >= 0 ? "+" : "−"}${Math.abs(other.at - item.at)} ms`))))),
    rest)
}

function named(id, names) {
  return h("span", {}, names.has(id) ? names.of(id) : h("span", { className: "muted" }, "name unknown"), h("br"), mono(id, "muted"))
}

function mono(text, extra = "") {
  return h("span", { className: `mono ${extra}`.trim() }, line(text, maximumText))
}
