// The elements of the routing view, and its texts around the graph.

import { copyButton, h, line, plural, replace, setHidden, shortId } from "./dom.js"

export class RoutingPage {
  /** The element that contains the graph. */
  canvas = h("div", { className: "canvas" })
  #listed = ""
  #select
  #bar
  #grid
  #facts = h("p", { className: "routing-facts" })
  #notices = h("div", { className: "notices", role: "status", hidden: true })
  /** Notices by subject. */
  #shown = new Map()
  #others = h("p", { className: "notice", "data-kind": "warn", hidden: true })
  #elsewhere = h("p", { className: "notice", hidden: true })
  #legend = h("ul", { className: "legend", "aria-hidden": "true" })
  #rest = h("p", { className: "muted" })
  #empty = h("div", { hidden: true })

  /**
   * @param beside the cards next to the graph; like `source` (in the graph's card) and `table` (below it), each has an `element`
   * @param onChoose called with the id of a context
   */
  constructor(root, beside, source, table, onChoose) {
    this.#select = h("select", { id: "routing-context", onchange: () => onChoose(this.#select.value) })
    const field = h("div", { className: "field" }, h("label", { for: this.#select.id }, "Context"), this.#select)
    this.#bar = h("div", { className: "routing-bar", hidden: true }, field, this.#facts)
    const graph = h("section", { className: "card graph-card", "aria-label": "Graph" }, this.canvas, this.#legend, this.#rest, source.element)
    const side = h("div", { className: "routing-side" }, this.#elsewhere, beside.map(({ element }) => element))
    this.#grid = h("div", { className: "routing-grid", hidden: true }, graph, side, table.element)
    root.append(h("div", { className: "view-body form" }, this.#notices, this.#bar, this.#others, this.#grid, this.#empty))
  }

  /** Lists the contexts to choose from. @param contexts `[{context, hosted}]` */
  list(contexts) {
    const isNone = contexts.length === 0
    setHidden(this.#bar, isNone)
    setHidden(this.#grid, isNone)
    setHidden(this.#empty, !isNone)
    // An unchanged list is not replaced: the user may have it open.
    const listed = JSON.stringify(contexts.map(({ context: { objectId, name }, hosted }) => [objectId, name, hosted]))
    if (listed === this.#listed) return
    this.#listed = listed
    if (isNone) return replace(this.#empty, noContext())
    const names = contexts.map(({ context }) => context.name)
    const group = (label, isHosted) => {
      const options = contexts.filter(({ hosted }) => hosted === isHosted).map(({ context: { objectId, name } }) => {
        const isAlone = names.indexOf(name) === names.lastIndexOf(name)
        return h("option", { value: objectId }, isAlone ? line(name) : `${line(name)} (${shortId(objectId)})`)
      })
      return options.length > 0 && h("optgroup", { label }, options)
    }
    const value = this.#select.value
    replace(this.#select, group("Routed by this gateway", true), group("Routed by others", false))
    this.#select.value = value
  }

  choose(contextId) {
    this.#select.value = contextId
  }

  /** Shows a notice; it replaces the one about the same subject. An empty text removes it. @param kind `info`, `warn` or `bad` */
  say(about, kind, text = "") {
    if (text === (this.#shown.get(about)?.textContent ?? "")) return
    this.#shown.get(about)?.remove()
    this.#shown.delete(about)
    if (text !== "") {
      const notice = h("p", { className: "notice", "data-kind": kind }, text)
      this.#shown.set(about, notice)
      this.#notices.append(notice)
    }
    setHidden(this.#notices, this.#shown.size === 0)
  }

  /** Shows the router of a context, and its numbers of nodes and associations. @param agentName `(agentId) => name` */
  describe({ hosted, router, otherRouters, context, nodes }, associationCount, agentName) {
    const who = hosted ? "Routed by this gateway" : router ? `Routed by ${agentName(router)}` : "Router unknown"
    replace(this.#facts,
      h("span", { className: "tag", "data-kind": hosted ? "ok" : undefined }, who),
      h("span", { className: "tag" }, plural(nodes.length, "node")),
      h("span", { className: "tag" }, plural(associationCount, "association")))
    const others = otherRouters.slice(0, 5).map(agentName).join(", ")
    replace(this.#others, `Others also route this context: ${others}. Routers of the same context undo each other's changes.`)
    setHidden(this.#others, others === "")
    replace(this.#elsewhere,
      `The rules of “${line(context.name)}” belong to its router: “What if” and “Why?” are for contexts that this gateway `,
      "routes. Changes that you save here are sent to that router as an Update event.")
    setHidden(this.#elsewhere, hosted)
  }

  /** Explains the marks in the graph. */
  explain(marks) {
    const { whatIf, explained } = marks ?? {}
    const items = [
      whatIf?.added.length > 0 && ["added", "would be added"],
      whatIf?.removed.length > 0 && ["removed", "would be removed"],
      explained && ["explained", explained.isAssociated ? "associated" : "not associated"],
    ].filter(Boolean)
    const isReal = explained?.isAssociated ? "" : undefined
    replace(this.#legend, items.map(([mark, text]) =>
      h("li", {}, h("span", { className: "sample", "data-sample": mark, "data-real": isReal }), text)))
    setHidden(this.#legend, items.length === 0)
  }

  /** Shows how much of a plan is not drawn, or that there are no edges. */
  rest({ hidden, edges }, isHosted) {
    const all = [
      hidden.edges > 0 && plural(hidden.edges, "association"),
      hidden.sources > 0 && plural(hidden.sources, "source"),
      hidden.actors > 0 && plural(hidden.actors, "actor"),
    ].filter(Boolean)
    if (all.length > 0) return replace(this.#rest, `Not drawn: ${all.join(", ")}.`)
    const hint = isHosted ? "Nothing is associated. Choose a source and an actor, and ask “Why?”." : "Nothing is associated."
    replace(this.#rest, edges.length === 0 && hint)
  }

  /** Shows a placeholder instead of the graph: the context has no sources and no actors. */
  showNoNodes(context) {
    replace(this.#rest)
    replace(this.canvas, noNodes(context.name))
  }
}

function noContext() {
  const yaml = `routing:
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
    h("p", {},
      "A context shows here when an IO router advertises it. To have this gateway route one, put this into its configuration ",
      "file, and start it again:"),
    h("pre", {}, yaml), copyButton(() => yaml),
    h("p", {}, "Or see the example of four processes: ", h("code", {}, "make demo-routing")))
}

function noNodes(name) {
  return h("div", { className: "empty" },
    h("h2", {}, "No sources and no actors yet"),
    h("p", {},
      `They show here when an agent joins that has an IO node named “${line(name)}”, or with `,
      h("code", {}, "POST /v1/io/nodes"), "."))
}
