// The selection of the feed: which of the received events are shown. Pure.

import { kind, senderId, trafficEvents } from "./summary.js"

/** The properties by which events can be filtered, in addition to their kind and a text. */
export const dimensions = {
  sender: { title: "Sender", noun: "sender", of: senderId },
  type: { title: "Type", noun: "type", of: (frame) => (frame.event === "raw" ? "" : kind(frame)) },
  channel: { title: "Channel", noun: "channel", of: (frame) => frame.channelId },
  operation: { title: "Operation", noun: "operation", of: (frame) => frame.operation },
  context: { title: "IO context", noun: "IO context", of: (frame) => frame.contextName },
  topic: { title: "Topic", noun: "topic", of: (frame) => (frame.event === "raw" ? frame.topic : undefined) },
}

/** The kinds of events that can be chosen. */
export const kinds = [...trafficEvents, "raw"]

/** Returns the value of an event in a dimension; undefined if it has none. */
export function valueOf(frame, dimension) {
  const value = dimensions[dimension].of(frame)
  return typeof value === "string" && value !== "" ? value : undefined
}

/** Returns the dimension that names an event: its channel, operation, IO context or topic; undefined if it has none. */
export const nameDimension = (frame) => ["channel", "operation", "context", "topic"].find((dimension) => valueOf(frame, dimension) !== undefined)

/** The selection of events. */
export class FeedFilter {
  /** The chosen kinds; empty for all. */
  kinds = new Set()
  /** The chosen values, by dimension. */
  chosen = {}
  /** A lower-case text that an event's row or data must contain; empty for none. */
  text = ""

  /** Reads parameters of the address, and ignores unknown ones. */
  static from({ kinds: chosen = "", find = "", ...parameters }) {
    const filter = new FeedFilter()
    filter.kinds = new Set(chosen.split(",").filter((event) => kinds.includes(event)))
    filter.text = find.trim().toLowerCase()
    for (const dimension of Object.keys(dimensions)) if (parameters[dimension]) filter.chosen[dimension] = parameters[dimension]
    return filter
  }

  /** Parameters for the address, without the text: the address has it as it was typed. */
  get parameters() {
    return { kinds: kinds.filter((event) => this.kinds.has(event)).join(","), ...this.chosen }
  }

  /** Whether the selection leaves out any events. */
  get isNarrow() {
    return this.kinds.size > 0 || this.isFilteredBeyondKinds
  }

  get isFilteredBeyondKinds() {
    return this.text !== "" || Object.keys(this.chosen).length > 0
  }

  /**
   * Returns whether an event or a gap is shown.
   *
   * @param {(text: string) => boolean} contains returns whether the event's row or data contains a text
   */
  shows(frame, contains) {
    if (frame.op === "gap") return !this.isFilteredBeyondKinds
    if (this.kinds.size > 0 && !this.kinds.has(frame.event)) return false
    for (const dimension in this.chosen) if (valueOf(frame, dimension) !== this.chosen[dimension]) return false
    return this.text === "" || contains(this.text)
  }
}
