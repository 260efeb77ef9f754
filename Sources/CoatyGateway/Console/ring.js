// The newest of what has come, in bounds.

/** The most items, and the most bytes of the texts that they came as; what is made of these may take many times as much. */
export const maximumItems = 2000
export const maximumBytes = 2 << 20

/** Keeps the newest items, numbered from 1 in the order in which they came. */
export class Ring {
  #items = new Array(maximumItems)
  #sizes = new Array(maximumItems).fill(0)
  #bytes = 0
  /** How many items have come. */
  total = 0
  /** The number of the oldest item that is kept. */
  first = 1

  /** How many items are kept. */
  get length() {
    return this.total - this.first + 1
  }

  /** @param {number} size about how many bytes the item has. */
  push(item, size) {
    if (this.length === maximumItems) this.#dropFirst()
    this.total += 1
    const place = this.total % maximumItems
    this.#items[place] = item
    this.#sizes[place] = size
    this.#bytes += size
    while (this.#bytes > maximumBytes && this.length > 1) this.#dropFirst()
  }

  /** The item of a number; undefined where it is not kept. */
  at(number) {
    return number >= this.first && number <= this.total ? this.#items[number % maximumItems] : undefined
  }

  /** All that are like this, the oldest first, at most so many. */
  filter(predicate, limit) {
    const found = []
    for (let number = this.first; number <= this.total && found.length < limit; number += 1) {
      const item = this.at(number)
      if (predicate(item)) found.push(item)
    }
    return found
  }

  /** Forgets what is kept. */
  clear() {
    this.#items.fill(undefined)
    this.#sizes.fill(0)
    this.#bytes = 0
    this.first = this.total + 1
  }

  #dropFirst() {
    const place = this.first % maximumItems
    this.#bytes -= this.#sizes[place]
    this.#items[place] = undefined
    this.first += 1
  }
}
