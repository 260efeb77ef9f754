// What the feed has heard, and what it shows of that while it stands still.

import { Ring } from "./ring.js"
import { requestOf } from "./summary.js"

/** Returns the group of a frame: a request and its responses are one group. */
const familyOf = ({ op, event }) => (op === "gap" ? op : requestOf(event) ?? event)

/**
 * Why it stands still: it was asked to, an event is opened, or somebody points at the list, which must not slip away.
 *
 * @typedef {"asked" | "opened" | "held"} Reason
 */

/**
 * Keeps the newest events, and gaps among them; goes on hearing while it stands still.
 *
 * Each group of kinds has its own ring: a flood of IO values does not push out calls.
 */
export class Timeline {
  /** By group. Items are numbered across all groups. */
  #rings = new Map()
  #total = 0
  /** Undefined while it goes on. */
  #pause
  /** Where it was paused, and what came meanwhile. */
  #marks = []
  #gaps = 0
  /** How many events are known to be missing. */
  dropped = 0

  /** How many events have come. */
  get events() {
    return this.#total - this.#gaps
  }

  /** How many are kept. */
  get kept() {
    let kept = 0
    for (const ring of this.#rings.values()) kept += ring.length
    return kept
  }

  push(frame, at) {
    if (frame.op === "gap") {
      this.#gaps += 1
      this.dropped += frame.dropped ?? 0
    }
    const family = familyOf(frame)
    let ring = this.#rings.get(family)
    if (ring === undefined) this.#rings.set(family, ring = new Ring())
    this.#total += 1
    ring.push({ number: this.#total, at, frame }, frame.size)
  }

  /** @returns {Reason | undefined} undefined while it goes on */
  get reason() {
    return this.#pause?.reason
  }

  /** Whether it stands still until somebody wants it to go on. */
  get isPaused() {
    return this.#pause !== undefined && this.#pause.reason !== "held"
  }

  /**
   * Stands still. What does so already keeps what it shows.
   *
   * @param {Reason} reason
   */
  stop(reason) {
    if (this.#pause) this.#pause.reason = reason
    else this.#pause = { reason, at: this.#total, gaps: this.#gaps, items: this.#newest(() => true, Infinity) }
  }

  /** Goes on, behind a mark where it was paused and something has come. */
  resume() {
    const missed = this.missed()
    if (this.isPaused && missed.came > 0) this.#marks.push({ number: this.#pause.at, end: this.#total, ...missed })
    const oldest = this.#oldest()
    this.#marks = this.#marks.filter(({ end }) => end >= oldest)
    this.#pause = undefined
  }

  /** How many events have come since it stands still, and how many of them are no longer kept. */
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

  /** Forgets what is kept, and goes on. */
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

  /** Returns an item that matches; undefined if there is none. */
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
   * What there is to be shown, the newest first: items `{ at, frame }`, and marks `{ came, gone }` between them.
   *
   * @param {(item: any) => boolean} isWanted
   * @param {number} limit how many at most
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
    // The feed was paused before what is kept.
    if (marks.length > 0) push(marks.at(-1))
    return entries
  }
}
