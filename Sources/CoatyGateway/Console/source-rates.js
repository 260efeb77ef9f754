// Measures how often IO sources publish, to compare it with the agreed rate. Pure.

import { duration } from "./dom.js"
import { rateText } from "./routing-model.js"

/** Maximum number of intervals over which the mean is taken. */
const maximumIntervals = 20
/** The time that these intervals cover at most, in milliseconds. The last interval always counts. */
const window = 60_000
/** A source is silent after this many intervals, and at least `silentTime` milliseconds, without a value. */
const silentIntervals = 3
const silentTime = 3000

export class SourceRates {
  /** The times of the last values in milliseconds, by source. */
  #times = new Map()

  /** Notes a value. @param {number} now in milliseconds of a monotonic clock */
  take(sourceId, now) {
    const times = this.#times.get(sourceId) ?? []
    times.push(now)
    while (times.length > maximumIntervals + 1 || (times.length > 2 && times[0] < now - window)) times.shift()
    this.#times.set(sourceId, times)
  }

  forget(sourceId) {
    this.#times.delete(sourceId)
  }

  clear() {
    this.#times.clear()
  }

  /**
   * Returns the measured rate of a source.
   *
   * @param {number | undefined} agreed the agreed interval in milliseconds
   * @returns `{ interval, silence, isSilent }` in milliseconds: the mean interval, undefined after a single value, and the
   *   time since the last value; undefined if there was no value
   */
  of(sourceId, now, agreed) {
    const times = this.#times.get(sourceId)
    if (times === undefined || times.length === 0) return undefined
    const interval = times.length > 1 ? (times.at(-1) - times[0]) / (times.length - 1) : undefined
    const silence = now - times.at(-1)
    const expected = Math.max(interval ?? 0, agreed ?? 0)
    return { interval, silence, isSilent: silence > Math.max(silentTime, silentIntervals * expected) }
  }
}

/** Returns the measured rate in words; null is for values that the page does not receive now. */
export function measuredText(measured) {
  if (measured === null) return "not known now"
  if (measured === undefined) return "no value yet"
  if (measured.isSilent) return `silent for ${duration(measured.silence / 1000)}`
  if (measured.interval === undefined) return "one value"
  return rateText(measured.interval < 1000 ? Math.max(1, Math.round(measured.interval)) : Math.round(measured.interval / 10) * 10)
}
