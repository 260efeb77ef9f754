// Explains why a source and an actor are associated or not, and why an actor gets nothing; and shows the context's rules.

import { explainActor, namesText } from "./actor-explanation.js"
import { h, plural, replace, setHidden } from "./dom.js"
import { explain } from "./explanation.js"
import { maximumShown, prettyJSON } from "./json-print.js"

/** Maximum number of sources, and of actors, in the selects. */
const maximumOptions = 1000
/** Maximum number of actors without a source that have a button. */
const maximumIdle = 4

/** The card "Why?" for a source and an actor, chosen by selects or in the graph, or for an actor over all sources. */
export class Why {
  element
  #app
  #callbacks
  #contextId
  #selects
  #answer = h("div", { className: "outcome" })
  #idle = h("div", { className: "idle", hidden: true })
  #idleShown = ""
  #points = ""
  /** The ids to choose when they become known. */
  #wanted = { sources: "", actors: "" }
  #names = new Map()
  #nodes = []
  #associations = []
  #turn = 0

  /**
   * @param callbacks `onChoose({sourceId, actorId})`, `onExplained({sourceId, actorId, isAssociated})`, null when it is outdated;
   *   `measure(sourceId, rate)`, as of `SourceRates.of`
   */
  constructor(app, callbacks) {
    this.#app = app
    this.#callbacks = callbacks
    const select = (id) => h("select", { id, onchange: () => this.#chosen() })
    this.#selects = { sources: select("routing-source"), actors: select("routing-actor") }
    const field = (label, element) => h("div", { className: "field" }, h("label", { for: element.id }, label), element)
    const form = h("form", { className: "form" },
      h("div", { className: "why-fields" }, field("Source", this.#selects.sources), field("Actor", this.#selects.actors)),
      h("div", { className: "why-row" },
        h("button", { className: "button", type: "submit" }, "Why?"),
        h("p", { className: "muted" }, "Without a source: over all of them. Or click a source, then an actor, in the graph.")),
      this.#answer, this.#idle)
    form.addEventListener("submit", (event) => {
      event.preventDefault()
      this.#ask()
    })
    this.element = h("section", { className: "card why" }, h("h2", {}, "Why are they associated, or not?"), form)
  }

  /** Chooses a source and an actor by their ids, now or when they become known. */
  select(sourceId, actorId) {
    this.#wanted = { sources: sourceId, actors: actorId }
    for (const [side, id] of Object.entries(this.#wanted)) this.#selects[side].value = id
    this.#points = ""
    this.forget()
  }

  get chosen() {
    return { sourceId: this.#selects.sources.value || undefined, actorId: this.#selects.actors.value || undefined }
  }

  /** Updates the sources and actors of a context. @param nodes of `graphNodes` @param associations `[{sourceId, actorId, rate}]` */
  take(contextId, nodes, associations) {
    if (contextId !== this.#contextId) this.clear()
    this.#contextId = contextId
    this.#nodes = nodes
    this.#associations = associations
    this.#offerIdle()
    const sides = ["sources", "actors"].map((side) => {
      const all = nodes.flatMap((node) => node[side])
      return { side, shown: all.slice(0, maximumOptions), rest: Math.max(0, all.length - maximumOptions) }
    })
    const points = JSON.stringify(sides)
    if (points === this.#points) return
    this.#points = points
    this.#names.clear()
    for (const { side, shown, rest } of sides) {
      const value = this.#wanted[side] || this.#selects[side].value
      const options = shown.map(({ id, name }) => h("option", { value: id }, name))
      if (rest > 0) options.push(h("option", { disabled: true }, plural(rest, "other")))
      replace(this.#selects[side], h("option", { value: "" }, side === "sources" ? "a source" : "an actor"), options)
      for (const { id, name } of shown) this.#names.set(id, name)
      const isThere = shown.some(({ id }) => id === value)
      if (isThere) this.#wanted[side] = ""
      this.#selects[side].value = isThere ? value : ""
    }
  }

  /**
   * Handles a click in the graph. A click on an actor also asks “Why?” if a source is chosen or the actor has no associations.
   *
   * @param side `sources` or `actors`
   */
  choose(side, id) {
    const select = this.#selects[side]
    select.value = select.value === id ? "" : id
    this.#chosen()
    const { sourceId, actorId } = this.chosen
    if (side !== "actors" || !actorId || (!sourceId && !this.#isIdle(actorId))) return
    this.#ask().then(() => this.#answer.scrollIntoView({ block: "nearest" }))
  }

  #isIdle(actorId) {
    return !this.#associations.some((association) => association.actorId === actorId)
  }

  /** Shows buttons that explain why actors without associations get nothing. */
  #offerIdle() {
    const fed = new Set(this.#associations.map(({ actorId }) => actorId))
    const idle = this.#nodes.flatMap(({ actors }) => actors).filter(({ id }) => !fed.has(id))
    const shown = idle.slice(0, maximumIdle)
    const rest = idle.length - shown.length
    const key = JSON.stringify([shown, rest])
    if (key === this.#idleShown) return
    this.#idleShown = key
    setHidden(this.#idle, idle.length === 0)
    replace(this.#idle,
      shown.map(({ id, name }) => h("button", {
        className: "button", type: "button",
        onclick: () => {
          this.#selects.sources.value = ""
          this.#selects.actors.value = id
          this.#chosen()
          this.#askAll(id)
        },
      }, `Why does “${name}” get nothing?`)),
      rest > 0 && h("p", { className: "muted" }, `${plural(rest, "other actor gets", "other actors get")} nothing: choose one above.`))
  }

  /** Removes the answer. */
  clear() {
    this.#turn += 1
    replace(this.#answer)
  }

  /** Removes the answer, and calls `onExplained` with null. */
  forget() {
    this.clear()
    this.#callbacks.onExplained(null)
  }

  #chosen() {
    this.forget()
    this.#callbacks.onChoose(this.chosen)
  }

  async #ask() {
    const { sourceId, actorId } = this.chosen
    if (!actorId) return this.#say("info", "Choose an actor, and perhaps a source.")
    if (!sourceId) return this.#askAll(actorId)
    this.clear()
    const turn = this.#turn
    try {
      const json = await this.#explanation(sourceId, actorId)
      if (turn !== this.#turn) return
      const explained = explain(json, this.#names.get(sourceId), this.#names.get(actorId))
      replace(this.#answer,
        h("p", { className: "notice", "data-kind": explained.isAssociated ? "ok" : "warn" }, explained.verdict), partList(explained.parts))
      this.#app.announce(explained.verdict)
      this.#callbacks.onExplained({ sourceId, actorId, isAssociated: explained.isAssociated })
    } catch (error) {
      if (turn === this.#turn) this.#say("bad", error.detail ?? error.message)
    }
  }

  async #explanation(sourceId, actorId) {
    const query = new URLSearchParams({ ioSourceId: sourceId, ioActorId: actorId })
    return (await this.#app.rest(`v1/routing/contexts/${encodeURIComponent(this.#contextId)}/explain?${query}`)).json
  }

  /** Explains why an actor gets nothing, or what it gets. */
  async #askAll(actorId) {
    this.clear()
    const turn = this.#turn
    try {
      const { verdict, isFed, reasons } = await explainActor({
        actor: this.#nodes.flatMap(({ actors }) => actors).find(({ id }) => id === actorId),
        sources: this.#nodes.flatMap(({ sources }) => sources),
        associated: this.#associations.filter((association) => association.actorId === actorId)
          .map(({ sourceId, rate }) => ({ id: sourceId, rate })),
        measure: this.#callbacks.measure,
        ask: (sourceId) => this.#explanation(sourceId, actorId),
      })
      if (turn !== this.#turn) return
      replace(this.#answer,
        h("p", { className: "notice", "data-kind": isFed ? "ok" : "warn" }, verdict),
        reasons.length > 0 && h("ul", { className: "parts reasons" }, reasons.map(({ text, names }) =>
          h("li", { "data-holds": String(isFed) }, h("strong", {}, namesText(names)), " ", h("span", {}, text)))))
      this.#app.announce(verdict)
      this.#answer.scrollIntoView({ block: "nearest" })
    } catch (error) {
      if (turn === this.#turn) this.#say("bad", error.detail ?? error.message)
    }
  }

  #say(kind, text) {
    replace(this.#answer, h("p", { className: "notice", "data-kind": kind }, text))
    this.#app.announce(text)
  }
}

function partList(parts) {
  return parts?.length > 0 && h("ul", { className: "parts" }, parts.map(({ holds, text, parts }) =>
    h("li", { "data-holds": String(holds) },
      h("span", { className: "visually-hidden" }, holds ? "Yes: " : "No: "), h("span", {}, text), partList(parts))))
}

/** The card with the rules of a context. */
export class Rules {
  element
  #app
  #contextId
  #list = h("div", { className: "rules" })

  constructor(app) {
    this.#app = app
    this.element = h("details", { className: "card", ontoggle: () => this.#load() }, h("summary", {}, h("h2", {}, "Rules")), this.#list)
  }

  /** Sets the context. @param contextId of a context that this gateway routes; undefined hides the card */
  take(contextId) {
    setHidden(this.element, contextId === undefined)
    if (contextId === this.#contextId) return
    this.#contextId = contextId
    this.#load()
  }

  async #load() {
    const contextId = this.#contextId
    if (!this.element.open || !contextId) return
    try {
      const { json } = await this.#app.rest(`v1/routing/contexts/${encodeURIComponent(contextId)}/rules`)
      if (contextId !== this.#contextId) return
      const items = json.rules.map(({ name, valueType, condition }) => h("li", {},
        h("h3", {}, name), h("p", { className: "muted" }, valueType ? `for ${valueType}` : "for value types that no other rule names"),
        h("pre", { className: "json" }, prettyJSON(condition, { maximum: maximumShown }))))
      const none = h("p", { className: "muted" }, "There is no rule: nothing is associated.")
      replace(this.#list, items.length > 0 ? h("ol", {}, items) : none)
    } catch (error) {
      replace(this.#list, h("p", { className: "notice", "data-kind": "bad" }, error.detail ?? error.message))
    }
  }
}
