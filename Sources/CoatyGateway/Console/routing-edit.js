// The editor of a context: saves it unless it was changed by others since, or only evaluates the change.

import { codeOfContext } from "./code-of.js"
import { copyCodeButtons } from "./copy-code.js"
import { problemContent } from "./denial.js"
import { h, line, plural, replace, setHidden, setText } from "./dom.js"
import { prettyJSON } from "./json-print.js"
import { parseExactJSON, parseJSON } from "./json-text.js"
import { mergePatch } from "./merge-patch.js"
import { ContextDraft } from "./routing-draft.js"
import { ContextForm, suggestions } from "./routing-form.js"
import { rateText } from "./routing-model.js"
import { token } from "./token.js"

/** Maximum number of changed associations that are listed. */
const maximumListed = 12
/** Maximum number of rows of the text, in browsers without `field-sizing`. */
const maximumRows = 18

export class ContextEditor {
  element
  #app
  #callbacks
  #heading = h("h2", {}, "Change the context")
  #text
  #error
  #outcome
  #saving
  #whatIf
  #revert
  #draft = new ContextDraft()
  #form = new ContextForm((name, value) => this.#setProperty(name, value))

  /**
   * @param callbacks `onWhatIf(changes)`, null when the result is outdated; `onSaved()`, called after each attempt to save;
   *   `onLoad()`, which loads the context and calls `take(…, true)`; `nameOf(pointId)`
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
    this.#saving = h("button", { className: "button primary", type: "submit" }, "Save")
    this.#whatIf = h("button", { className: "button", type: "button", onclick: () => this.#try() }, "What if")
    this.#revert = h("button", { className: "button quiet", type: "button", onclick: () => this.#undo() }, "Undo edits")
    const form = h("form", { className: "form" },
      this.#form.element,
      h("div", { className: "field" }, h("label", { for: this.#text.id }, "Context"), this.#text, this.#error),
      h("div", { className: "toolbar" }, this.#saving, this.#whatIf, this.#revert, copyCodeButtons(() => this.#code())),
      this.#outcome)
    form.addEventListener("submit", (event) => {
      event.preventDefault()
      this.#save()
    })
    this.element = h("section", { className: "card" }, this.#heading, form)
  }

  /**
   * Takes the gateway's current context. An edited text is kept, also while another context is shown; a notice reports that it
   * differs from the gateway's version, is kept, or is shown again.
   *
   * @param isForced whether to discard the edits
   */
  take(context, version, isHosted, isForced = false) {
    this.#offer(context, isHosted)
    const wasBehind = this.#draft.isBehind
    const { change, left } = this.#draft.take({ context, version }, isForced)
    if (left) this.#app.toast(`Your edits of “${line(left.name, 60)}” are kept, but not saved yet.`)
    if (change === "loaded" || change === "restored") this.#show()
    if (this.#draft.isBehind && (change === "behind" || change === "restored")) {
      this.#reportChanged("The context has changed since it was loaded.")
    } else if (change === "restored") {
      this.#say("info", "Your edits of this context are not saved yet.")
    } else if (wasBehind && !this.#draft.isBehind) {
      this.#say()
    }
  }

  /** Suggests the characteristics of nodes as values of the context's properties. */
  suggest(nodes) {
    this.#form.suggest(suggestions(nodes))
  }

  /** Applies a changed field to the text. */
  #setProperty(name, value) {
    const context = parsed(this.#draft.text)
    if (context === undefined) return
    context[name] = value
    this.#text.value = prettyJSON(context)
    this.#edited()
  }

  /** Shows the text of the draft. */
  #show() {
    const { text, isEdited } = this.#draft
    this.#text.value = text
    this.#text.rows = Math.min(text.split("\n", maximumRows).length + 1, maximumRows)
    setHidden(this.#revert, !isEdited)
    this.#form.show(parsed(text))
    this.#clear()
  }

  #undo() {
    this.#draft.reset()
    this.#show()
    // The context without the edits is still an old version.
    if (this.#draft.isBehind) this.#callbacks.onLoad()
  }

  #edited() {
    this.#draft.text = this.#text.value
    setHidden(this.#revert, !this.#draft.isEdited)
    this.#form.show(parsed(this.#draft.text))
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

  /** Parses the text; shows an error and returns undefined if it is no JSON object. */
  #read() {
    try {
      const context = parseJSON(this.#draft.text)
      if (typeof context === "object" && context !== null && !Array.isArray(context)) return context
      this.#invalid("The context must be a JSON object.")
    } catch (error) {
      this.#invalid(`This is no JSON. ${error.message}`)
    }
    this.#text.focus()
    return undefined
  }

  /** Returns code that makes the edited change; without edits, code that gets the context. */
  #code() {
    const { base, text } = this.#draft
    let context
    try {
      context = parseJSON(text)
    } catch { }
    const isContext = typeof context === "object" && context !== null && !Array.isArray(context)
    const patch = isContext ? mergePatch(base.context, context) : {}
    const change = patch === undefined ? { method: "PUT", body: context }
      : Object.keys(patch).length > 0 ? { method: "PATCH", body: patch } : undefined
    return codeOfContext(change ? { ...context, objectId: base.context.objectId } : base.context, change, document.baseURI, token() !== undefined)
  }

  async #save() {
    const draft = this.#draft
    const context = draft.base && !draft.isSaving && this.#read()
    if (!context) return
    if (draft.isBehind) return this.#reportChanged("It is not saved: the context has changed since it was loaded.")
    const { context: before, version } = draft.base
    const patch = mergePatch(before, context)
    if (patch && Object.keys(patch).length === 0) return this.#say("info", "There are no edits yet.")
    const request = patch
      ? { method: "PATCH", body: patch, headers: { "content-type": "application/merge-patch+json", "if-match": version } }
      : { method: "PUT", body: draft.text, headers: { "if-match": version } }
    draft.send()
    this.#saving.disabled = this.#whatIf.disabled = true
    const change = { method: request.method, body: patch ?? context }
    const code = codeOfContext({ ...context, objectId: before.objectId }, change, document.baseURI, token() !== undefined)
    await this.#ask(request, "", ({ json, headers }, isShown) => {
      const isWhole = draft.saved({ context: json.context, version: headers.get("etag") })
      if (!isShown) return this.#app.toast(`“${line(json.context.name, 60)}” is saved.`)
      if (isWhole) this.#show()
      const since = (json.deferred ? " Other agents get it when the broker is back." : "")
        + (isWhole ? "" : " What you have typed since then is not saved.")
      const changes = json.associations
      if (changes) this.#showChanges("Saved", ["added", "removed", "changed"], changes, since)
      else this.#say("info", `Saved. Its router has accepted it, and publishes the associations that change.${since}`)
      this.#outcome.firstChild.append(h("div", { className: "toolbar" }, copyCodeButtons(() => code, "change ")))
    })
    draft.refused()
    this.#saving.disabled = this.#whatIf.disabled = false
    this.#callbacks.onSaved()
  }

  async #try() {
    const context = this.#draft.base && this.#read()
    if (!context) return
    const { text } = this.#draft
    await this.#ask({ method: "POST", body: { context } }, "/evaluate", ({ json }, isShown) => {
      // The answer does not apply if the text was edited in the meantime.
      if (!isShown || this.#draft.text !== text) return
      this.#callbacks.onWhatIf(json.associations)
      this.#showChanges("If this were saved", ["would be added", "would be removed", "would have another rate"], json.associations)
    })
  }

  /** Sends a request about the context. @param take `(answer, isShown)`: whether the context is still shown */
  async #ask(request, path, take) {
    const { id, base } = this.#draft
    const name = line(base.context.name, 60)
    try {
      const answer = await this.#app.rest(`v1/routing/contexts/${encodeURIComponent(id)}${path}`, request)
      take(answer, id === this.#draft.id)
    } catch (error) {
      const reason = error.detail ?? error.title ?? error.message
      if (id !== this.#draft.id) return this.#app.toast(`“${name}”: ${reason}`)
      if (error.status !== 412) return this.#say("bad", problemContent(error))
      this.#draft.isBehind = true
      this.#reportChanged("It is not saved: the context has changed since it was loaded.")
    }
  }

  #reportChanged(reason) {
    this.#callbacks.onWhatIf(null)
    const load = h("button", { className: "button", type: "button", onclick: () => this.#callbacks.onLoad() }, "Reload")
    this.#say("warn", [h("p", {}, `${reason} Your text is still here.`), load])
  }

  #showChanges(beginning, words, changes, end = "") {
    const kinds = [changes.added, changes.removed, changes.changed]
    const counts = kinds.map((list, index) => list.length > 0 && `${list.length} ${words[index]}`).filter(Boolean)
    const sentence = `${beginning}: ${counts.length > 0 ? counts.join(", ") : "no association changes"}.${end}`
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

  /** Shows only the buttons for which the user has grants. */
  #offer({ name }, isHosted) {
    const maySave = this.#app.access.mayRoute(name)
    setHidden(this.#whatIf, !isHosted)
    setHidden(this.#saving, !maySave)
    setHidden(this.element, !maySave && !isHosted)
    setText(this.#heading, maySave ? "Change the context" : "Try a change")
  }

  #say(kind, content) {
    replace(this.#outcome, kind && h("div", { className: "notice", "data-kind": kind }, content))
    if (kind) this.#app.announce(this.#outcome.textContent)
  }
}

/** Parses a context; returns undefined if the text is no JSON object, or if it would change when it is written again. */
function parsed(text) {
  try {
    const context = parseExactJSON(text)
    return typeof context === "object" && context !== null && !Array.isArray(context) ? context : undefined
  } catch {
    return undefined
  }
}
