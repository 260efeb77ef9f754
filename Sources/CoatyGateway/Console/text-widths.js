// A cache of text widths.

/** Maximum number of cached widths. When it is reached, the cache is cleared. */
export const maximumWidths = 20_000

export class TextWidths {
  #measure
  /** Widths by style, then by text. */
  #widths = new Map()
  #count = 0

  /** @param measure `(text, style) => pixels` */
  constructor(measure) {
    this.#measure = measure
  }

  of(text, style) {
    const known = this.#widths.get(style)?.get(text)
    if (known !== undefined) return known
    if (this.#count === maximumWidths) {
      this.#widths.clear()
      this.#count = 0
    }
    if (!this.#widths.has(style)) this.#widths.set(style, new Map())
    const width = this.#measure(text, style)
    this.#widths.get(style).set(text, width)
    this.#count += 1
    return width
  }
}
