// The agents and the objects that are alive, as they come and go.

import { AliveObjects, maximumObjects } from "./alive-objects.js"
import { ago, clock, copyButton, count, frames, h, jsonText, line, plural, replace, setHidden, setText } from "./dom.js"
import { RowList } from "./row-list.js"
import { value } from "./summary.js"

const drawsPerSecond = 4
const gatewayBuffer = 4096
const rowsPerPage = 100
const maximumListed = 20
/** Milliseconds until the objects are asked for again where changes came too fast. */
const pauseAfterLoss = 2000
/** Of a row: name, type, owner, what became of it, when; of an agent's: name, id, how many objects it has, and the same. */
const cells = ["clip name", "clip muted", "clip", "clip change", "num muted when"]

export const view = {
  id: "alive",
  title: "Agents & objects",
  mount: (root, app) => new Alive(root, app),
}

class Alive {
  #app
  #objects = new AliveObjects()
  /** `agents` or `objects`. */
  #section = "agents"
  #order = []
  /** How many objects each agent has. */
  #owned = new Map()
  #opened
  #rows = rowsPerPage
  #isShown = false
  #drawing = frames(() => this.#draw(), drawsPerSecond)
  #ui
  #list

  constructor(root, app) {
    this.#app = app
    this.#ui = build(this, root)
    this.#list = new RowList(this.#ui.rows, cells, (entry) => this.#open(entry.id), (entry) => this.#row(entry))
    app.names.addEventListener("change", () => this.#request())
    setInterval(() => {
      this.#objects.forget(Date.now())
      this.#request()
    }, 1000)
    this.#follow()
  }

  show() {
    this.#isShown = true
    this.#request()
  }

  hide() {
    this.#isShown = false
    this.#drawing.stop()
  }

  #request() {
    if (this.#isShown) this.#drawing.request()
  }

  async #follow() {
    try {
      for await (const frame of this.#app.client.subscribe({ event: "advertise", snapshot: true, buffer: gatewayBuffer })) {
        if (frame.op === "gap") {
          // Behind a gap without a cursor the snapshot comes anew. Where changes were lost, it has to.
          if (frame.cursor === undefined) this.#objects.clear()
          if (frame.lost !== null) break
        }
        this.#objects.take(frame, Date.now())
        this.#request()
      }
      setTimeout(() => this.#follow(), pauseAfterLoss)
    } catch (error) {
      setText(this.#ui.problem, error.detail ?? error.message)
      setHidden(this.#ui.problem, false)
    }
  }

  choose(section) {
    this.#section = section
    this.find()
  }

  find() {
    this.#rows = rowsPerPage
    this.#order = []
    this.#request()
  }

  more() {
    this.#rows += rowsPerPage
    this.#request()
  }

  // MARK: - One object

  #open(id) {
    this.#opened = id
    setHidden(this.#ui.detail, false)
    this.#ui.split.classList.add("open")
    this.#drawDetail()
    this.#ui.detail.scrollTop = 0
    this.#ui.detail.querySelector("h2")?.focus({ preventScroll: true })
    this.#request()
  }

  close() {
    const entry = this.#objects.entries.get(this.#opened)
    this.#opened = undefined
    setHidden(this.#ui.detail, true)
    this.#ui.split.classList.remove("open")
    if (entry) this.#list.focus(entry)
    this.#request()
  }

  #drawDetail() {
    const entry = this.#objects.entries.get(this.#opened)
    const { detail } = this.#ui
    if (entry === detail.entry && entry !== undefined) return setText(detail.changed, changedText(entry))
    detail.entry = entry
    if (entry === undefined) return
    const { object } = entry
    const hadFocus = detail.contains(document.activeElement)
    const scroll = detail.scrollTop
    const owned = [...this.#objects.entries.values()].filter((other) => other.owner === object.objectId && other.id !== object.objectId)
    detail.changed = h("dd", { className: "num" }, changedText(entry))
    replace(
      detail,
      h("div", { className: "detail-header" }, h("h2", { tabIndex: -1 }, nameOf(object)),
        h("button", { className: "button quiet", type: "button", onclick: () => this.close() }, "Close")),
      h("dl", { className: "facts" },
        fact("Type", h("span", {}, line(String(object.objectType)), h("br"), h("span", { className: "muted" }, line(String(object.coreType))))),
        fact("Object id", h("span", { className: "mono" }, line(object.objectId))),
        fact("Advertised by", this.#app.names.of(entry.owner)),
        fact("Alive since", h("span", { className: "num" }, when(entry.since))),
        h("dt", {}, entry.state === "gone" ? "Gone" : "Last change"), detail.changed),
      entry.changes.length > 0 && h("div", {}, h("h3", {}, "What changed last"), h("table", { className: "table property-changes" },
        h("thead", {}, h("tr", {}, ["Property", "Before", "Now"].map((text) => h("th", { scope: "col" }, text)))),
        h("tbody", {}, entry.changes.map(({ property, before, after }) =>
          h("tr", {}, h("td", {}, line(property, 60)), h("td", { className: "mono muted" }, shown(before)), h("td", { className: "mono" }, shown(after))))))),
      owned.length > 0 && h("div", {}, h("h3", {}, `Its ${plural(owned.length, "object")}`), h("ul", { className: "rows owned" },
        owned.slice(0, maximumListed).map((other) => h("li", {}, h("button", { className: "row", type: "button", onclick: () => this.#open(other.id) },
          h("span", { className: "clip" }, nameOf(other.object)), h("span", { className: "clip muted" }, line(String(other.object.objectType))))))),
        owned.length > maximumListed && h("p", { className: "muted" }, `and ${count(owned.length - maximumListed)} more`)),
      h("div", {}, h("div", { className: "detail-header" }, h("h3", {}, "Object"), copyButton(() => JSON.stringify(object, null, 2), "Copy object")),
        h("pre", { className: "json", tabIndex: 0, "aria-label": "Object" }, jsonText(object))),
    )
    detail.scrollTop = scroll
    if (hadFocus) detail.querySelector("h2").focus({ preventScroll: true })
  }

  // MARK: - Drawing

  #draw() {
    const ui = this.#ui
    const all = [...this.#objects.entries.values()]
    const agents = all.filter(isAgent)
    const alive = (entries) => entries.filter((entry) => entry.state !== "gone").length
    this.#owned = new Map()
    for (const { owner, state } of all.filter((entry) => !isAgent(entry))) {
      if (state !== "gone") this.#owned.set(owner, (this.#owned.get(owner) ?? 0) + 1)
    }
    const inSection = this.#section === "agents" ? agents : all.filter((entry) => !isAgent(entry))
    setText(ui.agents, `Agents ${count(alive(agents))}`)
    setText(ui.objects, `Objects ${count(alive(all) - alive(agents))}`)
    ui.agents.setAttribute("aria-pressed", String(this.#section === "agents"))
    ui.objects.setAttribute("aria-pressed", String(this.#section === "objects"))
    const found = this.#found(inSection)
    const entries = this.#ordered(found)
    this.#list.draw(entries.slice(0, this.#rows), this.#opened === undefined ? undefined : this.#objects.entries.get(this.#opened))
    setHidden(ui.pane, entries.length === 0)
    setHidden(ui.empty, entries.length > 0)
    if (entries.length === 0) this.#showEmpty(inSection.length > 0)
    setHidden(ui.more, entries.length <= this.#rows)
    setText(ui.footer, `${count(Math.min(entries.length, this.#rows))} of ${plural(entries.length, this.#section === "agents" ? "agent" : "object")}`
      + (this.#objects.isCut ? `. There are more: the page keeps ${count(maximumObjects)}.` : ""))
    if (this.#opened !== undefined) this.#drawDetail()
  }

  #found(entries) {
    const text = this.#ui.find.value.trim().toLowerCase()
    if (text === "") return entries
    return entries.filter(({ id, object, owner }) =>
      [id, object.name, object.objectType, object.coreType, this.#app.names.of(owner)].some((part) => String(part).toLowerCase().includes(text)))
  }

  /** In the order that is chosen; while somebody is in the list, it stays as it is, and what is new comes last. */
  #ordered(entries) {
    const isHeld = this.#opened !== undefined || this.#ui.rows.contains(document.activeElement)
    if (!isHeld || this.#order.length === 0) {
      const byName = (one, other) => nameOf(one.object).localeCompare(nameOf(other.object))
      const byChange = (one, other) => other.changed - one.changed || byName(one, other)
      const ordered = [...entries].sort(this.#ui.order.value === "name" ? byName : byChange)
      this.#order = ordered.map(({ id }) => id)
      return ordered
    }
    const rest = new Map(entries.map((entry) => [entry.id, entry]))
    const ordered = this.#order.flatMap((id) => rest.get(id) ?? [])
    for (const { id } of ordered) rest.delete(id)
    this.#order.push(...rest.keys())
    return [...ordered, ...rest.values()]
  }

  #row(entry) {
    const { object, owner, state, changes } = entry
    const change = state === "gone" ? "gone"
      : state === "added" ? "came"
      : changes.map(({ property, before, after }) => `${property}: ${shown(before)} → ${shown(after)}`).join(", ")
    const about = isAgent(entry)
      ? [entry.id, plural(this.#owned.get(entry.id) ?? 0, "object")]
      : [line(String(object.objectType), 100), this.#app.names.of(owner)]
    return {
      cells: [nameOf(object), ...about, line(change), ago(entry.changed)],
      isDimmed: state === "gone",
    }
  }

  #showEmpty(isNarrowed) {
    const ui = this.#ui
    setText(ui.emptyTitle, isNarrowed ? "Nothing like it is alive" : this.#section === "agents" ? "No agents yet" : "No objects yet")
    setText(ui.emptyText, isNarrowed ? "Look for a part of a name, of a type or of an id."
      : this.#section === "agents" ? "Agents come here when they join the network. Start one:"
      : "Objects come here when agents advertise them. Start an agent that does:")
    setHidden(ui.emptyHint, isNarrowed)
  }
}

const isAgent = ({ object }) => object.coreType === "Identity"
const nameOf = (object) => line(typeof object.name === "string" && object.name.trim() !== "" ? object.name : object.objectId)
const shown = (part) => (part === undefined ? "–" : line(value(part), 60))
const fact = (term, what) => [h("dt", {}, term), h("dd", {}, what)]
const changedText = (entry) => `${when(entry.changed)} · ${ago(entry.changed)}`
const isToday = (ms) => new Date(ms).toDateString() === new Date().toDateString()
const when = (ms) => (isToday(ms) ? clock(ms) : `${new Date(ms).toLocaleDateString("en-CA")} ${clock(ms)}`)

// MARK: - Elements

function build(alive, root) {
  const section = (name) => h("button", { type: "button", onclick: () => alive.choose(name) })
  const agents = section("agents")
  const objects = section("objects")
  const find = h("input", { type: "search", "aria-label": "Find", placeholder: "Find by name, type, id, agent …", oninput: () => alive.find() })
  const order = h("select", { "aria-label": "Order", onchange: () => alive.find() },
    h("option", { value: "changed" }, "Last change"), h("option", { value: "name" }, "Name"))
  const rows = h("ol", { className: "rows alive-rows", "aria-label": "Alive" })
  const more = h("button", { className: "button quiet", type: "button", hidden: true, onclick: () => alive.more() }, "Show more")
  const footer = h("p", { className: "pane-footer num" })
  const pane = h("div", { className: "pane", hidden: true }, h("div", { className: "pane-scroll" }, rows, more), footer)
  const emptyTitle = h("h2")
  const emptyText = h("p")
  const emptyHint = h("pre", {}, "swift run hello-world")
  const empty = h("div", { className: "empty", hidden: true }, emptyTitle, emptyText, emptyHint)
  const detail = h("aside", { className: "pane detail", "aria-label": "Object", hidden: true, onkeydown: (event) => { if (event.key === "Escape") alive.close() } })
  const split = h("div", { className: "split" }, h("div", { className: "alive-main" }, pane, empty), detail)
  const problem = h("p", { className: "notice", "data-kind": "bad", role: "alert", hidden: true })
  root.append(h("div", { className: "view-body alive" },
    h("div", { className: "toolbar alive-toolbar" }, h("div", { className: "segments", role: "group", "aria-label": "What" }, agents, objects), find, order),
    problem, split))
  return { agents, objects, find, order, rows, more, footer, pane, empty, emptyTitle, emptyText, emptyHint, detail, split, problem }
}
