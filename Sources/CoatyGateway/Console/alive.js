// The view of the agents and objects in the network.

import { AliveObjects, isAgent, maximumObjects } from "./alive-objects.js"
import { problemContent } from "./denial.js"
import { ago, count, ends, frames, h, line, lineEnd, plural, replace, setHidden, setText } from "./dom.js"
import { hasValue } from "./find-value.js"
import { ListPane } from "./list-pane.js"
import { namespaceHint } from "./namespaces.js"
import { changesText, valuesText } from "./object-changes.js"
import { ObjectDetail } from "./object-detail.js"
import { forever } from "./observe.js"
import { SmallPlot } from "./plot.js"

const drawsPerSecond = 4
/** Milliseconds after the last keystroke until a typed text is written to the address. */
const typingTime = 400
/** The cells of a row: name, type (agents: id), owner (agents: number of objects), last change or values, chart, age of the change. */
const cells = ["clip name", { className: "ends muted", parts: [{}, {}] }, "clip", "clip change", "picture", "num muted when"]
const collator = new Intl.Collator()

export const view = {
  id: "alive",
  title: "Agents & objects",
  isPermitted: (access) => access.may("observe", "advertise"),
  mount: (root, app) => new Alive(root, app),
}

class Alive {
  #app
  #objects = new AliveObjects()
  /** `agents` or `objects`. */
  #section = "agents"
  /** The shown entries in order, and the version of the objects that they are from. */
  #entries = []
  #drawn = -1
  /** Number of objects by agent id. */
  #owned = new Map()
  #counts = { agents: 0, objects: 0, inSection: 0 }
  #opened
  /** The object id of a link, until the object is known. */
  #awaited
  #typingTimer
  #isShown = false
  /** Whether an entry's object contains the searched text, `{ text, isFound }`. */
  #found = new WeakMap()
  /** Charts of values by cell. */
  #pictures = new WeakMap()
  #drawing = frames(() => this.#draw(), drawsPerSecond)
  #ui
  #list
  #detail

  constructor(root, app) {
    this.#app = app
    this.#ui = build(root, app, {
      choose: (section) => this.#choose(section),
      find: () => this.#find(),
      order: () => {
        this.#startOver()
        this.#write(true)
      },
      open: (entry) => this.#open(entry.id),
      close: () => this.#close(),
      describe: (entry) => this.#row(entry),
      changed: () => this.#request(),
    })
    this.#list = this.#ui.list
    this.#detail = new ObjectDetail(this.#list.detail, { names: app.names, away: app.away, open: (id) => this.#open(id), close: () => this.#close() })
    app.names.addEventListener("change", () => this.#request())
    setInterval(() => {
      this.#objects.forget(Date.now())
      this.#request()
    }, 1000)
    const departed = async () => (app.access.may("read", "agents") ? (await app.rest("v1/agents?online=false")).json.agents : [])
    this.#objects.follow(app.client, departed, forever, () => this.#request(), (error) => {
      replace(this.#ui.problem, error ? problemContent(error) : [])
      setHidden(this.#ui.problem, !error)
    })
  }

  show() {
    this.#isShown = true
    this.#list.show()
    this.#request()
  }

  hide() {
    this.#isShown = false
    this.#list.hide()
    this.#drawing.stop()
  }

  #request() {
    if (this.#isShown) this.#drawing.request()
  }

  // MARK: - The address

  /** Shows the parameters of an address. */
  go({ section = "agents", find = "", order = "changed", object = "" }) {
    clearTimeout(this.#typingTimer)
    this.#section = section === "objects" ? section : "agents"
    this.#ui.find.value = find
    this.#ui.order.value = order === "name" ? order : "changed"
    this.#startOver()
    if (object === (this.#opened ?? "")) return
    this.#hideDetail()
    this.#awaited = object === "" ? undefined : object
  }

  #write(isStep = false) {
    clearTimeout(this.#typingTimer)
    const { find, order } = this.#ui
    this.#app.address.write(view.id, {
      section: this.#section === "agents" ? "" : this.#section,
      find: find.value.trim(),
      order: order.value === "changed" ? "" : order.value,
      object: this.#opened ?? this.#awaited,
    }, isStep)
  }

  #find() {
    this.#startOver()
    clearTimeout(this.#typingTimer)
    this.#typingTimer = setTimeout(() => this.#write(), typingTime)
  }

  #choose(section) {
    this.#section = section
    this.#startOver()
    this.#write(true)
  }

  #startOver() {
    this.#entries = []
    this.#drawn = -1
    this.#list.startOver()
  }

  // MARK: - One object

  #open(id) {
    this.#show(id)
    this.#write(true)
  }

  #show(id) {
    const entry = this.#objects.entries.get(id)
    if (entry === undefined) return
    this.#awaited = undefined
    this.#opened = id
    this.#list.open()
    this.#detail.begin(entry, this.#ownedBy(entry), this.#objects.histories.of(id))
    this.#request()
  }

  #close() {
    this.#hideDetail()
    this.#write(true)
  }

  #hideDetail() {
    const opened = this.#opened
    if (opened === undefined) return
    this.#opened = undefined
    this.#list.close(({ id }) => id === opened, this.#ui.find)
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
    if (this.#awaited !== undefined) this.#show(this.#awaited)
    const { agents, objects, inSection } = this.#counts
    setText(ui.agents, `Agents ${count(agents)}`)
    setText(ui.objects, `Objects ${count(objects)}`)
    ui.agents.setAttribute("aria-pressed", String(this.#section === "agents"))
    ui.objects.setAttribute("aria-pressed", String(this.#section === "objects"))
    const entries = this.#entries
    const opened = this.#objects.entries.get(this.#opened)
    this.#list.draw(entries, opened)
    if (entries.length === 0) this.#explain(inSection > 0)
    setText(this.#list.footer, `${count(Math.min(entries.length, this.#list.limit))} of ${plural(entries.length, this.#section === "agents" ? "agent" : "object")}`
      + (this.#section === "agents" && inSection > agents ? ` · ${count(inSection - agents)} not in the network` : "")
      + (this.#objects.isCut ? `. There are more: the page keeps ${count(maximumObjects)}.` : ""))
    if (opened !== undefined) this.#detail.show(opened, this.#ownedBy(opened), this.#objects.histories.of(this.#opened))
  }

  /** Determines the entries to show, their order, and the counts. */
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
    const contains = (entry) => {
      // A change of an object is another entry.
      const found = this.#found.get(entry)
      if (found?.text === text) return found.isFound
      const isFound = hasValue(entry.object, text)
      this.#found.set(entry, { text, isFound })
      return isFound
    }
    return (entry) =>
      [entry.name, line(entry.object.coreType), this.#app.names.full(entry.owner)].some((part) => part.toLowerCase().includes(text)) || contains(entry)
  }

  /** Orders entries as chosen. While the list has keyboard focus or an object is opened, new entries come last instead. */
  #ordered(entries) {
    const isHeld = this.#opened !== undefined || this.#list.rows.querySelector(":focus-visible") !== null
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
    const change = state === "gone" ? (isAgent(entry) ? "left" : "removed")
      : changes.length > 0 ? changesText(changes)
      : isAgent(entry) ? (state === "added" ? "joined" : "changed")
      : valuesText(object) || state
    const about = isAgent(entry) ? [["", line(id)], plural(this.#owned.get(id) ?? 0, "object")]
      : [ends(lineEnd(object.objectType, 100)), this.#app.names.of(owner)]
    const uncut = { 2: isAgent(entry) ? undefined : this.#app.names.uncut(owner) }
    return { cells: [name, ...about, change, "", ago(changed)], uncut, isDimmed: state === "gone", drawPicture: (cell) => this.#drawPicture(cell, entry) }
  }

  /** Draws the chart of the object's first series: the numeric property that changed first. */
  #drawPicture(cell, entry) {
    const [series] = this.#objects.histories.of(entry.id)
    let picture = this.#pictures.get(cell)
    if (picture === undefined) {
      if (series === undefined) return
      picture = new SmallPlot()
      this.#pictures.set(cell, picture)
      cell.append(picture.element)
    }
    picture.element.toggleAttribute("hidden", series === undefined)
    if (series !== undefined) picture.draw(series[1], Date.now(), entry.state === "gone" ? entry.changed : this.#app.away.since)
  }

  /** Explains why nothing is shown. */
  #explain(isNarrowed) {
    if (isNarrowed) this.#list.explain("No matches", "Search for a part of a name, a type, an id or a value.", false)
    else if (this.#section === "agents") this.#list.explain("No agents yet", "Agents appear here when they join the network. Start one:", true)
    else this.#list.explain("No objects yet", "Objects appear here when agents advertise them. Start an agent that does:", true)
  }
}

// MARK: - Elements

function build(root, app, on) {
  const section = (name) => h("button", { type: "button", onclick: () => on.choose(name) })
  const agents = section("agents")
  const objects = section("objects")
  const find = h("input", { type: "search", "aria-label": "Find", "aria-keyshortcuts": "/", placeholder: "Find by name, type, id, agent, value …", oninput: on.find })
  const order = h("select", { "aria-label": "Order", onchange: on.order },
    h("option", { value: "changed" }, "Last change"), h("option", { value: "name" }, "Name"))
  const list = new ListPane({ name: "Alive", detailName: "Object", hint: "swift run hello-world", cells }, on)
  list.rows.classList.add("alive-rows")
  const problem = h("div", { className: "notice", "data-kind": "bad", role: "alert", hidden: true })
  root.append(h("div", { className: "view-body alive" },
    namespaceHint(app),
    h("div", { className: "toolbar alive-toolbar" }, h("div", { className: "segments", role: "group", "aria-label": "What" }, agents, objects), find, order),
    problem, list.element))
  return { agents, objects, find, order, list, problem }
}
