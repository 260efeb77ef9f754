// The view of IO routing: the associations of a context, the values of its sources, and the effects of a change.

import { Coalesced } from "./coalesced.js"
import { frames, plural, replace, setHidden } from "./dom.js"
import { Graph } from "./graph.js"
import { layout } from "./layout.js"
import { ContextEditor } from "./routing-edit.js"
import { observe } from "./observe.js"
import { ExternalRoutes, watchAssociations, watchValues } from "./routing-live.js"
import { Associations, edgesOf, graphNodes, rateText, ratesOfSources, unobservedText, valueText } from "./routing-model.js"
import { RoutingPage } from "./routing-page.js"
import { SourceCard, valueNumbers } from "./routing-source.js"
import { AssociationsTable } from "./routing-table.js"
import { Rules, Why } from "./routing-why.js"
import { SourceRates } from "./source-rates.js"
import { Histories } from "./value-history.js"

const drawsPerSecond = 5
/** Milliseconds before a change is loaded from the gateway. Changes within this time share one request. */
const refreshSpacing = 300
/** Maximum number of contexts in the list. */
const maximumContexts = 500
/** Milliseconds between two updates of measured rates and plots. */
const measuringInterval = 1000
const path = "v1/routing/contexts"

export const view = {
  id: "routing",
  title: "IO routing",
  isPermitted: (access) => access.may("read", "contexts"),
  mount: (root, app) => new Routing(root, app),
}

class Routing {
  #app
  /** The gateway's answer for the chosen context, `{context, hosted, router, otherRouters, nodes}`. */
  #chosen
  #chosenId
  /** The id that the user chose. The context may be missing for a while, for example when its router restarts. */
  #wantedId
  #associations = new Associations()
  #marks = null
  /** The nodes of the chosen context, of `graphNodes`. */
  #nodes = []
  #names = new Map()
  /** The last values of the drawn sources by id, `{data, time}`, and the ids whose values are not shown yet. */
  #values = new Map()
  #fresh = new Set()
  #drawnSources = new Set()
  /** The numeric values, the measured rates and the agreed rates of sources. */
  #histories = new Histories()
  #rates = new SourceRates()
  #agreed = new Map()
  #measuring
  #isShown = false
  /** Number of attempts to save a context on this page. */
  #saves = 0
  /** End the subscriptions of the view when it is hidden, and those of the chosen context. */
  #shown = new AbortController()
  #following = new AbortController()
  /** Ends the subscription of values. */
  #watching = new AbortController()
  #isFollowed = false
  /** Whether the last list contained the chosen context. Otherwise it is not requested. */
  #isListed = false
  #lists = new Coalesced(() => this.#loadList(), refreshSpacing)
  #refreshes = new Coalesced(() => this.#load(), refreshSpacing)
  #drawing = frames(() => this.#draw(), drawsPerSecond)
  #passing = frames(() => this.#showFresh(), drawsPerSecond)
  #routes
  #page
  #graph = new Graph((side, id) => this.#why.choose(side, id))
  #table = new AssociationsTable()
  #source = new SourceCard()
  #editor
  #why
  #rules

  constructor(root, app) {
    this.#app = app
    this.#routes = new ExternalRoutes(app.client, (sourceId, data) => this.#takeValue(sourceId, data), () => this.#showRoutes())
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
      onChoose: () => {
        this.#request()
        this.#write(true)
      },
      onExplained: (explained) => this.#mark("explained", explained),
      measure: (sourceId, rate) => this.#rateOf(sourceId, rate),
    })
    this.#rules = new Rules(app)
    this.#page = new RoutingPage(root, [this.#why, this.#editor, this.#rules], this.#source, this.#table, (id) => {
      this.#wantedId = id
      this.#choose(id)
      this.#write(true)
    })
    new ResizeObserver(() => this.#request()).observe(this.#page.canvas)
    app.names.addEventListener("change", () => this.#request())
    app.client.addEventListener("statechange", () => {
      this.#isListed = false
      if (!this.#isShown) return
      this.#lists.hurry()
      if (app.client.state === "online") this.#watchValues()
      else this.#unwatchValues()
    })
  }

  show() {
    this.#isShown = true
    this.#shown = new AbortController()
    const { client, access } = this.#app
    const { signal } = this.#shown
    const reportError = (about) => (error) => this.#page.say(about, "warn", error && (error.detail ?? error.message))
    const context = () => this.#refreshes.request()
    const list = ({ op, change, data }) => {
      if (op === "event" && change === "removed" && data.object.objectId === this.#chosenId) this.#isListed = false
      this.#lists.request()
    }
    const what = { event: "advertise", snapshot: true }
    if (access.may("observe", "advertise")) {
      observe(client, { ...what, coreType: "IoContext", fields: ["name"] }, signal, list, reportError("contexts"))
      observe(client, { ...what, coreType: "IoNode", fields: ["name"] }, signal, context, reportError("nodes"))
    }
    if (access.may("observe", "update")) observe(client, { event: "update", coreType: "IoContext" }, signal, context, reportError("updates"))
    this.#watchValues()
    this.#lists.hurry()
    if (this.#chosenId) this.#follow()
    this.#measuring = setInterval(() => this.#measure(), measuringInterval)
  }

  hide() {
    this.#isShown = this.#isListed = false
    this.#shown.abort()
    this.#following.abort()
    this.#unwatchValues()
    clearInterval(this.#measuring)
    for (const work of [this.#lists, this.#refreshes, this.#drawing, this.#passing]) work.stop()
  }

  // MARK: - The address

  /** Shows the parameters of an address. */
  go({ context, source = "", actor = "" }) {
    this.#why.select(source, actor)
    if (!context || context === this.#chosenId) return
    this.#wantedId = context
    this.#lists.hurry()
  }

  #write(isStep = false) {
    const { sourceId, actorId } = this.#why.chosen
    this.#app.address.write(view.id, { context: this.#chosenId ?? this.#wantedId, source: sourceId, actor: actorId }, isStep)
  }

  // MARK: - Contexts

  async #loadList() {
    // The console shows that it is disconnected, and loads everything again after the reconnect.
    if (this.#app.client.state !== "online") return
    let answer
    try {
      answer = await this.#app.rest(path)
    } catch (error) {
      return this.#fail("list", error)
    }
    if (!this.#isShown) return
    this.#page.say("list")
    const contexts = answer.json.contexts.slice(0, maximumContexts)
    this.#page.list(contexts)
    const ids = contexts.map(({ context }) => context.objectId)
    const id = [this.#wantedId, this.#chosenId].find((id) => ids.includes(id)) ?? ids[0]
    this.#isListed = id !== undefined
    if (id !== this.#chosenId) return this.#choose(id)
    if (id && !this.#isFollowed) this.#follow()
    this.#refreshes.request()
  }

  #choose(id) {
    this.#following.abort()
    this.#chosenId = id
    this.#chosen = undefined
    this.#associations.clear()
    this.#values.clear()
    this.#rates.clear()
    this.#fresh.clear()
    this.#marks = null
    for (const about of ["context", "associations", "routes"]) this.#page.say(about)
    this.#routes.follow([])
    if (!id) return
    this.#page.choose(id)
    this.#follow()
    this.#load()
  }

  async #follow() {
    this.#following = new AbortController()
    this.#isFollowed = true
    const { signal } = this.#following
    const changed = () => {
      const { explained } = this.#marks ?? {}
      const isOther = explained && explained.isAssociated !== this.#associations.has(explained.sourceId, explained.actorId)
      if (isOther) this.#why.forget()
      this.#request()
      // The associations may have changed because the context did.
      this.#refreshes.request()
    }
    const report = (error) => this.#page.say("associations", "warn", error && `Associations are not shown: ${error.detail ?? error.message}`)
    await watchAssociations(this.#app.client, this.#chosenId, signal, this.#associations, changed, report)
    if (signal.aborted) return
    // The context was removed, but may have been advertised again.
    this.#isFollowed = this.#isListed = false
    this.#lists.request()
  }

  /** Loads the chosen context. @param isForced whether to discard the edits */
  async #load(isForced = false) {
    const id = this.#chosenId
    const saves = this.#saves
    if (!id) return
    if (!this.#isListed) return this.#lists.request()
    let answer
    try {
      answer = await this.#app.rest(`${path}/${encodeURIComponent(id)}`)
    } catch (error) {
      if (id !== this.#chosenId) return
      if (error.status === 404) {
        this.#isListed = false
        return this.#lists.request()
      }
      return this.#fail("context", error)
    }
    if (id !== this.#chosenId || !this.#isShown) return
    // The answer may be older than a context that was saved in the meantime.
    if (saves !== this.#saves) return this.#refreshes.request()
    this.#page.say("context")
    this.#chosen = answer.json
    this.#editor.suggest(answer.json.nodes)
    this.#editor.take(answer.json.context, answer.headers.get("etag"), answer.json.hosted, isForced)
    this.#rules.take(answer.json.hosted ? id : undefined)
    setHidden(this.#why.element, !answer.json.hosted)
    this.#request()
  }

  #fail(about, error) {
    if (this.#app.client.state === "online") this.#page.say(about, "bad", error.detail ?? error.message)
  }

  // MARK: - Drawing

  #request() {
    if (this.#isShown && this.#chosen) this.#drawing.request()
  }

  /** Marks the edges of the latest result of "What if" or "Why?". @param mark null removes the marks */
  #mark(kind, mark) {
    if (!mark && !this.#marks?.[kind]) return
    if (kind === "whatIf") this.#why.clear()
    this.#marks = mark && { [kind]: mark }
    this.#request()
  }

  #nameOf(id) {
    return this.#names.get(id) ?? this.#app.names.of(id)
  }

  #draw() {
    if (!this.#chosen) return
    const agentName = (id) => this.#app.names.full(id)
    const { chosen } = this.#why
    const edges = edgesOf(this.#associations, this.#marks, chosen)
    this.#nodes = graphNodes(this.#chosen.nodes, edges, agentName)
    const points = this.#nodes.flatMap(({ sources, actors }) => [...sources, ...actors])
    this.#names = new Map(points.map(({ id, name }) => [id, name]))
    this.#why.take(this.#chosenId, this.#nodes, [...this.#associations.values()])
    this.#page.describe(this.#chosen, this.#associations.size, agentName)
    const { canvas } = this.#page
    if (points.length === 0) {
      this.#table.draw([])
      this.#page.showNoNodes(this.#chosen.context)
      return this.#page.explain(this.#marks)
    }
    if (this.#graph.element.parentNode !== canvas) replace(canvas, this.#graph.element)
    const { sourceId, actorId } = this.#marks?.explained ?? {}
    const wanted = new Set([chosen.sourceId, chosen.actorId, sourceId, actorId])
    const plan = layout({ nodes: this.#nodes, edges, width: canvas.clientWidth, measure: this.#graph.measure, wanted })
    this.#agreed = ratesOfSources(plan.edges)
    const rates = new Map([...this.#agreed].map(([id, rate]) => [id, rate === null ? "" : rateText(rate)]))
    this.#graph.draw(plan, chosen, rates, this.#description())
    this.#table.draw(plan.edges, (id) => this.#nameOf(id))
    this.#page.explain(this.#marks)
    this.#page.rest(plan, this.#chosen.hosted)
    const sources = plan.points.filter(({ side }) => side === "sources")
    this.#drawnSources = new Set(sources.map(({ id }) => id))
    for (const id of this.#values.keys()) if (!this.#drawnSources.has(id)) this.#values.delete(id)
    const mayRaw = this.#app.access.may("observe", "raw") && this.#app.client.state === "online"
    this.#routes.follow(mayRaw ? this.#nodes.flatMap((node) => node.sources).filter(({ id }) => this.#drawnSources.has(id)) : [])
    this.#showRoutes()
    this.#showValues(this.#values.keys())
    this.#measure()
  }

  #showRoutes() {
    this.#page.say("routes", "warn", unobservedText(this.#routes.unobserved))
  }

  #description() {
    const [sources, actors] = ["sources", "actors"].map((side) => this.#nodes.reduce((sum, node) => sum + node[side].length, 0))
    const associations = plural(this.#associations.size, "association")
    return `${plural(sources, "source")} and ${plural(actors, "actor")} with ${associations}, listed in the table`
  }

  // MARK: - Values

  #watchValues() {
    this.#watching.abort()
    if (!this.#app.access.may("observe", "traffic")) return
    this.#watching = new AbortController()
    const report = (error) => this.#page.say("values", "warn", error && `Values are not shown: ${error.detail ?? error.message}`)
    watchValues(this.#app.client, this.#watching.signal, (sourceId, data) => this.#takeValue(sourceId, data), report)
  }

  /** Ends the subscriptions of values. After a reconnect they start again: values that a resumed one gets would count as present. */
  #unwatchValues() {
    this.#watching.abort()
    this.#routes.follow([])
    this.#histories.interrupt(Date.now())
    this.#rates.clear()
  }

  /** Returns the measured rate of a source, as of `SourceRates.of`; null while the gateway or its broker is away. */
  #rateOf(sourceId, agreed) {
    return this.#app.away.since === undefined ? this.#rates.of(sourceId, performance.now(), agreed) : null
  }

  #takeValue(sourceId, data) {
    if (!this.#drawnSources.has(sourceId)) return
    const time = Date.now()
    this.#values.set(sourceId, { data, time })
    this.#rates.take(sourceId, performance.now())
    for (const [name, number] of valueNumbers(data)) this.#histories.take(sourceId, name, time, number)
    this.#fresh.add(sourceId)
    this.#passing.request()
  }

  #showFresh() {
    this.#showValues(this.#fresh)
    this.#graph.pulse(this.#fresh)
    this.#fresh.clear()
  }

  /** Updates measured rates and plots. */
  #measure() {
    if (document.hidden) return
    const { since: until } = this.#app.away
    const measure = (id, rate) => this.#rateOf(id, rate)
    this.#table.measure(measure, (id) => this.#histories.of(id)[0]?.[1] ?? [], until)
    const { sourceId: id } = this.#why.chosen
    if (id === undefined) return this.#source.draw(undefined)
    const agreed = this.#agreed.get(id)
    const value = this.#values.get(id)
    this.#source.draw({
      id, name: this.#nameOf(id), agreed, isAssociated: this.#agreed.has(id), measured: measure(id, agreed ?? undefined),
      last: value && valueText(value.data), series: this.#histories.of(id),
    }, until)
  }

  #showValues(sourceIds) {
    const texts = new Map()
    for (const id of sourceIds) {
      const value = this.#values.get(id)
      if (value) texts.set(id, { text: valueText(value.data), time: value.time })
    }
    this.#graph.show(texts)
    this.#table.show(texts)
  }
}
