// The text of a context while it is edited, and those of others that were edited before. Pure.

import { prettyJSON } from "./json-print.js"

/** How many texts of other contexts are kept; the oldest goes. */
export const maximumDrafts = 20

export class ContextDraft {
  /** What the text was made of, `{context, version}`. */
  base
  text = ""
  /** Whether the gateway has another version than the one that was edited. */
  isBehind = false
  #original = ""
  /** By the ids of contexts: `{base, text, original}`. */
  #kept = new Map()
  /** What is being saved, `{id, text}`. */
  #sent

  get id() {
    return this.base?.context.objectId
  }

  get isEdited() {
    return this.base !== undefined && this.text !== this.#original
  }

  get isSaving() {
    return this.#sent !== undefined
  }

  /** The text as it was before it was edited. */
  reset() {
    this.text = this.#original
  }

  /**
   * Takes the context as the gateway has it. A text that was edited stays, also where another context takes its place.
   *
   * @param base `{context, version}` @param isForced whether to drop what was edited
   * @returns `{change, left?}`: `none`, `loaded`, `behind` (an edited text stays), or `restored` (an edited text is back);
   *   and the context that was left with an edited text
   */
  take(base, isForced = false) {
    const id = base.context.objectId
    const isOther = id !== this.id
    const left = isOther && this.isEdited ? this.base.context : undefined
    if (left) this.#keep()
    const kept = this.#kept.get(id)
    this.#kept.delete(id)
    if (isOther && kept && !isForced) {
      this.base = kept.base
      this.text = kept.text
      this.#original = kept.original
      this.isBehind = this.base.version !== base.version
      return { change: "restored", left }
    }
    if (!isOther) {
      // What is saved now is told by the answer to it.
      if (this.#sent?.id === id) return { change: "none" }
      if (!isForced && base.version === this.base.version) {
        this.isBehind = false
        return { change: "none" }
      }
      if (!isForced && this.isEdited) {
        this.isBehind = true
        return { change: "behind" }
      }
    }
    this.#load(base)
    return { change: "loaded", left }
  }

  /** The text is on its way to the gateway. */
  send() {
    this.#sent = { id: this.id, text: this.text }
  }

  /** It has not arrived there. */
  refused() {
    this.#sent = undefined
  }

  /**
   * The gateway has what was sent. What was typed since then stays.
   *
   * @param base `{context, version}`
   * @returns whether the text is now what the gateway has
   */
  saved(base) {
    const { id, text } = this.#sent
    this.#sent = undefined
    if (id === this.id) {
      if (this.text === text) {
        this.#load(base)
        return true
      }
      this.base = base
      this.#original = prettyJSON(base.context)
      this.isBehind = false
      return false
    }
    const kept = this.#kept.get(id)
    if (kept?.text === text) this.#kept.delete(id)
    else if (kept) Object.assign(kept, { base, original: prettyJSON(base.context) })
    return true
  }

  #load(base) {
    this.base = base
    this.text = this.#original = prettyJSON(base.context)
    this.isBehind = false
  }

  #keep() {
    this.#kept.set(this.id, { base: this.base, text: this.text, original: this.#original })
    if (this.#kept.size > maximumDrafts) this.#kept.delete(this.#kept.keys().next().value)
  }
}
