// The context edited in place: saved where nobody else has changed it, or only tried.

import { h, jsonText, plural, replace, setHidden } from "./dom.js"
import { mergePatch } from "./merge-patch.js"
import { rateText } from "./routing-model.js"

/** How many changed associations are listed. */
const maximumListed = 12

export class ContextEditor {
  element
  #app
  #callbacks
  #text
  #error
  #outcome
  #whatIf
  #revert
  /** As the text was made of it: `{context, version, isHosted}`. */
  #base
  #isEdited = false

  /**
   * @param callbacks `onWhatIf(changes)`, null where what was tried is edited again; `onSaved(answer, version)`;
   *   `onLoad()`, which brings the context as it is by `take(…, true)`; `nameOf(pointId)`
   */
  constructor(app, callbacks) {
    this.#app = app
    this.#callbacks = callbacks
    this.#text = h("textarea", {
      id: "routing-context-text", spellcheck: false, autocapitalize: "off",
      "aria-describedby": "routing-context-error", oninput: () => this.#edited(),
    })
    this.#error = h("p", { className: "error", id: "routing-context-error" })
    this.#outcome = h("div", { className: "outcome" })
    this.#whatIf = h("button", { className: "button", type: "button", onclick: () => this.#try() }, "What if")
    this.#revert = h("button", { className: "button quiet", type: "button", onclick: () => this.#reset() }, "Undo edits")
    const form = h("form", { className: "form" },
      h("div", { className: "field" }, h("label", { for: this.#text.id }, "Context"), this.#text, this.#error),
      h("div", { className: "toolbar" },
        h("button", { className: "button primary", type: "submit" }, "Save"), this.#whatIf, this.#revert),
      this.#outcome)
    form.addEventListener("submit", (event) => {
      event.preventDefault()
      this.#save()
    })
    this.element = h("section", { className: "card" }, h("h2", {}, "Change the context"), form)
  }

  /**
   * Takes the context as it is. A text that was edited stays, and who edits it is told.
   *
   * @param isForced whether to drop what was edited
   */
  take(context, version, isHosted, isForced = false) {
    const isSame = this.#base?.version === version && this.#base.context.objectId === context.objectId
    setHidden(this.#whatIf, !isHosted)
    if (isSame && !isForced) return
    if (this.#base && this.#base.context.objectId !== context.objectId) isForced = true
    if (this.#isEdited && !isForced) return this.#tellChanged("The context has been changed by somebody else.")
    this.#base = { context, version, isHosted }
    this.#reset()
  }

  #reset() {
    if (!this.#base) return
    const text = jsonText(this.#base.context)
    this.#text.value = text
    this.#text.rows = Math.min(text.split("\n").length + 1, 18)
    this.#isEdited = false
    setHidden(this.#revert, true)
    this.#clear()
  }

  #edited() {
    this.#isEdited = true
    setHidden(this.#revert, false)
    this.#clear()
  }

  #clear() {
    this.#say()
    this.#invalid("")
    this.#callbacks.onWhatIf(null)
  }

  #invalid(reason) {
    this.#error.textContent = reason
    setHidden(this.#error, reason === "")
    if (reason) this.#text.setAttribute("aria-invalid", "true")
    else this.#text.removeAttribute("aria-invalid")
  }

  /** Undefined where the text is no JSON object. */
  #read() {
    try {
      const context = JSON.parse(this.#text.value)
      if (typeof context === "object" && context !== null && !Array.isArray(context)) return context
      this.#invalid("The context must be a JSON object.")
    } catch (error) {
      this.#invalid(`This is no JSON: ${error.message}`)
    }
    this.#text.focus()
    return undefined
  }

  async #save() {
    const context = this.#base && this.#read()
    if (!context) return
    const { context: before, version, isHosted } = this.#base
    const patch = mergePatch(before, context)
    if (patch && Object.keys(patch).length === 0) return this.#say("info", "Nothing is edited yet.")
    const request = patch
      ? { method: "PATCH", body: patch, headers: { "content-type": "application/merge-patch+json", "if-match": version } }
      : { method: "PUT", body: this.#text.value, headers: { "if-match": version } }
    await this.#ask(request, "", ({ json, headers }) => {
      if (this.#base.context.objectId !== json.context?.objectId) return
      this.#base = { context: json.context, version: headers.get("etag"), isHosted }
      this.#reset()
      const changes = json.associations
      if (changes) this.#tell("Saved", ["added", "removed", "changed"], changes)
      else this.#say("info", "Saved. Its router has taken it over, and tells which associations change.")
      this.#callbacks.onSaved(json, this.#base.version)
    })
  }

  async #try() {
    const context = this.#base && this.#read()
    if (!context) return
    await this.#ask({ method: "POST", body: { context } }, "/evaluate", ({ json }) => {
      this.#callbacks.onWhatIf(json.associations)
      this.#tell("If this were saved", ["would be added", "would be removed", "would have another rate"], json.associations)
    })
  }

  /** Asks the gateway about the context. What was edited meanwhile, an answer says nothing about. */
  async #ask(request, path, take) {
    const text = this.#text.value
    const { objectId } = this.#base.context
    try {
      const answer = await this.#app.rest(`v1/routing/contexts/${encodeURIComponent(objectId)}${path}`, request)
      if (this.#text.value === text || path === "") take(answer)
    } catch (error) {
      if (error.status === 412) return this.#tellChanged("It is not saved: the context has changed since it was loaded.")
      this.#say("bad", error.detail ?? error.title ?? error.message)
    }
  }

  #tellChanged(reason) {
    this.#callbacks.onWhatIf(null)
    const load = h("button", { className: "button", type: "button", onclick: () => this.#callbacks.onLoad() }, "Load it anew")
    this.#say("warn", [h("p", {}, `${reason} Your text is still here.`), load])
  }

  #tell(beginning, words, changes) {
    const kinds = [changes.added, changes.removed, changes.changed]
    const counts = kinds.map((list, index) => list.length > 0 && `${list.length} ${words[index]}`).filter(Boolean)
    const sentence = `${beginning}: ${counts.length > 0 ? counts.join(", ") : "no association changes"}.`
    const all = kinds.flatMap((list, index) => list.map((association) => this.#change("+−~"[index], words[index], association)))
    const rest = all.length - maximumListed
    const items = all.slice(0, maximumListed)
    if (rest > 0) items.push(h("li", { className: "muted" }, `and ${plural(rest, "other")}`))
    this.#say("info", [h("p", {}, sentence), items.length > 0 && h("ul", { className: "changes" }, items)])
  }

  #change(sign, word, { ioSourceId, ioActorId, updateRate }) {
    const { nameOf } = this.#callbacks
    const rate = sign === "−" ? "" : `, ${rateText(updateRate)}`
    return h("li", { "data-sign": sign },
      h("span", { className: "sign", "aria-hidden": "true" }, sign), h("span", { className: "visually-hidden" }, `${word}: `),
      h("span", {}, `${nameOf(ioSourceId)} → ${nameOf(ioActorId)}${rate}`))
  }

  #say(kind, content) {
    replace(this.#outcome, kind && h("div", { className: "notice", "data-kind": kind }, content))
    if (kind) this.#app.announce(this.#outcome.textContent)
  }
}
