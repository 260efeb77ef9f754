// How fast the counters of the gateway grow, and what its gauges and histograms were.

/** How long rates are kept, in milliseconds. */
export const span = 120_000

/** Between answers that are further apart nobody has asked: there is no rate, in milliseconds. */
export const maximumStep = 5000

/** The most answers that are kept. */
const maximumSamples = 240

/** A quantile is that of the durations of so many milliseconds. */
export const quantileTime = 10_000

/**
 * What a share of durations is at most, as if they were spread evenly between two bounds; null if there are none.
 *
 * @param {number[]} bounds the upper bounds
 * @param {number[]} counts of the durations up to each bound, and last of those beyond all
 * @param {number} share such as 0.99
 */
export function quantile(bounds, counts, share) {
  const total = counts.reduce((sum, count) => sum + count, 0)
  if (total === 0) return null
  let left = total * share
  const index = counts.findIndex((count) => (left -= count) <= 0 && count > 0)
  // Beyond the last bound nothing is known but that.
  if (index < 0 || index >= bounds.length) return bounds.at(-1)
  const lower = index === 0 ? 0 : bounds[index - 1]
  return lower + (bounds[index] - lower) * (1 + left / counts[index])
}

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

  /** What a gauge was at each answer, as `of` returns rates. */
  values(name) {
    return this.#samples.map(({ time, counters }, index) =>
      ({ time, rate: time - (this.#samples[index - 1]?.time ?? time) > maximumStep ? null : counters[name] }))
  }

  /** A quantile of the durations of the last ten seconds at each answer, as `of` returns rates; null while there were none. */
  quantiles(name, share) {
    let first = 0
    return this.#samples.slice(1).map(({ time, counters }, index) => {
      if (time - this.#samples[index].time > maximumStep) first = index + 1
      while (first < index && this.#samples[first].time < time - quantileTime) first += 1
      const { bounds, counts } = counters[name]
      const before = this.#samples[first].counters[name].counts
      return { time, rate: quantile(bounds, counts.map((count, bucket) => count - before[bucket]), share) }
    })
  }
}

/** How fast what clients use grows, by their names. */
export class ClientRates {
  #samples = []
  #started

  /** Takes the clients of an answer, as `Rates.take` takes counters. */
  take(time, started, clients) {
    if (started !== this.#started) this.#samples = []
    this.#started = started
    if (this.#samples.at(-1)?.time === time) return
    this.#samples.push({ time, clients: new Map(clients.map((client) => [client.client, client])) })
    while (this.#samples.length > maximumSamples || this.#samples[0].time < time - quantileTime) this.#samples.shift()
  }

  /** What a counter of a client grew by in a second, over at most ten; null if that is not known. */
  of(name, counter) {
    const { time, clients } = this.#samples.at(-1)
    const first = this.#samples.find(({ clients }) => clients.has(name))
    const growth = clients.get(name)[counter] - first.clients.get(name)[counter]
    // An account that was forgotten begins at zero again.
    return time === first.time || growth < 0 ? null : growth * 1000 / (time - first.time)
  }
}

/** A rate as it is shown: "0", "0.4", "12", "1,234". */
export function rateText(rate) {
  return rate < 9.95 && rate > 0 ? Math.max(0.1, rate).toFixed(1).replace(/\.0$/, "") : Math.round(rate).toLocaleString("en-US")
}
