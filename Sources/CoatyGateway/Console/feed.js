// The live feed: what the agents say, as they say it.

import { clock, count, frames, plural, setCovering, setHidden, setText } from "./dom.js"
import { showEvent } from "./event-detail.js"
import { cells, feedPage } from "./feed-page.js"
import { parseJSON } from "./json-text.js"
import { Ring } from "./ring.js"
import { RowList } from "./row-list.js"
import { isResponse, kind, sender, subject } from "./summary.js"

const drawsPerSecond = 5
/** How many events of the connection wait at the gateway while the page is busy. */
const gatewayBuffer = 4096
const rowsPerPage = 100
/** Milliseconds for which the list stands still after somebody has moved in it. */
const holdTime = 4000
/** How many events that belong to one are looked for. */
const maximumRelated = 1000

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
  /** What is observed, by what it is, and what ends it. */
  #observed = new Map()
  /** How many gaps have come among the events, and how many events are known to be missing in them. */
  #gaps = { count: 0, lost: 0 }
  #rate = { total: 0, at: performance.now(), value: 0 }
  #drawing = frames(() => this.#draw(), drawsPerSecond)
  #ui
  #list

  constructor(root, app) {
    this.#app = app
    this.#ui = feedPage(root, {
      choose: () => this.#observe(),
      find: () => this.#startOver(),
      togglePause: () => this.#togglePause(),
      clear: () => this.#clear(),
      hold: () => this.#hold(),
      release: () => this.#release(),
      more: () => this.#more(),
      close: () => this.#close(),
    })
    this.#list = new RowList(this.#ui.rows, cells, (item) => this.#open(item), (entry) => this.#row(entry))
    app.names.addEventListener("change", () => this.#request())
    this.#observe()
    setInterval(() => this.#measure(), 1000)
  }

  show() {
    this.#isShown = true
    if (this.#opened) setCovering(this.#ui.detail, true)
    this.#request()
  }

  hide() {
    this.#isShown = false
    if (this.#opened) setCovering(this.#ui.detail, false)
    this.#drawing.stop()
  }

  #request() {
    if (this.#isShown) this.#drawing.request()
  }

  // MARK: - Receiving

  /** Observes what is chosen, and goes on with what was observed before. */
  #observe() {
    const ui = this.#ui
    const events = ui.chips.filter((chip) => chip.checked).map((chip) => chip.value)
    const condition = ui.filter.value.trim()
    const topic = ui.topic.value.trim()
    let filter
    try {
      filter = condition === "" ? undefined : parseJSON(condition)
    } catch (error) {
      return this.#refuse("filter", error.message)
    }
    this.#observeOnly("filter", { event: "traffic", ...(events.length > 0 && { events }), ...(filter !== undefined && { filter }) })
    this.#observeOnly("topic", topic === "" ? undefined : { event: "raw", topic })
  }

  /** @param {"filter" | "topic"} field the one to be mended where it is refused */
  #observeOnly(field, what) {
    const key = JSON.stringify(what)
    const before = this.#observed.get(field)
    if (before === undefined ? what === undefined : before.key === key && !before.isRefused) return
    before?.controller.abort()
    this.#ui[field].removeAttribute("aria-invalid")
    setText(this.#ui[`${field}Error`], "")
    if (what === undefined) return this.#observed.delete(field)
    const controller = new AbortController()
    this.#observed.set(field, { key, controller, isRefused: false })
    this.#follow(field, { ...what, buffer: gatewayBuffer }, controller.signal)
  }

  async #follow(field, what, signal) {
    try {
      for await (const frame of this.#app.client.subscribe(what, { signal })) {
        if (frame.op === "gap") this.#gaps = { count: this.#gaps.count + 1, lost: this.#gaps.lost + (frame.lost ?? 0) }
        this.#ring.push({ at: Date.now(), frame }, frame.size)
        this.#request()
      }
    } catch (error) {
      if (!signal.aborted) this.#refuse(field, error.detail ?? error.message)
    }
  }

  #refuse(field, text) {
    const observed = this.#observed.get(field)
    if (observed) observed.isRefused = true
    this.#ui[field].setAttribute("aria-invalid", "true")
    setText(this.#ui[`${field}Error`], text)
    this.#ui.filters.open = true
  }

  // MARK: - Pausing

  #togglePause() {
    if (this.#isPaused) return this.#resume()
    this.#stop("asked")
    this.#app.announce("Paused")
  }

  /** Whether the list stands still until somebody wants it to go on. */
  get #isPaused() {
    return this.#pause !== undefined && this.#pause.reason !== "held"
  }

  /** Lets the list stand still while somebody moves in it, or is in it with the keyboard. */
  #hold() {
    if (!this.#pause) this.#stop("held")
    clearTimeout(this.#holdTimer)
    this.#holdTimer = setTimeout(() => this.#release(), holdTime)
  }

  #release() {
    clearTimeout(this.#holdTimer)
    if (this.#pause?.reason === "held" && !this.#ui.rows.querySelector(":focus-visible")) this.#resume()
  }

  #stop(reason) {
    if (!this.#pause) {
      this.#pause = { reason, at: this.#ring.total, gaps: this.#gaps.count, items: this.#ring.filter(() => true, Infinity) }
    } else if (!this.#isPaused) {
      this.#pause.reason = reason
    }
    this.#request()
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
    this.#request()
  }

  /** How many events have come since the pause, and how many of them are not kept. */
  #missed() {
    const came = this.#ring.total - this.#pause.at - (this.#gaps.count - this.#pause.gaps)
    return { came, gone: Math.max(0, this.#ring.first - this.#pause.at - 1) }
  }

  #clear() {
    if (this.#pause) this.#resume()
    this.#ring.clear()
    this.#marks = []
    this.#startOver()
  }

  #more() {
    this.#rows += rowsPerPage
    this.#request()
  }

  #startOver() {
    this.#rows = rowsPerPage
    this.#request()
  }

  // MARK: - One event

  #open(item) {
    this.#opened = item
    this.#stop("opened")
    const ui = this.#ui
    setHidden(ui.detail, false)
    ui.split.classList.add("open")
    setCovering(ui.detail, true)
    const { correlationId, event } = item.frame
    const related = correlationId === undefined ? [] : this.#ring.filter(
      ({ frame }) => frame.correlationId === correlationId && isResponse(frame.event) !== isResponse(event), maximumRelated)
    showEvent(ui.detail, {
      item, related,
      names: this.#app.names,
      open: (other) => this.#open(other),
      close: () => this.#close(),
    })
  }

  #close() {
    const opened = this.#opened
    if (!opened) return
    this.#opened = undefined
    setCovering(this.#ui.detail, false)
    setHidden(this.#ui.detail, true)
    this.#ui.split.classList.remove("open")
    if (!this.#list.focus(opened)) this.#ui.pauseButton.focus()
    if (this.#pause?.reason === "opened") {
      this.#pause.reason = "held"
      this.#hold()
    }
  }

  // MARK: - Drawing

  #measure() {
    const now = performance.now()
    this.#rate = { total: this.#ring.total, at: now, value: (this.#ring.total - this.#rate.total) / ((now - this.#rate.at) / 1000) }
    this.#request()
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
