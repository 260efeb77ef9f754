// The live feed: the events of the network as they happen.

import { stringifyExact } from "../client.js"
import { count, frames, line, lineEnd, plural, setHidden, setText } from "./dom.js"
import { EventDetail } from "./event-detail.js"
import { eventKey } from "./event-key.js"
import { exportLines, fileName, save } from "./feed-export.js"
import { FeedFilter, nameDimension, valueOf } from "./feed-filter.js"
import { feedPage, showChosen } from "./feed-page.js"
import { isFound, rowOf, sinceText } from "./feed-rows.js"
import { FeedSubscriptions } from "./feed-subscriptions.js"
import { parseJSON } from "./json-text.js"
import { LastObjects } from "./object-changes.js"
import { isResponse } from "./summary.js"
import { Timeline } from "./timeline.js"

const drawsPerSecond = 5
/** Milliseconds for which the list is held after pointer or focus events in it. */
const holdTime = 4000
/** Maximum number of events of a request that are searched for related events. */
const maximumRelated = 1000
/** Milliseconds after the last keystroke until a typed text is written to the address. */
const typingTime = 400
/** Maximum number of objects whose property names are suggested, and of suggestions. */
const maximumSampled = 500
const maximumOffered = 100
/** Maximum number of characters of a chosen value in its button, and in the tooltip of the button. */
const maximumChosen = 60
const maximumFull = 1000

export const view = {
  id: "feed",
  title: "Live feed",
  isPermitted: (access) => access.may("observe", "traffic", "raw"),
  mount: (root, app) => new Feed(root, app),
}

class Feed {
  #app
  #timeline = new Timeline()
  #objects = new LastObjects()
  #holdTimer
  #typingTimer
  #opened
  /** The selection of events. */
  #filter = new FeedFilter()
  #isShown = false
  /** The filter and the topics when they were last applied. */
  #applied = { filter: "", raw: "" }
  #subscriptions
  #rate = { events: 0, at: performance.now(), value: 0 }
  #drawing = frames(() => this.#draw(), drawsPerSecond)
  #ui
  #list
  #detail

  constructor(root, app) {
    this.#app = app
    this.#ui = feedPage(root, app, {
      choose: () => this.#chooseKinds(),
      find: () => this.#find(),
      apply: () => this.#apply(),
      build: (condition) => this.#build(condition),
      edit: () => this.#showInBuilder(),
      offer: () => this.#offerProperties(),
      pick: (item, what) => this.#pick(item.frame, what === "name" ? nameDimension(item.frame) : what),
      save: () => this.#save(),
      togglePause: () => this.#togglePause(),
      clear: () => this.#clear(),
      hold: () => this.#hold(),
      release: () => this.#release(),
      open: (item) => this.#open(item),
      close: () => this.#close(),
      describe: (entry) => rowOf(entry, app.names),
      changed: () => this.#request(),
    })
    this.#list = this.#ui.list
    this.#detail = new EventDetail(this.#list.detail, app, {
      open: (item) => this.#open(item),
      close: () => this.#close(),
      pick: (frame, dimension) => this.#pick(frame, dimension),
    })
    this.#subscriptions = new FeedSubscriptions(app.client, (frame) => this.#take(frame), (...what) => this.#say(...what))
    app.names.addEventListener("change", () => {
      this.#showChosen()
      this.#request()
    })
    this.#offerRaw()
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

  // MARK: - The address

  /** Shows the parameters of an address. */
  go(parameters) {
    const ui = this.#ui
    const { find = "", filter = "", raw = "", event = "" } = parameters
    clearTimeout(this.#typingTimer)
    this.#filter = FeedFilter.from(parameters)
    ui.find.value = find
    this.#showFilter()
    if (this.#applied.filter !== filter || this.#applied.raw !== raw) {
      this.#applied = { filter, raw }
      this.#offerRaw()
      ui.filter.value = filter
      ui.topic.value = raw
      if (filter !== "" || raw !== "") ui.filters.open = true
      this.#showInBuilder()
      this.#observe()
    }
    this.#list.startOver()
    if (event === (this.#opened ? eventKey(this.#opened.frame) : "")) return
    const item = event === "" ? undefined : this.#timeline.find(({ frame }) => frame.op !== "gap" && eventKey(frame) === event)
    if (item) return this.#show(item)
    this.#hideDetail()
    if (event === "") return
    this.#app.toast("This page has not received the event of the link, or no longer keeps it.")
    this.#write()
  }

  #write(isStep = false) {
    clearTimeout(this.#typingTimer)
    this.#app.address.write(view.id, {
      ...this.#filter.parameters,
      find: this.#ui.find.value.trim(),
      ...this.#applied,
      event: this.#opened && eventKey(this.#opened.frame),
    }, isStep)
  }

  // MARK: - Choosing what is shown

  #chooseKinds() {
    this.#filter.kinds = new Set(this.#ui.chips.filter((chip) => chip.checked).map((chip) => chip.value))
    this.#refilter()
  }

  /** Shows only events that are equal to this one in a dimension. */
  #pick(frame, dimension) {
    const value = dimension && valueOf(frame, dimension)
    if (value === undefined) return
    this.#filter.chosen[dimension] = value
    this.#app.announce(`Only ${this.#chosenText(dimension)} is shown`)
    this.#refilter()
  }

  #refilter() {
    this.#showFilter()
    this.#list.startOver()
    this.#write(true)
  }

  #find() {
    this.#filter.text = this.#ui.find.value.trim().toLowerCase()
    this.#list.startOver()
    clearTimeout(this.#typingTimer)
    this.#typingTimer = setTimeout(() => this.#write(), typingTime)
  }

  #showFilter() {
    const ui = this.#ui
    for (const chip of ui.chips) chip.checked = this.#filter.kinds.has(chip.value)
    this.#offerRaw()
    ui.showAll()
    this.#showChosen()
  }

  /** Offers the kind raw while the page observes a raw topic. A chosen kind is always shown, so that the user can remove it. */
  #offerRaw() {
    setHidden(this.#ui.rawChip, this.#applied.raw === "" && !this.#filter.kinds.has("raw"))
  }

  #showChosen() {
    const { chosen } = this.#filter
    showChosen(this.#ui.chosen, Object.keys(chosen).map((dimension) => [dimension, this.#chosenText(dimension), this.#chosenFull(dimension)]), (dimension) => {
      delete chosen[dimension]
      this.#refilter()
      this.#ui.find.focus()
    })
  }

  #chosenText(dimension) {
    const value = this.#filter.chosen[dimension]
    return dimension === "sender" ? this.#app.names.of(value) : lineEnd(value, maximumChosen)
  }

  #chosenFull(dimension) {
    const value = this.#filter.chosen[dimension]
    return dimension === "sender" ? this.#app.names.full(value) : line(value, maximumFull)
  }

  #isShownItem = (item) => this.#filter.shows(item.frame, (text) => isFound(item, this.#app.names, text))

  #save() {
    const items = this.#timeline.entries((item) => item.frame.op !== "gap" && this.#isShownItem(item), Infinity)
      .filter(({ frame }) => frame !== undefined).reverse()
    if (items.length === 0) return this.#app.toast("There are no events to export.")
    save(fileName(Date.now()), exportLines(items), "application/x-ndjson")
    this.#app.toast(`${plural(items.length, "event")} exported`)
  }

  // MARK: - The filter of the gateway

  #apply() {
    const { filter, topic } = this.#ui
    this.#applied = { filter: filter.value.trim(), raw: topic.value.trim() }
    this.#offerRaw()
    this.#observe()
    this.#write(true)
  }

  #build(condition) {
    this.#ui.filter.value = condition === undefined ? "" : stringifyExact(condition)
  }

  #showInBuilder() {
    const { builder, filter } = this.#ui
    const text = filter.value.trim()
    try {
      builder.show(text === "" ? undefined : parseJSON(text))
    } catch {
      // Applying the text reports what is wrong with it.
    }
  }

  #offerProperties() {
    const names = new Set()
    let sampled = 0
    this.#timeline.find(({ frame }) => {
      const object = frame.data?.object ?? frame.data?.objects?.[0]
      if (typeof object !== "object" || object === null) return false
      sampled += 1
      for (const name of Object.keys(object).slice(0, maximumOffered)) names.add(line(name, 60))
      return sampled >= maximumSampled || names.size >= maximumOffered
    })
    this.#ui.builder.offer([...names].sort())
  }

  // MARK: - Receiving

  /** Subscribes to all kinds of events. The page selects which of them it shows, so that requests keep their responses. */
  #observe() {
    const { filter: condition, raw } = this.#applied
    let filter
    try {
      filter = condition === "" ? undefined : parseJSON(condition)
    } catch (error) {
      this.#subscriptions.refuse("filter")
      return this.#say("filter", error.message, true)
    }
    if (this.#app.access.may("observe", "traffic")) this.#subscriptions.observe("filter", { event: "traffic", ...(filter !== undefined && { filter }) })
    this.#subscriptions.observe("topic", raw === "" ? undefined : { event: "raw", topic: raw })
  }

  #take(frame) {
    if (frame.op === "event" && frame.event === "call") this.#app.operations.note(frame.operation, "observed")
    this.#timeline.push(frame, Date.now(), frame.op === "event" ? this.#objects.take(frame) : undefined)
    this.#request()
  }

  /** Shows the error of a field; an empty text removes it. */
  #say(field, text, isInvalid) {
    const ui = this.#ui
    setText(ui[`${field}Error`], text)
    if (isInvalid) ui[field].setAttribute("aria-invalid", "true")
    else ui[field].removeAttribute("aria-invalid")
    if (isInvalid) ui.filters.open = true
  }

  // MARK: - Pausing

  #togglePause() {
    if (this.#timeline.isPaused) return this.#resume()
    this.#stop("asked")
    this.#app.announce("Paused")
  }

  /** Holds the list while the pointer moves in it or it has keyboard focus, so that rows do not move away. */
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
    this.#show(item)
    this.#write(true)
  }

  #show(item) {
    this.#opened = item
    if (!this.#timeline.isPaused) this.#stop("opened")
    this.#list.open()
    this.#detail.show(item, this.#relatedTo(item), this.#applied.filter !== "")
    this.#request()
  }

  /** Returns the responses to a request, or the request of a response. */
  #relatedTo({ frame }) {
    if (frame.correlationId === undefined) return []
    return this.#timeline.correlated(frame, maximumRelated).filter((other) => isResponse(other.frame.event) !== isResponse(frame.event))
  }

  #close() {
    if (!this.#opened) return
    this.#hideDetail()
    this.#write(true)
  }

  #hideDetail() {
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
    const { pauseButton } = this.#ui
    const entries = this.#timeline.entries(this.#isShownItem, this.#list.limit + 1)
    this.#list.draw(entries, this.#opened)
    if (this.#opened) this.#detail.update(this.#relatedTo(this.#opened))
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
    const rateText = this.#app.away.since === undefined ? ` · ${perSecond} per second` : ""
    const droppedText = dropped > 0 ? ` · ${count(dropped)} dropped` : ""
    // Gaps count as kept, too.
    const keptText = kept < events ? ` · the page keeps the last ${count(kept)}` : ""
    return `${plural(events, "event")} received${droppedText}${rateText}${keptText}`
  }

  /** Explains why nothing is shown. */
  #explain() {
    if (this.#filter.isNarrow || this.#applied.filter !== "") {
      const hidden = this.#timeline.kept > 0 ? ` The page has ${plural(this.#timeline.kept, "event")} of other kinds, senders or types.` : ""
      this.#list.explain("No such event yet", `New events that match your choice appear here.${hidden}`, false)
    } else {
      this.#list.explain("No events yet", "Every event in the network appears here when it is published. Publish the first one on the page “Send”, or with curl:", true)
    }
  }
}
