// The live feed: what the agents say, as they say it.

import { clock, count, frames, h, plural, replace, setHidden, setText } from "./dom.js"
import { showEvent } from "./event-detail.js"
import { Ring } from "./ring.js"
import { RowList } from "./row-list.js"
import { isResponse, kind, responses, sender, subject, trafficEvents } from "./summary.js"

const drawsPerSecond = 5
/** How many events of the connection wait at the gateway while the page is busy. */
const gatewayBuffer = 4096
const rowsPerPage = 100
/** Milliseconds for which the list stands still after somebody has moved in it. */
const holdTime = 4000
/** Of a row: when, what, about what, of which type, from whom. */
const cells = ["num muted", "tag", "clip", "clip muted", "clip"]

export const view = {
  id: "feed",
  title: "Live feed",
  mount: (root, app) => new Feed(root, app),
}

class Feed {
  #app
  #ring = new Ring()
  /**
   * What the feed shows while it stands still, since when, and why: it was `asked` to, an event is `opened`, or somebody
   * points at the list, which is `held` so that it does not slip away. Undefined while it goes on.
   */
  #pause
  #holdTimer
  /** Where the feed was paused: how much came meanwhile, and how much of it is not kept. */
  #marks = []
  #opened
  #rows = rowsPerPage
  #isShown = false
  #subscription
  /** How many gaps have come among the events, and how many events are known to be missing in them. */
  #gaps = { count: 0, lost: 0 }
  #rate = { total: 0, at: performance.now(), value: 0 }
  #drawing = frames(() => this.#draw(), drawsPerSecond)
  #ui
  #list

  constructor(root, app) {
    this.#app = app
    this.#ui = build(this, root)
    this.#list = new RowList(this.#ui.rows, cells, (item) => this.#open(item), (entry) => this.#row(entry))
    app.names.addEventListener("change", () => this.#drawing.request())
    this.observe()
    setInterval(() => this.#measure(), 1000)
  }

  show() {
    this.#isShown = true
    this.#drawing.request()
  }

  hide() {
    this.#isShown = false
    this.#drawing.stop()
  }

  // MARK: - Receiving

  /** Observes what is chosen, and nothing else any more. */
  observe() {
    this.#subscription?.abort()
    const controller = this.#subscription = new AbortController()
    const ui = this.#ui
    ui.filter.removeAttribute("aria-invalid")
    setText(ui.filterError, "")
    let filter
    try {
      filter = ui.filter.value.trim() === "" ? undefined : JSON.parse(ui.filter.value)
    } catch (error) {
      return this.#refuse(ui.filter, ui.filterError, `No JSON: ${error.message}`)
    }
    const events = ui.chips.filter((chip) => chip.checked).map((chip) => chip.value)
    const options = { ...(filter && { filter }), buffer: gatewayBuffer }
    this.#follow({ event: "traffic", ...(events.length > 0 && { events }), ...options }, controller.signal, ui.filter, ui.filterError)
    const topic = ui.topic.value.trim()
    setText(ui.topicError, "")
    ui.topic.removeAttribute("aria-invalid")
    if (topic !== "") this.#follow({ event: "raw", topic, buffer: gatewayBuffer }, controller.signal, ui.topic, ui.topicError)
  }

  async #follow(what, signal, field, message) {
    try {
      for await (const frame of this.#app.client.subscribe(what, { signal })) {
        if (frame.op === "gap") this.#gaps = { count: this.#gaps.count + 1, lost: this.#gaps.lost + (frame.lost ?? 0) }
        this.#ring.push({ number: this.#ring.total + 1, at: Date.now(), frame }, frame.size)
        if (this.#isShown) this.#drawing.request()
      }
    } catch (error) {
      if (!signal.aborted) this.#refuse(field, message, error.detail ?? error.message)
    }
  }

  #refuse(field, message, text) {
    field.setAttribute("aria-invalid", "true")
    setText(message, text)
    this.#ui.filters.open = true
  }

  // MARK: - Pausing

  togglePause() {
    if (this.#isPaused) return this.#resume()
    this.#stop("asked")
    this.#app.announce("Paused")
  }

  /** Whether the list stands still until somebody wants it to go on. */
  get #isPaused() {
    return this.#pause !== undefined && this.#pause.reason !== "held"
  }

  /** Lets the list stand still while somebody moves in it. */
  hold() {
    if (!this.#pause) this.#stop("held")
    clearTimeout(this.#holdTimer)
    this.#holdTimer = setTimeout(() => this.release(), holdTime)
  }

  release() {
    clearTimeout(this.#holdTimer)
    if (this.#pause?.reason === "held") this.#resume()
  }

  #stop(reason) {
    if (!this.#pause) this.#pause = { reason, at: this.#ring.total, items: this.#ring.filter(() => true, Infinity) }
    else if (!this.#isPaused) this.#pause.reason = reason
    this.#drawing.request()
  }

  #resume() {
    const { at } = this.#pause
    const { came, gone } = this.#missed()
    if (came > 0 && this.#isPaused) {
      this.#marks.push({ number: at, text: `Paused here. ${sinceText(came, gone)}` })
      this.#app.announce(sinceText(came, gone))
    }
    this.#marks = this.#marks.filter(({ number }) => number >= this.#ring.first - 1)
    this.#pause = undefined
    this.#drawing.request()
  }

  /** What has come since the pause, and how much of it is not kept. */
  #missed() {
    const came = this.#ring.total - this.#pause.at
    return { came, gone: Math.max(0, this.#ring.first - this.#pause.at - 1) }
  }

  clear() {
    if (this.#pause) this.#resume()
    this.#ring.clear()
    this.#marks = []
    this.#rows = rowsPerPage
    this.#drawing.request()
  }

  more() {
    this.#rows += rowsPerPage
    this.#drawing.request()
  }

  find() {
    this.#rows = rowsPerPage
    this.#drawing.request()
  }

  // MARK: - One event

  #open(item) {
    this.#opened = item
    this.#stop("opened")
    const ui = this.#ui
    setHidden(ui.detail, false)
    ui.split.classList.add("open")
    const { correlationId, event } = item.frame
    const related = correlationId === undefined ? [] : this.#ring.filter(
      (other) => other.frame.correlationId === correlationId && isResponse(other.frame.event) !== isResponse(event), 1000)
    showEvent(ui.detail, {
      item, related,
      names: this.#app.names,
      open: (other) => this.#open(other),
      close: () => this.close(),
    })
  }

  close() {
    const opened = this.#opened
    if (!opened) return
    this.#opened = undefined
    setHidden(this.#ui.detail, true)
    this.#ui.split.classList.remove("open")
    this.#list.focus(opened)
    if (this.#pause?.reason === "opened") this.#resume()
  }

  // MARK: - Drawing

  #measure() {
    const now = performance.now()
    this.#rate = { total: this.#ring.total, at: now, value: (this.#ring.total - this.#rate.total) / ((now - this.#rate.at) / 1000) }
    if (this.#isShown) this.#drawing.request()
  }

  #draw() {
    const ui = this.#ui
    const entries = this.#entries()
    this.#list.draw(entries.slice(0, this.#rows), this.#opened)
    const isEmpty = entries.length === 0
    setHidden(ui.pane, isEmpty)
    setHidden(ui.empty, !isEmpty)
    if (isEmpty) this.#showEmpty()
    setHidden(ui.more, entries.length <= this.#rows)
    setText(ui.pauseButton, this.#isPaused ? "Resume" : "Pause")
    ui.pauseButton.classList.toggle("primary", this.#isPaused)
    ui.footer.toggleAttribute("data-paused", this.#isPaused)
    setText(ui.footer, this.#footerText())
  }

  #footerText() {
    if (this.#pause) {
      const { came, gone } = this.#missed()
      return `${this.#isPaused ? "Paused" : "Held while you point at it"}. ${sinceText(came, gone)}`
    }
    const rate = this.#rate.value
    const perSecond = rate >= 10 ? count(Math.round(rate)) : rate.toFixed(rate > 0 ? 1 : 0)
    const { count: gaps, lost } = this.#gaps
    const lostText = lost > 0 ? ` · ${count(lost)} lost` : ""
    return `${plural(this.#ring.total - gaps, "event")}${lostText} · ${perSecond} per second · the latest ${count(this.#ring.length)} are kept`
  }

  /** What there is to be shown, the newest first. */
  #entries() {
    const text = this.#ui.find.value.trim().toLowerCase()
    const items = this.#pause?.items
    const entries = []
    const last = this.#pause ? this.#pause.at : this.#ring.total
    const marks = this.#marks.filter(({ number }) => number < last).reverse()
    const first = this.#pause ? last - items.length + 1 : this.#ring.first
    for (let number = last; number >= first && entries.length <= this.#rows; number -= 1) {
      while (marks.length > 0 && marks[0].number >= number) entries.push({ mark: marks.shift().text })
      const item = items ? items[number - first] : this.#ring.at(number)
      if (text === "" || item.frame.op !== "gap" && this.#summary(item).text.includes(text)) entries.push(item)
    }
    return entries
  }

  #row(entry) {
    if (entry.mark !== undefined) return { note: entry.mark }
    if (entry.frame.op === "gap") return { note: gapText(entry.frame) }
    const { time, event, subject, kind, sender } = this.#summary(entry)
    return { cells: [time, event, subject, kind, sender], pattern: event }
  }

  /** The texts of an event, made once; names may come later. */
  #summary(item) {
    const { frame } = item
    item.summary ??= { time: clock(item.at), event: frame.event, subject: subject(frame, this.#app.names), kind: kind(frame) }
    const who = sender(frame, this.#app.names)
    if (item.summary.sender !== who) {
      item.summary.sender = who
      item.summary.subject = subject(frame, this.#app.names)
      item.summary.text = [item.summary.event, item.summary.subject, item.summary.kind, who].join(" ").toLowerCase()
    }
    return item.summary
  }

  #showEmpty() {
    const ui = this.#ui
    const isNarrowed = ui.find.value.trim() !== "" || ui.filter.value.trim() !== "" || ui.chips.some((chip) => chip.checked)
    setText(ui.emptyTitle, isNarrowed ? "No such event yet" : "Nothing has been said yet")
    setHidden(ui.emptyHint, isNarrowed)
    setText(ui.emptyText, isNarrowed
      ? "Events come here as soon as they are like what you look for. Choose fewer conditions to see more."
      : "Every event of the network comes here as it is said. Publish the first one on the page “Send”, or with curl:")
  }
}

function sinceText(came, gone) {
  if (came === 0) return "Nothing has come since."
  return `${plural(came, "event")} came since${gone > 0 ? `, of which ${count(gone)} are no longer kept` : ""}.`
}

const gapText = ({ lost, where }) =>
  lost === null ? "The link was interrupted. What was said here was missed, and nobody knows how much it was."
  : where === "client" ? `${plural(lost, "event")} passed too fast for this page.`
  : `${plural(lost, "event")} passed too fast for the connection.`

// MARK: - Elements

function build(feed, root) {
  const field = (label, id, input, hint) => h("div", { className: "field" }, h("label", { for: id }, label), input, hint)
  const message = (id) => h("p", { className: "error", id, role: "alert" })

  const chips = trafficEvents.map((event) => h("input", { type: "checkbox", value: event, onchange: () => chosen() }))
  const all = h("input", { type: "checkbox", checked: true, onchange: () => { for (const chip of chips) chip.checked = false; chosen() } })
  function chosen() {
    all.checked = chips.every((chip) => !chip.checked)
    feed.observe()
  }

  const filterError = message("feed-filter-error")
  const filter = h("input", { id: "feed-filter", className: "mono", placeholder: '["name", ["Like", "%door%"]]', spellcheck: false, autocomplete: "off", "aria-describedby": "feed-filter-error" })
  const topicError = message("feed-topic-error")
  const topic = h("input", { id: "feed-topic", className: "mono", placeholder: "sensors/#", spellcheck: false, autocomplete: "off", "aria-describedby": "feed-topic-error" })
  const find = h("input", { id: "feed-find", type: "search", placeholder: "name, type, sender …", oninput: () => feed.find() })
  const form = h("form", { className: "form-row", onsubmit: (event) => { event.preventDefault(); feed.observe() } },
    field("Find in what is kept", "feed-find", find),
    field("Filter", "feed-filter", filter, filterError),
    field("Raw topics", "feed-topic", topic, topicError),
    h("button", { className: "button", type: "submit" }, "Apply"))
  const filters = h("details", { className: "filters" }, h("summary", {}, "Filters"), form)

  const pauseButton = h("button", { className: "button", type: "button", onclick: () => feed.togglePause() }, "Pause")
  const toolbar = h("div", { className: "toolbar" }, pauseButton,
    h("button", { className: "button", type: "button", onclick: () => feed.clear() }, "Clear"))
  root.querySelector(".view-header").append(toolbar)

  const hold = () => feed.hold()
  const rows = h("ol", {
    className: "rows events", "aria-label": "Events",
    onpointermove: hold, onpointerdown: hold, onkeydown: hold, onpointerleave: () => feed.release(),
  })
  const more = h("button", { className: "button quiet", type: "button", hidden: true, onclick: () => feed.more() }, "Show more")
  const footer = h("p", { className: "pane-footer num" })
  const pane = h("div", { className: "pane", hidden: true }, h("div", { className: "pane-scroll" }, rows, more), footer)
  const emptyTitle = h("h2")
  const emptyText = h("p")
  const emptyHint = h("pre", {}, example())
  const empty = h("div", { className: "empty" }, emptyTitle, emptyText, emptyHint)
  const detail = h("aside", { className: "pane detail", "aria-label": "Event", hidden: true, onkeydown: (event) => { if (event.key === "Escape") feed.close() } })
  const split = h("div", { className: "split" }, h("div", { className: "feed-main" }, pane, empty), detail)
  root.append(h("div", { className: "view-body feed" },
    h("fieldset", { className: "chips" }, h("legend", { className: "visually-hidden" }, "Events"),
      chip(all, "all"), chips.map((input) => chip(input, input.value))),
    filters, split))
  return { chips, filter, filterError, topic, topicError, find, filters, pauseButton, rows, more, footer, pane, empty, emptyTitle, emptyText, emptyHint, detail, split }
}

const chip = (input, text) => h("label", { className: "chip" }, input, text)

function example() {
  const object = { coreType: "CoatyObject", objectType: "com.example.Door", objectId: crypto.randomUUID?.() ?? "5a9c1f6e-3b52-4d0a-8f6e-2f6f0a3c7d11", name: "Front door" }
  const lines = JSON.stringify({ object }, null, 1).replace(/\n */g, " ").replace(/, ("objectId")/, ",\n      $1")
  return `curl ${new URL("v1/advertise", document.baseURI)} \\\n  -H 'content-type: application/json' \\\n  -d '${lines}'`
}
