// How fast the counters of the gateway grow.

/** How long rates are kept, in milliseconds. */
export const span = 120_000

/** Between answers that are further apart nobody has asked: there is no rate, in milliseconds. */
export const maximumStep = 5000

/** The most answers that are kept. */
const maximumSamples = 240

/** The rates of counters over the last two minutes. */
export class Rates {
  #samples = []
  #started

  /**
   * Takes an answer.
   *
   * @param {number} time when it came, in milliseconds of a clock that only goes forward.
   * @param {number} started when the gateway was started: counters of another start are not compared.
   * @param {Record<string, number>} counters
   */
  take(time, started, counters) {
    if (started !== this.#started) this.#samples = []
    this.#started = started
    if (this.#samples.length > 0 && time <= this.#samples.at(-1).time) return
    this.#samples.push({ time, counters })
    // The first one may be older: the rate behind it is not.
    while (this.#samples.length > maximumSamples || this.#samples[1]?.time < time - span) this.#samples.shift()
  }

  /** What a counter grew by in a second, at each answer: `{ time, rate }`, where the rate is null if none is known. */
  of(name) {
    return this.#samples.slice(1).map(({ time, counters }, index) => {
      const before = this.#samples[index]
      const step = time - before.time
      return { time, rate: step > maximumStep ? null : Math.max(0, counters[name] - before.counters[name]) * 1000 / step }
    })
  }
}

/** A rate as it is shown: "0", "0.4", "12", "1,234". */
export function rateText(rate) {
  return rate < 9.95 && rate > 0 ? Math.max(0.1, rate).toFixed(1).replace(/\.0$/, "") : Math.round(rate).toLocaleString("en-US")
}
