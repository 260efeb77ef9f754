// IO routing: which source of a context feeds which actor, how values pass, and what a change would do.

import { count, frames, h, line, plural, replace, setHidden, shortId } from "./dom.js"
import { Graph } from "./graph.js"
import { layout } from "./layout.js"
import { ContextEditor } from "./routing-edit.js"
import { Coalesced, ExternalRoutes, observe, valueText, watchAssociations, watchValues } from "./routing-live.js"
import { Associations, edgesOf, graphNodes, rateText, ratesOfSources } from "./routing-model.js"
import { AssociationsTable } from "./routing-table.js"
import { Rules, Why } from "./routing-why.js"

const drawsPerSecond = 5
/** How seldom at least the gateway is asked for a context that changes all the time, in milliseconds. */
const refreshSpacing = 300
/** How many contexts can be chosen from. */
const maximumContexts = 500
const path = "v1/routing/contexts"

export const view = {
  id: "routing",
  title: "IO routing",
  mount: (root, app) => new Routing(root, app),
}

class Routing {
  #app
  #contexts = []
  /** The chosen context as the gateway has it, `{context, hosted, router, otherRouters, nodes}`. */
  #chosen
  #chosenId
  #associations = new Associations()
  #marks = null
  /** What the graph shows of the chosen context. */
  #nodes = []
  #names = new Map()
  /** The last values of the sources that are drawn, `{data, time}`, and which of them are not shown yet. */
  #values = new Map()
  #fresh = new Set()
  #drawnSources = new Set()
  #isShown = false
  /** How often the context was saved here. */
  #saves = 0
  /** Ends what is observed while the view is shown, and what is observed of the chosen context. */
  #shown = new AbortController()
  #following = new AbortController()
  #lists = new Coalesced(() => this.#loadList(), refreshSpacing)
  #refreshes = new Coalesced(() => this.#load(), refreshSpacing)
  #drawing = frames(() => this.#draw(), drawsPerSecond)
  #passing = frames(() => this.#showValues(), drawsPerSecond)
  #routes
  #ui
  #graph = new Graph((side, id) => this.#why.choose(side, id))
  #table = new AssociationsTable()
  #editor
  #why
  #rules

  constructor(root, app) {
    this.#app = app
    this.#routes = new ExternalRoutes(app.client, (sourceId, data) => this.#takeValue(sourceId, data))
    this.#editor = new ContextEditor(app, {
      nameOf: (id) => this.#nameOf(id),
      onWhatIf: (changes) => this.#mark("whatIf", changes),
      onSaved: () => {
        this.#saves += 1
        this.#refreshes.request()
      },
      onLoad: () => this.#load(true),
    })
    this.#why = new Why(app, {
      onChoose: () => this.#request(),
      onExplained: (explained) => this.#mark("explained", explained),
    })
    this.#rules = new Rules(app)
    this.#ui = this.#build(root)
    new ResizeObserver(() => this.#request()).observe(this.#ui.canvas)
    app.names.addEventListener("change", () => this.#request())
    app.client.addEventListener("statechange", () => {
      if (this.#isShown && app.client.state === "online") this.#lists.request()
    })
  }

  show() {
    this.#isShown = true
    this.#shown = new AbortController()
    const { client } = this.#app
    const { signal } = this.#shown
    const fail = (error) => this.#say("warn", error.detail ?? error.message)
    const list = () => this.#lists.request()
    const context = () => this.#refreshes.request()
    const what = { event: "advertise", snapshot: true }
    observe(client, { ...what, coreType: "IoContext", fields: ["name"] }, signal, list, fail)
    observe(client, { ...what, coreType: "IoNode", fields: ["name"] }, signal, context, fail)
    observe(client, { event: "update", coreType: "IoContext" }, signal, context, fail)
    const take = (sourceId, data) => this.#takeValue(sourceId, data)
    watchValues(client, signal, take, (error) => this.#say("warn", `Values are not shown: ${error.detail ?? error.message}`))
    this.#loadList()
    if (this.#chosenId) this.#follow()
  }

  hide() {
    this.#isShown = false
    this.#shown.abort()
    this.#following.abort()
    this.#routes.follow([])
    for (const work of [this.#lists, this.#refreshes, this.#drawing, this.#passing]) work.stop()
  }

  #build(root) {
    const select = h("select", { id: "routing-context", onchange: () => this.#choose(select.value) })
    const facts = h("p", { className: "routing-facts" })
    const notice = h("p", { className: "notice", role: "status", hidden: true })
    const other = h("p", { className: "notice", "data-kind": "warn", hidden: true })
    const canvas = h("div", { className: "canvas" })
    const legend = h("ul", { className: "legend", "aria-hidden": "true" })
    const rest = h("p", { className: "muted" })
    const graph = h("section", { className: "card graph-card", "aria-label": "Graph" }, canvas, legend, rest)
    const elsewhere = h("p", { className: "notice" })
    const side = h("div", { className: "routing-side" }, elsewhere, this.#editor.element, this.#rules.element)
    const grid = h("div", { className: "routing-grid" }, graph, this.#why.element, side, this.#table.element)
    const bar = h("div", { className: "routing-bar" },
      h("div", { className: "field" }, h("label", { for: select.id }, "Context"), select), facts)
    const empty = h("div", { hidden: true })
    const body = h("div", { className: "view-body form" }, notice, bar, other, grid, empty)
    root.append(body)
    setHidden(bar, true)
    setHidden(grid, true)
    return { select, facts, notice, other, canvas, legend, rest, elsewhere, bar, grid, empty }
  }

  // MARK: - Contexts

  async #loadList() {
    let answer
    try {
      answer = await this.#app.rest(path)
    } catch (error) {
      return this.#say("bad", error.detail ?? error.message)
    }
    if (!this.#isShown) return
    this.#say()
    this.#contexts = answer.json.contexts.slice(0, maximumContexts)
    this.#showContexts()
    const ids = this.#contexts.map(({ context }) => context.objectId)
    if (ids.includes(this.#chosenId)) this.#refreshes.request()
    else this.#choose(ids[0])
  }

  #showContexts() {
    const isNone = this.#contexts.length === 0
    setHidden(this.#ui.bar, isNone)
    setHidden(this.#ui.grid, isNone)
    setHidden(this.#ui.empty, !isNone)
    if (isNone) return replace(this.#ui.empty, noContext())
    const names = this.#contexts.map(({ context }) => context.name)
    const option = ({ context: { objectId, name } }, index) => {
      const isAlone = names.indexOf(name) === index && names.lastIndexOf(name) === index
      return h("option", { value: objectId }, isAlone ? line(name) : `${line(name)} (${shortId(objectId)})`)
    }
    const options = this.#contexts.map((entry, index) => ({ entry, element: option(entry, index) }))
    const group = (label, isHosted) => {
      const own = options.filter(({ entry }) => entry.hosted === isHosted).map(({ element }) => element)
      return own.length > 0 && h("optgroup", { label }, own)
    }
    replace(this.#ui.select, group("Routed by this gateway", true), group("Routed by others", false))
    this.#ui.select.value = this.#chosenId
  }

  #choose(id) {
    this.#following.abort()
    this.#chosenId = id
    this.#chosen = undefined
    this.#associations.clear()
    this.#values.clear()
    this.#fresh.clear()
    this.#marks = null
    if (!id) return
    this.#ui.select.value = id
    this.#follow()
    this.#load()
  }

  #follow() {
    this.#following = new AbortController()
    // Who changes associations may have changed the context.
    const changed = () => {
      const { explained } = this.#marks ?? {}
      const isOther = explained && explained.isAssociated !== this.#associations.has(explained.sourceId, explained.actorId)
      if (isOther) this.#why.forget()
      this.#request()
      this.#refreshes.request()
    }
    watchAssociations(this.#app.client, this.#chosenId, this.#following.signal, this.#associations, changed, (error) => {
      if (error.status === 404) this.#lists.request()
      else this.#say("warn", error.detail ?? error.message)
    })
  }

  /** @param isForced whether to drop what was edited */
  async #load(isForced = false) {
    const id = this.#chosenId
    const saves = this.#saves
    if (!id) return
    let answer
    try {
      answer = await this.#app.rest(`${path}/${encodeURIComponent(id)}`)
    } catch (error) {
      if (error.status === 404) return this.#lists.request()
      return this.#say("bad", error.detail ?? error.message)
    }
    if (id !== this.#chosenId || !this.#isShown) return
    // What was saved meanwhile is newer than this.
    if (saves !== this.#saves) return this.#refreshes.request()
    this.#chosen = answer.json
    this.#editor.take(answer.json.context, answer.headers.get("etag"), answer.json.hosted, isForced)
    this.#rules.take(answer.json.hosted ? id : undefined)
    setHidden(this.#why.element, !answer.json.hosted)
    this.#request()
  }

  #say(kind, text = "") {
    this.#ui.notice.dataset.kind = kind ?? ""
    replace(this.#ui.notice, text)
    setHidden(this.#ui.notice, text === "")
  }

  // MARK: - Drawing

  #request() {
    if (this.#isShown && this.#chosen) this.#drawing.request()
  }

  /** Marks the edges by what was told last, of "What if" or of "Why?". @param told null where that no longer holds */
  #mark(kind, told) {
    if (!told && !this.#marks?.[kind]) return
    if (kind === "whatIf") this.#why.clear()
    this.#marks = told && { [kind]: told }
    this.#request()
  }

  #nameOf(id) {
    return this.#names.get(id) ?? this.#app.names.of(id)
  }

  #draw() {
    if (!this.#chosen) return
    const edges = edgesOf(this.#associations, this.#marks)
    this.#nodes = graphNodes(this.#chosen.nodes, edges, (id) => line(this.#app.names.of(id)))
    this.#names = new Map(this.#nodes.flatMap(({ sources, actors }) => [...sources, ...actors]).map(({ id, name }) => [id, line(name)]))
    this.#why.take(this.#chosenId, this.#nodes)
    this.#drawFacts()
    const hasPoints = this.#names.size > 0
    const { canvas, rest } = this.#ui
    if (!hasPoints) {
      this.#table.draw([])
      replace(canvas, noNodes(this.#chosen.context.name))
      replace(rest)
      return this.#drawLegend()
    }
    if (this.#graph.element.parentNode !== canvas) replace(canvas, this.#graph.element)
    const { chosen } = this.#why
    const { sourceId, actorId } = this.#marks?.explained ?? {}
    const wanted = new Set([chosen.sourceId, chosen.actorId, sourceId, actorId])
    const plan = layout({ nodes: this.#nodes, edges, width: canvas.clientWidth, measure: this.#graph.measure, wanted })
    const rates = new Map([...ratesOfSources(plan.edges)].map(([id, rate]) => [id, rate === null ? "" : rateText(rate)]))
    this.#graph.draw(plan, chosen, rates, this.#description())
    this.#table.draw(plan.edges, (id) => this.#nameOf(id))
    this.#drawLegend()
    replace(rest, this.#restText(plan))
    const sources = plan.points.filter(({ side }) => side === "sources")
    this.#drawnSources = new Set(sources.map(({ id }) => id))
    for (const id of this.#values.keys()) if (!this.#drawnSources.has(id)) this.#values.delete(id)
    this.#routes.follow(this.#nodes.flatMap((node) => node.sources).filter(({ id }) => this.#drawnSources.has(id)))
    const texts = this.#texts(this.#values.keys())
    this.#graph.show(new Map([...texts].map(([id, { text }]) => [id, text])))
    this.#table.show(texts)
  }

  #description() {
    const parts = ["sources", "actors"].map((side) => this.#nodes.reduce((sum, node) => sum + node[side].length, 0))
    return `${plural(parts[0], "source")} and ${plural(parts[1], "actor")} with ${plural(this.#associations.size, "association")}, which the table tells`
  }

  #drawFacts() {
    const { hosted, router, otherRouters, context } = this.#chosen
    const who = hosted ? "Routed by this gateway" : router ? `Routed by ${line(this.#app.names.of(router))}` : "Its router is not known"
    replace(this.#ui.facts,
      h("span", { className: "tag", "data-kind": hosted ? "ok" : undefined }, who),
      h("span", { className: "tag" }, plural(this.#chosen.nodes.length, "node")),
      h("span", { className: "tag" }, plural(this.#associations.size, "association")))
    const others = otherRouters.map((id) => line(this.#app.names.of(id))).slice(0, 5).join(", ")
    replace(this.#ui.other, `Others route this context, too: ${others}. Two routers undo what each other does.`)
    setHidden(this.#ui.other, others === "")
    replace(this.#ui.elsewhere, `The rules of “${line(context.name)}” are its router's own: “What if” and “Why?” are for contexts that this gateway routes. To save sends an Update event to the router.`)
    setHidden(this.#ui.elsewhere, hosted)
  }

  #drawLegend() {
    const { whatIf, explained } = this.#marks ?? {}
    const items = [
      whatIf?.added.length > 0 && ["added", "would be added"],
      whatIf?.removed.length > 0 && ["removed", "would be removed"],
      explained && ["explained", explained.isAssociated ? "associated" : "not associated"],
    ].filter(Boolean)
    const isReal = explained?.isAssociated ? "" : undefined
    replace(this.#ui.legend, items.map(([mark, text]) =>
      h("li", {}, h("span", { className: "sample", "data-sample": mark, "data-real": isReal }), text)))
    setHidden(this.#ui.legend, items.length === 0)
  }

  #restText({ hidden, edges }) {
    const all = [
      hidden.edges > 0 && plural(hidden.edges, "association"),
      hidden.sources > 0 && plural(hidden.sources, "source"),
      hidden.actors > 0 && plural(hidden.actors, "actor"),
    ].filter(Boolean)
    if (all.length > 0) return `Not drawn: ${all.join(", ")}.`
    if (edges.length > 0 || !this.#chosen.hosted) return ""
    return "Nothing is associated. Choose a source and an actor, and ask “Why?”."
  }

  // MARK: - Values

  #takeValue(sourceId, data) {
    if (!this.#drawnSources.has(sourceId)) return
    this.#values.set(sourceId, { data, time: Date.now() })
    this.#fresh.add(sourceId)
    this.#passing.request()
  }

  #showValues() {
    const texts = this.#texts(this.#fresh)
    this.#graph.show(new Map([...texts].map(([id, { text }]) => [id, text])))
    this.#graph.pulse(this.#fresh)
    this.#table.show(texts)
    this.#fresh.clear()
  }

  #texts(sourceIds) {
    const texts = new Map()
    for (const id of sourceIds) {
      const value = this.#values.get(id)
      if (value) texts.set(id, { text: line(valueText(value.data)), time: value.time })
    }
    return texts
  }
}

function noContext() {
  const yaml = `namespace: com.example
routing:
  contexts:
    - context:
        coreType: IoContext
        objectType: com.example.IoContext
        objectId: ${crypto.randomUUID?.() ?? "b61740a6-95d7-4d1a-8be5-53f3aa1e0b79"}
        name: MyContext
      rules:
        - name: All sources feed all actors of their value type
          condition: { and: [] }`
  return h("div", { className: "empty" },
    h("h2", {}, "There is no IO context"),
    h("p", {}, "A context shows here when an IO router advertises it. To have this gateway route one, put it into its configuration file:"),
    h("pre", {}, yaml),
    h("p", {}, "Or see the example of four processes: ", h("code", {}, "make demo-routing")))
}

function noNodes(name) {
  return h("div", { className: "empty" },
    h("h2", {}, "No sources and no actors yet"),
    h("p", {}, `They show here when an agent joins that has an IO node named “${line(name)}”, or with `, h("code", {}, "POST /v1/io/nodes"), "."))
}
