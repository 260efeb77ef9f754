// Rates of the gateway's counters, and the values of its gauges and histograms over time.

/** How long samples are kept, in milliseconds. */
export const span = 120_000

/** Maximum milliseconds between two samples. There is no rate between samples that are further apart. */
export const maximumStep = 5000

/** Minimum milliseconds between two samples that are compared. Over less time, one event more or less is a high rate. */
export const minimumStep = 500

/** Maximum number of samples. */
const maximumSamples = 240

/** The time whose durations a quantile covers, in milliseconds. */
export const quantileTime = 10_000

/**
 * Returns a quantile of a histogram, interpolated linearly between two bounds; null if the histogram is empty.
 *
 * @param {number[]} bounds the upper bounds
 * @param {number[]} counts the number of durations in each bucket; the last one is beyond all bounds
 * @param {number} share such as 0.99
 */
export function quantile(bounds, counts, share) {
  const total = counts.reduce((sum, count) => sum + count, 0)
  if (total === 0) return null
  let left = total * share
  const index = counts.findIndex((count) => (left -= count) <= 0 && count > 0)
  // Durations beyond the last bound count as the bound.
  if (index < 0 || index >= bounds.length) return bounds.at(-1)
  const lower = index === 0 ? 0 : bounds[index - 1]
  return lower + (bounds[index] - lower) * (1 + left / counts[index])
}

/** The rates of the gateway's counters over the last two minutes. */
export class Rates {
  #samples = []
  #started

  /**
   * Takes a sample, unless it is too close to the last one.
   *
   * @param {number} time when it was received, in milliseconds of a monotonic clock
   * @param {number} started when the gateway was started; samples of an earlier start are removed
   * @param {Record<string, number>} counters
   */
  take(time, started, counters) {
    if (started !== this.#started) this.#samples = []
    this.#started = started
    if (time < this.#samples.at(-1)?.time + minimumStep) return
    this.#samples.push({ time, counters })
    // One sample older than the span is kept: the rate at the second sample needs it.
    while (this.#samples.length > maximumSamples || this.#samples[1]?.time < time - span) this.#samples.shift()
  }

  /** Returns the growth of a counter per second at each sample, `{ time, rate }`; the rate is null if unknown. */
  of(name) {
    return this.#samples.slice(1).map(({ time, counters }, index) => {
      const before = this.#samples[index]
      const step = time - before.time
      return { time, rate: step > maximumStep ? null : Math.max(0, counters[name] - before.counters[name]) * 1000 / step }
    })
  }

  /** Returns the values of a gauge at each sample, in the form of `of`. */
  values(name) {
    return this.#samples.map(({ time, counters }, index) =>
      ({ time, rate: time - (this.#samples[index - 1]?.time ?? time) > maximumStep ? null : counters[name] }))
  }

  /** Returns a quantile of the last ten seconds' durations at each sample, in the form of `of`; null if there were none. */
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

/** The rates of clients' counters, by client name. */
export class ClientRates {
  #samples = []
  #started

  /** Takes the clients of a status, in the form of `Rates.take`. */
  take(time, started, clients) {
    if (started !== this.#started) this.#samples = []
    this.#started = started
    if (this.#samples.at(-1)?.time === time) return
    this.#samples.push({ time, clients: new Map(clients.map((client) => [client.client, client])) })
    while (this.#samples.length > maximumSamples || this.#samples[0].time < time - quantileTime) this.#samples.shift()
  }

  /** Returns the growth of a client's counter per second, over at most ten seconds; null if unknown. */
  of(name, counter) {
    const { time, clients } = this.#samples.at(-1)
    const first = this.#samples.find(({ clients }) => clients.has(name))
    const growth = clients.get(name)[counter] - first.clients.get(name)[counter]
    // The gateway may have removed the client's account: the counters then start at 0 again.
    return time < first.time + minimumStep || growth < 0 ? null : growth * 1000 / (time - first.time)
  }
}

/** Returns a rate as text: "0", "0.4", "12", "1,234". */
export function rateText(rate) {
  return rate < 9.95 && rate > 0 ? Math.max(0.1, rate).toFixed(1).replace(/\.0$/, "") : Math.round(rate).toLocaleString("en-US")
}
