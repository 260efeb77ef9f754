// The agents and the objects that are alive, as they come and go.

import { AliveObjects, maximumObjects } from "./alive-objects.js"
import { ago, count, frames, h, line, plural, setCovering, setHidden, setText } from "./dom.js"
import { ObjectDetail, shown } from "./object-detail.js"
import { forever } from "./observe.js"
import { RowList } from "./row-list.js"

const drawsPerSecond = 4
const rowsPerPage = 100
/** Of a row: name, type, owner, what became of it, when; of an agent's: name, id, how many objects it has, and the same. */
const cells = ["clip name", "clip muted", "clip", "clip change", "num muted when"]
const collator = new Intl.Collator()

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
  /** What is shown, in its order, and of which version of the objects that is. */
  #entries = []
  #drawn = -1
  /** How many objects each agent has. */
  #owned = new Map()
  #counts = { agents: 0, objects: 0, inSection: 0 }
  #opened
  #rows = rowsPerPage
  #isShown = false
  #drawing = frames(() => this.#draw(), drawsPerSecond)
  #ui
  #list
  #detail

  constructor(root, app) {
    this.#app = app
    this.#ui = build(root, {
      choose: (section) => this.#choose(section), find: () => this.#startOver(), more: () => this.#more(), close: () => this.#close(),
    })
    this.#list = new RowList(this.#ui.rows, cells, (entry) => this.#open(entry.id), (entry) => this.#row(entry))
    this.#detail = new ObjectDetail(this.#ui.detail, { names: app.names, open: (id) => this.#open(id), close: () => this.#close() })
    app.names.addEventListener("change", () => this.#request())
    setInterval(() => {
      this.#objects.forget(Date.now())
      this.#request()
    }, 1000)
    this.#objects.follow(app.client, forever, () => this.#request(), (error) => {
      setText(this.#ui.problem, error ? error.detail ?? error.message : "")
      setHidden(this.#ui.problem, !error)
    })
  }

  show() {
    this.#isShown = true
    if (this.#opened !== undefined) setCovering(this.#ui.detail, true)
    this.#request()
  }

  hide() {
    this.#isShown = false
    if (this.#opened !== undefined) setCovering(this.#ui.detail, false)
    this.#drawing.stop()
  }

  #request() {
    if (this.#isShown) this.#drawing.request()
  }

  #choose(section) {
    this.#section = section
    this.#startOver()
  }

  #startOver() {
    this.#rows = rowsPerPage
    this.#entries = []
    this.#drawn = -1
    this.#request()
  }

  #more() {
    this.#rows += rowsPerPage
    this.#request()
  }

  // MARK: - One object

  #open(id) {
    const entry = this.#objects.entries.get(id)
    if (entry === undefined) return
    this.#opened = id
    setHidden(this.#ui.detail, false)
    this.#ui.split.classList.add("open")
    setCovering(this.#ui.detail, true)
    this.#detail.begin(entry, this.#ownedBy(entry))
    this.#request()
  }

  #close() {
    const entry = this.#objects.entries.get(this.#opened)
    this.#opened = undefined
    setCovering(this.#ui.detail, false)
    setHidden(this.#ui.detail, true)
    this.#ui.split.classList.remove("open")
    if (entry === undefined || !this.#list.focus(({ id }) => id === entry.id)) this.#ui.find.focus()
    this.#request()
  }

  #ownedBy({ id }) {
    if (!this.#owned.has(id)) return []
    return [...this.#objects.entries.values()].filter((entry) => entry.owner === id && !isAgent(entry) && entry.state !== "gone")
  }

  // MARK: - Drawing

  #draw() {
    const ui = this.#ui
    if (this.#drawn !== this.#objects.version) this.#arrange()
    const { agents, objects, inSection } = this.#counts
    setText(ui.agents, `Agents ${count(agents)}`)
    setText(ui.objects, `Objects ${count(objects)}`)
    ui.agents.setAttribute("aria-pressed", String(this.#section === "agents"))
    ui.objects.setAttribute("aria-pressed", String(this.#section === "objects"))
    const entries = this.#entries
    const opened = this.#objects.entries.get(this.#opened)
    this.#list.draw(entries.slice(0, this.#rows), opened)
    setHidden(ui.pane, entries.length === 0)
    setHidden(ui.empty, entries.length > 0)
    if (entries.length === 0) this.#showEmpty(inSection > 0)
    setHidden(ui.more, entries.length <= this.#rows)
    setText(ui.footer, `${count(Math.min(entries.length, this.#rows))} of ${plural(entries.length, this.#section === "agents" ? "agent" : "object")}`
      + (this.#objects.isCut ? `. There are more: the page keeps ${count(maximumObjects)}.` : ""))
    if (opened !== undefined) this.#detail.show(opened, this.#ownedBy(opened))
  }

  /** Finds out what is to be shown, and in which order. */
  #arrange() {
    this.#drawn = this.#objects.version
    this.#owned = new Map()
    this.#counts = { agents: 0, objects: 0, inSection: 0 }
    const entries = []
    const isFound = this.#search()
    for (const entry of this.#objects.entries.values()) {
      const section = isAgent(entry) ? "agents" : "objects"
      if (entry.state !== "gone") {
        this.#counts[section] += 1
        if (section === "objects") this.#owned.set(entry.owner, (this.#owned.get(entry.owner) ?? 0) + 1)
      }
      if (section !== this.#section) continue
      this.#counts.inSection += 1
      if (isFound(entry)) entries.push(entry)
    }
    this.#entries = this.#ordered(entries)
  }

  #search() {
    const text = this.#ui.find.value.trim().toLowerCase()
    if (text === "") return () => true
    return ({ id, name, object, owner }) =>
      [id, name, line(object.objectType), line(object.coreType), this.#app.names.of(owner)].some((part) => part.toLowerCase().includes(text))
  }

  /** In the order that is chosen; while somebody is in the list, it stays as it is, and what is new comes last. */
  #ordered(entries) {
    const isHeld = this.#opened !== undefined || this.#ui.rows.querySelector(":focus-visible") !== null
    if (isHeld && this.#entries.length > 0) {
      const rest = new Map(entries.map((entry) => [entry.id, entry]))
      const ordered = this.#entries.flatMap(({ id }) => rest.get(id) ?? [])
      for (const { id } of ordered) rest.delete(id)
      return [...ordered, ...rest.values()]
    }
    const byName = (one, other) => collator.compare(one.name, other.name)
    return entries.sort(this.#ui.order.value === "name" ? byName : (one, other) => other.changed - one.changed || byName(one, other))
  }

  #row(entry) {
    const { id, name, object, owner, state, changes, changed } = entry
    const change = state === "gone" ? "gone"
      : changes.length === 0 ? (state === "added" ? "came" : "changed")
      : line(changes.map(({ property, before, after }) => `${line(property, 60)}: ${shown(before)} → ${shown(after)}`).join(", "))
    const about = isAgent(entry) ? [line(id), plural(this.#owned.get(id) ?? 0, "object")] : [line(object.objectType, 100), this.#app.names.of(owner)]
    return { cells: [name, ...about, change, ago(changed)], isDimmed: state === "gone" }
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

// MARK: - Elements

function build(root, on) {
  const section = (name) => h("button", { type: "button", onclick: () => on.choose(name) })
  const agents = section("agents")
  const objects = section("objects")
  const find = h("input", { type: "search", "aria-label": "Find", placeholder: "Find by name, type, id, agent …", oninput: on.find })
  const order = h("select", { "aria-label": "Order", onchange: on.find },
    h("option", { value: "changed" }, "Last change"), h("option", { value: "name" }, "Name"))
  const rows = h("ol", { className: "rows alive-rows", "aria-label": "Alive" })
  const more = h("button", { className: "button quiet", type: "button", hidden: true, onclick: on.more }, "Show more")
  const footer = h("p", { className: "pane-footer num" })
  const pane = h("div", { className: "pane", hidden: true }, h("div", { className: "pane-scroll" }, rows, more), footer)
  const emptyTitle = h("h2")
  const emptyText = h("p")
  const emptyHint = h("pre", {}, "swift run hello-world")
  const empty = h("div", { className: "empty", hidden: true }, emptyTitle, emptyText, emptyHint)
  const detail = h("aside", { className: "pane detail", "aria-label": "Object", hidden: true, onkeydown: (event) => { if (event.key === "Escape") on.close() } })
  const split = h("div", { className: "split" }, h("div", { className: "alive-main" }, pane, empty), detail)
  const problem = h("p", { className: "notice", "data-kind": "bad", role: "alert", hidden: true })
  root.append(h("div", { className: "view-body alive" },
    h("div", { className: "toolbar alive-toolbar" }, h("div", { className: "segments", role: "group", "aria-label": "What" }, agents, objects), find, order),
    problem, split))
  return { agents, objects, find, order, rows, more, footer, pane, empty, emptyTitle, emptyText, emptyHint, detail, split, problem }
}
