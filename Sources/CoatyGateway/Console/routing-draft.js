// The text of the edited context, and the unsaved texts of other contexts. Pure.

import { prettyJSON } from "./json-print.js"

/** Maximum number of unsaved texts of other contexts. Beyond it the oldest is removed. */
export const maximumDrafts = 20

export class ContextDraft {
  /** The context on which the text is based, `{context, version}`. */
  base
  text = ""
  /** Whether the gateway's version differs from that of `base`. */
  isBehind = false
  #original = ""
  /** Unsaved texts by context id, `{base, text, original}`. */
  #kept = new Map()
  /** The text that is being saved, `{id, text}`. */
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

  /** Discards the edits. */
  reset() {
    this.text = this.#original
  }

  /**
   * Takes the gateway's current context. An edited text is kept, even if another context replaces it.
   *
   * @param base `{context, version}` @param isForced whether to discard the edits
   * @returns `{change, left?}`: `none`, `loaded`, `behind` (an edited text stays), or `restored` (an edited text is back);
   *   and `left`, the replaced context if its text was edited
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
      // The reply to the save will bring the new version.
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

  /** Notes that the text is sent to the gateway. */
  send() {
    this.#sent = { id: this.id, text: this.text }
  }

  /** Notes that the text was not saved. */
  refused() {
    this.#sent = undefined
  }

  /**
   * Notes that the gateway has saved the sent text. Later edits are kept.
   *
   * @param base `{context, version}`
   * @returns false if the shown text was edited since it was sent
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
