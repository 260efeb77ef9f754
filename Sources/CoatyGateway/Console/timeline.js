// The events of the feed, and those that it shows while it is stopped.

import { Ring } from "./ring.js"
import { requestOf } from "./summary.js"

/** Returns the group of a frame: a request and its responses are one group. */
const familyOf = ({ op, event }) => (op === "gap" ? op : requestOf(event) ?? event)

/**
 * Why the timeline is stopped: the user paused it, an event is opened, or the pointer or the focus is in the list.
 *
 * @typedef {"asked" | "opened" | "held"} Reason
 */

/**
 * The newest events and gaps. While the timeline is stopped, it still takes events, but shows only earlier ones.
 *
 * Each group of kinds has its own ring, so that a flood of IO values does not displace calls.
 */
export class Timeline {
  /** Rings by group. Items are numbered across all groups. */
  #rings = new Map()
  #total = 0
  /** Undefined unless it is stopped. */
  #pause
  /** Where it was paused, and the number of events in the meantime. */
  #marks = []
  #gaps = 0
  /** Number of events that gaps have reported as dropped. */
  dropped = 0

  /** Number of events that were added, without gaps. */
  get events() {
    return this.#total - this.#gaps
  }

  /** Number of kept events and gaps. */
  get kept() {
    let kept = 0
    for (const ring of this.#rings.values()) kept += ring.length
    return kept
  }

  /** Adds a frame that was received at a time. @param before the former version of its object */
  push(frame, at, before) {
    if (frame.op === "gap") {
      this.#gaps += 1
      this.dropped += frame.dropped ?? 0
    }
    const family = familyOf(frame)
    let ring = this.#rings.get(family)
    if (ring === undefined) this.#rings.set(family, ring = new Ring())
    this.#total += 1
    ring.push({ number: this.#total, at, frame, before }, frame.size)
  }

  /** @returns {Reason | undefined} undefined unless it is stopped */
  get reason() {
    return this.#pause?.reason
  }

  /** Whether it stays stopped until the user resumes it or closes the event. */
  get isPaused() {
    return this.#pause !== undefined && this.#pause.reason !== "held"
  }

  /**
   * Stops the timeline. If it is stopped already, only the reason changes.
   *
   * @param {Reason} reason
   */
  stop(reason) {
    if (this.#pause) this.#pause.reason = reason
    else this.#pause = { reason, at: this.#total, gaps: this.#gaps, items: this.#newest(() => true, Infinity) }
  }

  /** Continues. If it was paused and events were added since then, a mark shows where. */
  resume() {
    const missed = this.missed()
    if (this.isPaused && missed.came > 0) this.#marks.push({ number: this.#pause.at, end: this.#total, ...missed })
    const oldest = this.#oldest()
    this.#marks = this.#marks.filter(({ end }) => end >= oldest)
    this.#pause = undefined
  }

  /** Returns the number of events since it was stopped, and how many of them are no longer kept. */
  missed() {
    const { at, gaps } = this.#pause
    const came = this.#total - at - (this.#gaps - gaps)
    let kept = 0
    for (const [family, ring] of this.#rings) {
      if (family === "gap") continue
      for (let number = ring.total; number >= ring.first && ring.at(number).number > at; number -= 1) kept += 1
    }
    return { came, gone: came - kept }
  }

  /** Removes all events, and continues. */
  clear() {
    this.#pause = undefined
    this.#marks = []
    for (const ring of this.#rings.values()) ring.clear()
  }

  /** Returns the request and the responses with a correlation id, the oldest first, at most `limit`. */
  correlated({ event, correlationId }, limit) {
    const ring = this.#rings.get(familyOf({ event }))
    return ring?.filter(({ frame }) => frame.correlationId === correlationId, limit) ?? []
  }

  /** Returns the newest item that matches; undefined if there is none. */
  find(isWanted) {
    return this.#newest(isWanted, 1)[0]
  }

  /** Returns the items that match, the newest first: all, or at least as many as the limit. */
  #newest(isWanted, limit) {
    const found = []
    for (const ring of this.#rings.values()) {
      let room = limit
      for (let number = ring.total; number >= ring.first && room > 0; number -= 1) {
        const item = ring.at(number)
        if (!isWanted(item)) continue
        found.push(item)
        room -= 1
      }
    }
    return found.sort((one, other) => other.number - one.number)
  }

  /** Returns the number of the oldest item. */
  #oldest() {
    let oldest = this.#total + 1
    for (const ring of this.#rings.values()) if (ring.length > 0) oldest = Math.min(oldest, ring.at(ring.first).number)
    return oldest
  }

  /**
   * Returns the entries to show, newest first: items `{ at, frame }`, and marks `{ came, gone }` between them.
   *
   * @param {(item: any) => boolean} isWanted selects the items
   * @param {number} limit maximum number of entries
   */
  entries(isWanted, limit) {
    const last = this.#pause?.at ?? this.#total
    const first = this.#pause?.items.at(-1)?.number ?? this.#oldest()
    const marks = this.#marks.filter(({ number, end }) => number < last && end >= first)
    const entries = []
    const push = (entry) => { if (entries.length < limit) entries.push(entry) }
    for (const item of this.#pause?.items.filter(isWanted) ?? this.#newest(isWanted, limit)) {
      while (marks.length > 0 && marks.at(-1).number >= item.number) push(marks.pop())
      push(item)
    }
    while (marks.length > 0 && marks.at(-1).number >= first) push(marks.pop())
    // A pause before the oldest kept item is shown at the end.
    if (marks.length > 0) push(marks.at(-1))
    return entries
  }
}
