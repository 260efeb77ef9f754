// The texts of the feed's rows.

import { clock, count, ends, lineEnd, plural } from "./dom.js"
import { nameDimension, valueOf } from "./feed-filter.js"
import { frameHasValue } from "./find-value.js"
import { changesText, differences, valuesText } from "./object-changes.js"
import { isFailure, sender, senderId, subject, subjectParts } from "./summary.js"

/** Returns the row of an event, a gap or a mark for a `RowList`. */
export function rowOf(entry, names) {
  if (entry.came !== undefined) return { note: `Paused here. ${sinceText(entry)}` }
  if (entry.frame.op === "gap") return { note: gapText(entry.frame) }
  const { time, event, name, subject, type, sender } = summaryOf(entry, names)
  return { cells: [time, event, ends(name), subject, ends(type), sender], uncut: { 5: names.uncut(senderId(entry.frame)) }, pattern: event, kind: isFailure(entry.frame) ? "bad" : undefined }
}

/**
 * Returns whether an event contains a text, in its row or in its data.
 *
 * @param {string} text in lower case
 */
export function isFound(item, names, text) {
  if (summaryOf(item, names).text.includes(text)) return true
  // Data does not change: it is searched once for each text.
  if (item.found?.text !== text) item.found = { text, isFound: frameHasValue(item.frame, text) }
  return item.found.isFound
}

/** Returns the texts of an event. They are cached in the item, and updated when the sender's name changes. */
function summaryOf(item, names) {
  const { frame } = item
  item.summary ??= { time: clock(item.at), event: frame.event, name: nameOf(frame), type: valueOf(frame, "type") ?? "" }
  const { summary } = item
  const who = sender(frame, names)
  if (summary.sender !== who) {
    summary.sender = who
    const details = detailsOf(item)
    summary.subject = [...subjectParts(frame, names), details && ` · ${details}`]
    summary.text = [summary.event, summary.name, subject(frame, names), summary.type, who].join(" ").toLowerCase()
  }
  return summary
}

/** Events with an object whose members are shown. */
const withObject = new Set(["advertise", "channel", "resolve", "update", "complete"])

/** Returns what has changed in the object of an event since the former event with it; if nothing has, the object's values. */
function detailsOf({ frame, before }) {
  const object = frame.data?.object
  if (!withObject.has(frame.event) || typeof object !== "object" || object === null || Array.isArray(object)) return ""
  const changes = before === undefined ? [] : differences(before, object)
  return changes.length > 0 ? changesText(changes) : valuesText(object)
}

/** Returns the channel, the operation, the IO context or the topic of an event. */
function nameOf(frame) {
  const dimension = nameDimension(frame)
  return dimension === undefined ? "" : lineEnd(valueOf(frame, dimension), 100)
}

/** Returns a text with the number of events since the feed was paused. */
export function sinceText({ came, gone }) {
  if (came === 0) return "No events since."
  return `${plural(came, "event")} since${gone > 0 ? `, of which ${count(gone)} are no longer available` : ""}.`
}

const gapText = ({ dropped, where }) =>
  dropped === null ? "Gap: the connection was interrupted, and an unknown number of events was dropped."
  : where === "client" ? `Gap: ${plural(dropped, "event")} dropped because this page was too slow.`
  : `Gap: ${plural(dropped, "event")} dropped because the connection was too slow.`
