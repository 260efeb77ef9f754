// The live feed: the events of the network as they happen.

import { clock, count, frames, plural, setText } from "./dom.js"
import { showEvent } from "./event-detail.js"
import { feedPage } from "./feed-page.js"
import { parseJSON } from "./json-text.js"
import { observe } from "./observe.js"
import { isResponse, kind, sender, subject } from "./summary.js"
import { Timeline } from "./timeline.js"

const drawsPerSecond = 5
/** Maximum number of events that the gateway queues while the page is busy. */
const gatewayBuffer = 4096
/** Milliseconds for which the list stands still after somebody has moved in it. */
const holdTime = 4000
/** Whether a refusal passes by itself: there is no room at this time. */
const isPassing = (error) => error.status === 503
/** How many events that belong to one are looked for. */
const maximumRelated = 1000

export const view = {
  id: "feed",
  title: "Live feed",
  isPermitted: (access) => access.may("observe", "traffic", "raw"),
  mount: (root, app) => new Feed(root, app),
}

class Feed {
  #app
  #timeline = new Timeline()
  #holdTimer
  #opened
  #isShown = false
  /** What is observed, by what it is, and what ends it. */
  #observed = new Map()
  #rate = { events: 0, at: performance.now(), value: 0 }
  #drawing = frames(() => this.#draw(), drawsPerSecond)
  #ui
  #list

  constructor(root, app) {
    this.#app = app
    this.#ui = feedPage(root, app, {
      choose: () => this.#observe(),
      find: () => this.#list.startOver(),
      togglePause: () => this.#togglePause(),
      clear: () => this.#clear(),
      hold: () => this.#hold(),
      release: () => this.#release(),
      open: (item) => this.#open(item),
      close: () => this.#close(),
      describe: (entry) => this.#row(entry),
      changed: () => this.#request(),
    })
    this.#list = this.#ui.list
    app.names.addEventListener("change", () => this.#request())
    this.#observe()
    setInterval(() => this.#measure(), 1000)
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
    if (this.#app.access.may("observe", "traffic")) this.#observeOnly("filter", { event: "traffic", ...(events.length > 0 && { events }), ...(filter !== undefined && { filter }) })
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

  #follow(field, what, signal) {
    const take = (frame) => {
      this.#timeline.push(frame, Date.now())
      this.#request()
    }
    const report = (error) => {
      if (error && !isPassing(error)) this.#refuse(field, error.detail ?? error.message)
      else setText(this.#ui[`${field}Error`], error?.detail ?? error?.message ?? "")
    }
    observe(this.#app.client, what, signal, take, report, (error) => error !== undefined && !isPassing(error))
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
    if (this.#timeline.isPaused) return this.#resume()
    this.#stop("asked")
    this.#app.announce("Paused")
  }

  /** Lets the list stand still while somebody moves in it, or is in it with the keyboard. */
  #hold() {
    if (!this.#timeline.reason) this.#stop("held")
    clearTimeout(this.#holdTimer)
    this.#holdTimer = setTimeout(() => this.#release(), holdTime)
  }

  #release() {
    clearTimeout(this.#holdTimer)
    if (this.#timeline.reason === "held" && !this.#list.rows.querySelector(":focus-visible")) this.#resume()
  }

  #stop(reason) {
    this.#timeline.stop(reason)
    this.#request()
  }

  #resume() {
    if (this.#timeline.isPaused) this.#app.announce(sinceText(this.#timeline.missed()))
    this.#timeline.resume()
    this.#request()
  }

  #clear() {
    this.#timeline.clear()
    this.#list.startOver()
  }

  // MARK: - One event

  #open(item) {
    this.#opened = item
    if (!this.#timeline.isPaused) this.#stop("opened")
    this.#list.open()
    const { correlationId, event } = item.frame
    const related = correlationId === undefined ? [] : this.#timeline.filter(
      ({ frame }) => frame.correlationId === correlationId && isResponse(frame.event) !== isResponse(event), maximumRelated)
    showEvent(this.#list.detail, {
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
    this.#list.close((item) => item === opened, this.#ui.pauseButton)
    if (this.#timeline.reason === "opened") this.#resume()
    if (this.#list.rows.contains(document.activeElement)) this.#hold()
  }

  // MARK: - Drawing

  #measure() {
    const { events } = this.#timeline
    const now = performance.now()
    this.#rate = { events, at: now, value: (events - this.#rate.events) / ((now - this.#rate.at) / 1000) }
    this.#request()
  }

  #draw() {
    const { find, pauseButton } = this.#ui
    const text = find.value.trim().toLowerCase()
    const isWanted = (item) => text === "" || (item.frame.op !== "gap" && this.#summary(item).text.includes(text))
    const entries = this.#timeline.entries(isWanted, this.#list.limit + 1)
    this.#list.draw(entries, this.#opened)
    if (entries.length === 0) this.#explain()
    const { isPaused } = this.#timeline
    setText(pauseButton, isPaused ? "Resume" : "Pause")
    pauseButton.classList.toggle("primary", isPaused)
    this.#list.footer.toggleAttribute("data-paused", isPaused)
    setText(this.#list.footer, this.#footerText())
  }

  #footerText() {
    const { reason, isPaused, events, dropped, kept } = this.#timeline
    if (reason) return `${isPaused ? "Paused" : "Held while you point at it"}. ${sinceText(this.#timeline.missed())}`
    const rate = this.#rate.value
    const perSecond = rate >= 10 ? count(Math.round(rate)) : rate.toFixed(rate > 0 ? 1 : 0)
    const droppedText = dropped > 0 ? ` · ${count(dropped)} dropped` : ""
    return `${plural(events, "event")}${droppedText} · ${perSecond} per second · the latest ${count(kept)} are kept`
  }

  #row(entry) {
    if (entry.came !== undefined) return { note: `Paused here. ${sinceText(entry)}` }
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

  /** Explains why nothing is shown. */
  #explain() {
    const { find, filter, chips } = this.#ui
    if (find.value.trim() !== "" || filter.value.trim() !== "" || chips.some((chip) => chip.checked)) {
      this.#list.explain("No such event yet", "New events that match your conditions appear here. Remove conditions to see more.", false)
    } else {
      this.#list.explain("No events yet", "Every event in the network appears here when it is published. Publish the first one on the page “Send”, or with curl:", true)
    }
  }
}

function sinceText({ came, gone }) {
  if (came === 0) return "No events since."
  return `${plural(came, "event")} since${gone > 0 ? `, of which ${count(gone)} are no longer kept` : ""}.`
}

const gapText = ({ dropped, where }) =>
  dropped === null ? "Gap: the connection was interrupted, and an unknown number of events was dropped."
  : where === "client" ? `Gap: ${plural(dropped, "event")} dropped because this page was too slow.`
  : `Gap: ${plural(dropped, "event")} dropped because the connection was too slow.`
