// The numeric values of properties and IO sources in the last ten minutes, within bounds. Pure.

/** How long values are kept, in milliseconds. */
export const keptTime = 600_000
/** Values within this time after a point are merged into it, in milliseconds. */
export const pointTime = 500
/** Maximum number of series. Beyond it, the owner whose last value is oldest loses all its series. */
export const maximumSeries = 200
/** Maximum number of series of one owner. */
export const maximumSeriesOfOwner = 12
/** Maximum depth of objects in which numbers are found. */
const maximumDepth = 3

/** The values of one property or source. */
export class Series {
  /** `{ time, value, low, high }`, oldest first. A point has the last value of its time, and the extremes. The value null marks
   * the begin of a time without observation. */
  points = []

  take(time, value) {
    const last = this.points.at(-1)
    if (last !== undefined && last.value !== null && time - last.time < pointTime) {
      Object.assign(last, { value, low: Math.min(last.low, value), high: Math.max(last.high, value) })
    } else {
      this.points.push({ time, value, low: value, high: value })
    }
    this.forget(time)
  }

  /** Ends the line, because the value is no longer observed. */
  interrupt(time) {
    if (this.points.length > 0 && this.points.at(-1).value !== null) this.points.push({ time, value: null, low: Infinity, high: -Infinity })
  }

  /** Removes old points, except the one whose value was current when the kept time began. */
  forget(now) {
    let gone = 0
    while (this.points[gone + 1]?.time <= now - keptTime) gone += 1
    if (gone > 0) this.points.splice(0, gone)
  }
}

/** The series of many owners: objects with numeric properties, or IO sources. */
export class Histories {
  /** Series by owner, the one with the latest value last, then by name. */
  #owners = new Map()
  #size = 0

  /** Adds a value. @param {string} owner an object id @param {string} name the path of the property; empty for an IO value */
  take(owner, name, time, value) {
    let series = this.#owners.get(owner)
    if (series === undefined) series = new Map()
    else this.#owners.delete(owner)
    this.#owners.set(owner, series)
    if (!series.has(name)) {
      if (series.size === maximumSeriesOfOwner) return
      series.set(name, new Series())
      this.#size += 1
    }
    series.get(name).take(time, value)
    while (this.#size > maximumSeries) this.#removeOldest()
  }

  /** Adds the changed numbers of an object. A series begins with the first change: constant properties have none. */
  takeChanges(owner, changes, since, now) {
    for (const { property, before, after } of changes) {
      const former = new Map(numbers(before, property))
      for (const [name, value] of numbers(after, property)) {
        const old = former.get(name)
        if (old === value || (old === undefined && !this.has(owner, name))) continue
        if (!this.has(owner, name)) this.take(owner, name, Math.min(Math.max(since, now - keptTime), now - pointTime), old)
        this.take(owner, name, now, value)
      }
    }
  }

  /** Ends all lines, because the values are no longer observed. */
  interrupt(now) {
    for (const series of this.#owners.values()) for (const one of series.values()) one.interrupt(now)
  }

  has(owner, name) {
    return this.#owners.get(owner)?.has(name) ?? false
  }

  /** Returns the series of an owner, `[[name, points]]`. */
  of(owner) {
    return [...(this.#owners.get(owner) ?? [])].map(([name, { points }]) => [name, points])
  }

  /** Returns the points of one series; an empty array if there is no such series. */
  points(owner, name = "") {
    return this.#owners.get(owner)?.get(name)?.points ?? []
  }

  #removeOldest() {
    const [owner, series] = this.#owners.entries().next().value
    this.#owners.delete(owner)
    this.#size -= series.size
  }
}

/** Yields the finite numbers in a value as `[path, number]`. */
export function* numbers(value, path, depth = 0) {
  if (typeof value === "number") {
    if (Number.isFinite(value)) yield [path, value]
  } else if (typeof value === "bigint") {
    if (Number.isFinite(Number(value))) yield [path, Number(value)]
  } else if (typeof value === "object" && value !== null && !Array.isArray(value) && depth < maximumDepth) {
    for (const [name, inner] of Object.entries(value)) yield* numbers(inner, `${path}.${name}`, depth + 1)
  }
}

/** Returns the lowest, the highest and the last known value of points; undefined if there are none. */
export function summary(points) {
  const known = points.findLast(({ value }) => value !== null)
  if (known === undefined) return undefined
  const low = points.reduce((low, point) => Math.min(low, point.low), Infinity)
  const high = points.reduce((high, point) => Math.max(high, point.high), -Infinity)
  return { low, high, last: known.value }
}

/** Returns a value as text, with at most six significant digits. */
export function numberText(value) {
  const size = Math.abs(value)
  if (size !== 0 && (size >= 1e9 || size < 1e-4)) return value.toExponential(3).replace(/\.?0+e/, "e")
  return value.toLocaleString("en-US", { maximumSignificantDigits: 6 })
}
