// What the feed has heard, and what it shows of that while it stands still.

import { Ring } from "./ring.js"

/**
 * Why it stands still: it was asked to, an event is opened, or somebody points at the list, which must not slip away.
 *
 * @typedef {"asked" | "opened" | "held"} Reason
 */

/** Keeps the newest events, and gaps among them; goes on hearing while it stands still. */
export class Timeline {
  #ring = new Ring()
  /** Undefined while it goes on. */
  #pause
  /** Where it was paused, and what came meanwhile. */
  #marks = []
  #gaps = 0
  /** How many events are known to be missing. */
  dropped = 0

  /** How many events have come. */
  get events() {
    return this.#ring.total - this.#gaps
  }

  /** How many are kept. */
  get kept() {
    return this.#ring.length
  }

  push(frame, at) {
    if (frame.op === "gap") {
      this.#gaps += 1
      this.dropped += frame.dropped ?? 0
    }
    this.#ring.push({ at, frame }, frame.size)
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
    else this.#pause = { reason, at: this.#ring.total, gaps: this.#gaps, items: this.#ring.filter(() => true, Infinity) }
  }

  /** Goes on, behind a mark where it was paused and something has come. */
  resume() {
    const missed = this.missed()
    if (this.isPaused && missed.came > 0) this.#marks.push({ number: this.#pause.at, end: this.#ring.total, ...missed })
    this.#marks = this.#marks.filter(({ end }) => end >= this.#ring.first)
    this.#pause = undefined
  }

  /** How many events have come since it stands still, and how many of them are no longer kept. */
  missed() {
    const { at, gaps } = this.#pause
    const came = this.#ring.total - at - (this.#gaps - gaps)
    return { came, gone: Math.min(came, Math.max(0, this.#ring.first - at - 1)) }
  }

  /** Forgets what is kept, and goes on. */
  clear() {
    this.#pause = undefined
    this.#marks = []
    this.#ring.clear()
  }

  /** The events that are like this, the oldest first, at most so many. */
  filter(isWanted, limit) {
    return this.#ring.filter(isWanted, limit)
  }

  /**
   * What there is to be shown, the newest first: items `{ at, frame }`, and marks `{ came, gone }` between them.
   *
   * @param {(item: any) => boolean} isWanted
   * @param {number} limit how many at most
   */
  entries(isWanted, limit) {
    const items = this.#pause?.items
    const last = this.#pause?.at ?? this.#ring.total
    const first = items ? last - items.length + 1 : this.#ring.first
    const marks = this.#marks.filter(({ number, end }) => number < last && end >= first)
    const entries = []
    for (let number = last; number >= first && entries.length < limit; number -= 1) {
      while (marks.length > 0 && marks.at(-1).number >= number) entries.push(marks.pop())
      const item = items ? items[number - first] : this.#ring.at(number)
      if (isWanted(item)) entries.push(item)
    }
    // The feed was paused before what is kept.
    if (marks.length > 0 && entries.length < limit) entries.push(marks.at(-1))
    return entries
  }
}
