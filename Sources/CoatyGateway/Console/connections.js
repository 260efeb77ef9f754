// The connections of clients, with buttons to disconnect them.

import { bytes, needsGrant } from "./gateway-clients.js"
import { ConnectionRates, connectionRows, isFound } from "./connection-rows.js"
import { problemContent } from "./denial.js"
import { count, h, plural, replace, setHidden, setText } from "./dom.js"

const path = "v1/admin/connections"
const interval = 2000
/** The gateway's own maximum. */
const limit = 1000

const heads = [
  ["Client"], ["Identity"], ["Address"], ["Transport"], ["Age", "num"], ["Events /s", "num"],
  ["Queued", "num"], ["Dropped", "num"], ["", "act"],
]

export class Connections {
  element
  #app
  #isPermitted
  #isShown = false
  #timer
  #onFind
  #rates = new ConnectionRates()
  /** The elements of the rows, by connection id. */
  #rows = new Map()
  /** The connection that the user is asked about. */
  #asked
  /** The gateway's latest answer. */
  #latest
  #find = h("input", {
    type: "search", "aria-label": "Find connections", "aria-keyshortcuts": "/", placeholder: "Find by client, identity, address …",
    hidden: true, oninput: () => this.#search(),
  })
  #body = h("tbody")
  #table
  #empty = h("div", { className: "empty", hidden: true }, h("h2", {}, "No connections"), h("p", {}, "WebSockets, event streams and NDJSON streams are listed here."))
  #summary = h("p", { className: "muted num" })
  #question
  #sentence = h("p")
  #problem = h("div", { className: "notice", "data-kind": "bad", role: "alert", hidden: true })

  /** @param {() => void} onFind called when the user changes the search */
  constructor(app, onFind) {
    this.#app = app
    this.#onFind = onFind
    this.#isPermitted = app.access.may("administer", "clients")
    this.#table = h("div", { className: "table-scroll connections-scroll", tabIndex: 0, role: "group", "aria-label": "Connections, a table", hidden: true },
      h("table", { className: "table connections", "aria-label": "Connections" },
        h("thead", {}, h("tr", {}, heads.map(([text, className]) =>
          text === "" ? h("th", { scope: "col", className }, h("span", { className: "visually-hidden" }, "Disconnect")) : h("th", { scope: "col", className }, text)))),
        this.#body))
    this.#question = h("div", { className: "notice", "data-kind": "warn", role: "group", "aria-label": "Disconnect", hidden: true },
      this.#sentence,
      h("div", { className: "toolbar" },
        h("button", { className: "button", type: "button", onclick: () => this.#disconnect() }, "Disconnect it"),
        h("button", { className: "button quiet", type: "button", onclick: () => this.#ask() }, "Cancel")))
    this.element = h("section", { className: "card", "aria-label": "Connections" },
      h("div", { className: "card-header" }, h("h2", {}, "Connections"), this.#summary, this.#find),
      this.#isPermitted ? [this.#question, this.#problem, this.#table, this.#empty]
        : needsGrant("To see the connections of clients, and to disconnect them,", "administer: [clients]"))
  }

  show() {
    if (!this.#isPermitted) return
    this.#isShown = true
    this.#look()
  }

  hide() {
    this.#isShown = false
    clearTimeout(this.#timer)
  }

  async #look() {
    clearTimeout(this.#timer)
    if (!document.hidden) {
      try {
        const { json } = await this.#app.rest(`${path}?limit=${limit}`)
        setHidden(this.#problem, true)
        this.#rates.take(performance.now(), json.connections)
        this.#latest = json
        this.#draw()
      } catch (error) {
        // Status 0: the view shows already that the gateway does not answer.
        if (error.status !== 0) this.#fail(error)
      }
    }
    clearTimeout(this.#timer)
    if (this.#isShown) this.#timer = setTimeout(() => this.#look(), interval)
  }

  // MARK: - Drawing

  /** The text of the search. */
  get found() {
    return this.#find.value.trim()
  }

  set found(text) {
    this.#find.value = text
    this.#draw()
  }

  #search() {
    this.#draw()
    this.#onFind()
  }

  #draw() {
    if (this.#latest === undefined) return
    const { connections, total } = this.#latest
    const text = this.found.toLowerCase()
    const all = connectionRows(connections, this.#rates, Date.now())
    const rows = text === "" ? all : all.filter((row) => isFound(row, text))
    setHidden(this.#table, rows.length === 0)
    setHidden(this.#empty, all.length > 0)
    setHidden(this.#find, all.length === 0 && text === "")
    setText(this.#summary, rows.length < total ? `${count(rows.length)} of ${plural(total, "connection")}` : "")
    const ids = new Set(rows.map(({ id }) => id))
    for (const [id, { tr }] of this.#rows) {
      if (ids.has(id)) continue
      tr.remove()
      this.#rows.delete(id)
    }
    // Rows keep their places, so that a button keeps the focus and does not move while it is clicked.
    for (const row of rows.toReversed()) {
      const shown = this.#rows.get(row.id) ?? this.#append(row)
      this.#fill(shown, row)
    }
    if (this.#asked !== undefined && !connections.some(({ id }) => id === this.#asked.id)) this.#ask()
  }

  #append(row) {
    // On a narrow screen, each value has a label instead of a column header.
    const cell = (label, className) => h("td", { className, "data-label": label })
    const shown = {
      client: cell(undefined), identity: cell("Identity"), address: cell("Address", "mono"), transport: cell("Transport"),
      age: cell("Age", "num"), rate: cell("Events /s", "num"), queued: cell("Queued", "num"), dropped: cell("Dropped", "num"),
    }
    const button = h("button", { className: "button quiet", type: "button", onclick: () => this.#ask(row, button) }, "Disconnect")
    shown.button = button
    shown.tr = h("tr", {}, shown.client, shown.identity, shown.address, shown.transport, shown.age, shown.rate, shown.queued, shown.dropped,
      h("td", { className: "act" }, button))
    this.#rows.set(row.id, shown)
    this.#body.prepend(shown.tr)
    return shown
  }

  #fill(shown, row) {
    setText(shown.client, row.client)
    setText(shown.identity, row.identity)
    setText(shown.address, row.address)
    setText(shown.transport, row.transport)
    setText(shown.age, row.age)
    setText(shown.rate, row.rate)
    setText(shown.queued, row.queuedBytes === 0 ? "0" : `${row.queued} · ${bytes(row.queuedBytes)}`)
    setText(shown.dropped, row.dropped)
    shown.dropped.classList.toggle("attention", row.dropped !== "0")
    shown.queued.classList.toggle("attention", row.queuedBytes > 0)
    shown.button.setAttribute("aria-label", `Disconnect ${row.title}`)
  }

  // MARK: - Disconnecting

  /** Asks whether to disconnect a client; without a row, hides the question. */
  #ask(row, button) {
    const former = this.#asked
    this.#asked = row && { ...row, button }
    setHidden(this.#question, row === undefined)
    if (row === undefined) return former?.button.isConnected ? former.button.focus() : undefined
    setText(this.#sentence, `Disconnect ${row.title}? The events queued for it are discarded. It can connect again.`)
    this.#question.querySelector("button").focus()
  }

  async #disconnect() {
    const { id, title } = this.#asked
    setHidden(this.#problem, true)
    try {
      await this.#app.rest(`${path}/${id}`, { method: "DELETE" })
      this.#app.toast(`Disconnected ${title}.`)
    } catch (error) {
      if (error.status === 404) this.#app.toast(`${title} has closed already.`)
      else this.#fail(error)
    }
    this.#ask()
    if (this.#isShown) this.#look()
  }

  #fail(error) {
    replace(this.#problem, problemContent(error))
    setHidden(this.#problem, false)
  }
}
