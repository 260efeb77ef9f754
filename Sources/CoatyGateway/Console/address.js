// The view with its selection and filters, in the fragment of the page's address.

/** Maximum number of characters of a parameter. */
const maximumValue = 8000

/**
 * Reads a fragment such as `#feed?kinds=call,return&find=door`.
 *
 * @returns {{ id: string, parameters: Record<string, string> }} the id of the view, and its parameters
 */
export function readFragment(hash) {
  const text = hash.replace(/^#/, "")
  const end = text.indexOf("?")
  if (end < 0) return { id: text, parameters: {} }
  const entries = [...new URLSearchParams(text.slice(end + 1))].map(([name, value]) => [name, value.slice(0, maximumValue)])
  return { id: text.slice(0, end), parameters: Object.fromEntries(entries) }
}

/** Returns the fragment of a view. Parameters that are undefined or empty are left out. */
export function fragment(id, parameters = {}) {
  const entries = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== "")
  return entries.length === 0 ? `#${id}` : `#${id}?${new URLSearchParams(entries)}`
}

/** The page's address and history, updated from the views' parameters. */
export class Address {
  #history
  #location
  /** The current view. */
  #id
  /** The latest fragment of each view. */
  #latest = new Map()

  constructor(history = globalThis.history, location = globalThis.location) {
    this.#history = history
    this.#location = location
  }

  /**
   * Reads the address after the user has followed a link or navigated in the history.
   *
   * A link to another view without parameters leads to that view as the user left it.
   *
   * @param {(id: string) => boolean} isView
   * @returns {{ id: string, parameters?: Record<string, string> } | undefined} `parameters` is absent if the view stays as
   *   the user left it; undefined if the address names no view
   */
  take(isView) {
    const { hash } = this.#location
    const { id, parameters } = readFragment(hash)
    if (!isView(id)) {
      // For example the skip link: the address of the current view is restored.
      if (this.#id !== undefined) this.#replace(this.#latest.get(this.#id))
      return undefined
    }
    const left = this.#latest.get(id)
    const isReturn = this.#history.state === null && !hash.includes("?") && id !== this.#id && left !== undefined
    this.#id = id
    if (isReturn) {
      this.#replace(left)
      return { id }
    }
    this.#latest.set(id, fragment(id, parameters))
    this.#replace(hash)
    return { id, parameters }
  }

  /** Sets the current view if the address names none. */
  begin(id) {
    this.#id = id
    this.#latest.set(id, fragment(id))
  }

  /**
   * Writes the parameters of a view into the address.
   *
   * @param {boolean} isStep whether to add a history entry, so that Back leads to the previous parameters
   */
  write(id, parameters, isStep = false) {
    const text = fragment(id, parameters)
    if (this.#latest.get(id) === text) return
    this.#latest.set(id, text)
    if (id !== this.#id) return
    if (isStep) this.#push(text)
    else this.#replace(text)
  }

  // The state marks entries whose parameters are complete. Browsers throw if there are too many changes in a short time.

  #push(text) {
    try {
      this.#history.pushState({ isComplete: true }, "", text)
    } catch { }
  }

  #replace(text) {
    try {
      this.#history.replaceState({ isComplete: true }, "", text)
    } catch { }
  }
}
