// A bounded buffer of the newest items.

/** Maximum number of items, and maximum bytes of their frames as text. Parsed, they may take many times as much. */
export const maximumItems = 2000
export const maximumBytes = 2 << 20

/** A buffer of the newest items, numbered from 1 in the order of their arrival. */
export class Ring {
  #items = new Array(maximumItems)
  #sizes = new Array(maximumItems).fill(0)
  #bytes = 0
  /** Number of items that were added. */
  total = 0
  /** The number of the oldest kept item. */
  first = 1

  /** Number of kept items. */
  get length() {
    return this.total - this.first + 1
  }

  /** Adds an item. @param {number} size its approximate bytes */
  push(item, size) {
    if (this.length === maximumItems) this.#dropFirst()
    this.total += 1
    const place = this.total % maximumItems
    this.#items[place] = item
    this.#sizes[place] = size
    this.#bytes += size
    while (this.#bytes > maximumBytes && this.length > 1) this.#dropFirst()
  }

  /** Returns the item with a number; undefined if it is not kept. */
  at(number) {
    return number >= this.first && number <= this.total ? this.#items[number % maximumItems] : undefined
  }

  /** Returns the items that match, oldest first, at most `limit`. */
  filter(predicate, limit) {
    const found = []
    for (let number = this.first; number <= this.total && found.length < limit; number += 1) {
      const item = this.at(number)
      if (predicate(item)) found.push(item)
    }
    return found
  }

  /** Removes all items; their numbers are not used again. */
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
