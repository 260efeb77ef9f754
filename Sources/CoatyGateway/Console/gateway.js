// The operations view: rates, latencies and queues of the gateway, its broker session, clients and parts.

import { count, dateTime, duration, h, plural, setHidden, setText } from "./dom.js"
import { Connections } from "./connections.js"
import { Clients, bytes, needsGrant } from "./gateway-clients.js"
import { Parts } from "./gateway-parts.js"
import { Rates, rateText } from "./rates.js"
import { Sparkline } from "./sparkline.js"

/** Milliseconds after which the shown status counts as outdated. */
const patience = 2500
/** Milliseconds after the last keystroke until a typed text is written to the address. */
const typingTime = 400

const perSecond = { unit: " /s", spoken: " a second", points: (rates, name) => rates.of(name) }
const latency = { unit: " ms", spoken: " milliseconds", points: (rates, name) => rates.quantiles(name, 0.99), isLatency: true }
const gauge = { unit: "", spoken: "", points: (rates, name) => rates.values(name) }

/** The values with a chart. A latency is the 99 % quantile over the last ten seconds. */
const pictures = [
  { name: "received", title: "Received from the broker", ...perSecond },
  { name: "published", title: "Published to the broker", ...perSecond },
  { name: "brokerQueue", title: "Queued for the broker", ...gauge },
  { name: "delivered", title: "Delivered to clients", ...perSecond },
  { name: "dropped", title: "Dropped for slow clients", ...perSecond },
  { name: "clientQueue", title: "Queued for slow clients", ...gauge },
  { name: "answered", title: "HTTP requests", ...perSecond },
  { name: "durations", title: "HTTP latency, 99 %", ...latency },
  { name: "waits", title: "Wait of events, 99 %", ...latency },
]

/** Returns the values of a status that are drawn over time. */
const series = ({ events, streams, feeds, http }) => ({
  received: events.received, published: events.published, brokerQueue: events.queued,
  delivered: streams.delivered, dropped: streams.dropped, clientQueue: streams.queued,
  answered: http.answered, durations: http.durations, waits: feeds.waits,
})

export const view = {
  id: "gateway",
  title: "Gateway",
  isPermitted: (access) => access.may("read", "status") || access.may("administer", "gateway", "clients"),
  mount: (root, app) => new GatewayView(root, app),
}

/** The kinds of broker sessions in `events.sessions` of the status. */
const sessionNames = {
  gateway: "gateway", traffic: "observed traffic", raw: "raw events", identities: "client identities", ioNodes: "IO nodes", demo: "demo agent",
}

/** Returns the messages of all broker sessions, and of each kind that has any: "320 · gateway 120, observed traffic 200". */
function perSession(events, name) {
  const parts = Object.entries(events.sessions).filter(([, messages]) => messages[name] > 0)
  const list = parts.map(([kind, messages]) => `${sessionNames[kind] ?? kind} ${count(messages[name])}`)
  return list.length === 0 ? "0" : `${count(events[name])} · ${list.join(", ")}`
}

class GatewayView {
  #app
  #ui
  #parts
  #clients
  #connections
  #isPermitted
  #rates = new Rates()
  /** The last status, and when it was received. */
  #status
  #time
  #timer
  #typingTimer

  constructor(root, app) {
    this.#app = app
    this.#isPermitted = app.access.may("read", "status")
    this.#parts = new Parts(app)
    this.#clients = new Clients(app.access.may("administer", "clients"))
    this.#connections = new Connections(app, () => {
      clearTimeout(this.#typingTimer)
      this.#typingTimer = setTimeout(() => this.#write(), typingTime)
    })
    this.#ui = build(root, this.#isPermitted, this.#clients, this.#connections, this.#parts)
    app.status.addEventListener("change", () => this.#take())
    this.#take()
  }

  show() {
    // Ages grow even if no status arrives.
    this.#timer = setInterval(() => this.#draw(), 1000)
    this.#draw()
    this.#parts.show()
    this.#connections.show()
  }

  hide() {
    this.#parts.hide()
    this.#connections.hide()
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  /** Shows the parameters of an address. */
  go({ connections = "" }) {
    clearTimeout(this.#typingTimer)
    this.#connections.found = connections
  }

  #write() {
    this.#app.address.write(view.id, { connections: this.#connections.found })
  }

  #take() {
    const status = this.#app.status.latest
    // Rates are also measured while the view is hidden.
    if (status !== undefined && status !== this.#status) {
      this.#status = status
      this.#time = this.#app.status.time
      this.#rates.take(this.#time, status.started, series(status))
    }
    if (this.#timer !== undefined) this.#draw()
  }

  // MARK: - Drawing

  #draw() {
    if (document.hidden || !this.#isPermitted) return
    const isAway = this.#drawAge()
    for (const picture of pictures) this.#drawPicture(picture, this.#ui.rates[picture.name], isAway)
    if (isAway) {
      // The last status stays, except the state of the session: an old "Online" would mislead.
      setText(this.#ui.state, "Unknown")
      delete this.#ui.state.dataset.kind
      return
    }
    this.#drawFacts(this.#status)
    setHidden(this.#ui.paused, !this.#status.paused)
    this.#clients.draw(this.#time, this.#status)
  }

  /** Shows a notice if the status is outdated. @returns {boolean} whether it is */
  #drawAge() {
    const { notice } = this.#ui
    const age = this.#status === undefined ? Infinity : performance.now() - this.#time
    const isAway = age > patience
    // The banner shows a lost connection.
    const isReported = isAway && this.#app.client.state === "online"
    setHidden(notice, !isReported)
    if (isReported) {
      setText(notice, this.#status === undefined ? "The gateway has not answered yet. The page keeps trying."
        : `The gateway does not answer. The page keeps trying; the values shown are ${duration(age / 1000)} old.`)
    }
    return isAway
  }

  #drawFacts({ version, started, broker, events, streams, memory: held, requests, http }) {
    const { facts, state, memory } = this.#ui
    const isOnline = broker.state === "online"
    const isCounted = held.charged / held.maximumCharged
    setText(this.#ui.about, `Version ${version} · up for ${lasting(started)}`)
    setText(state, isOnline ? "Online" : "Offline")
    state.dataset.kind = isOnline ? "ok" : "bad"
    for (const [name, text] of Object.entries({
      address: broker.address,
      owner: broker.embedded ? "This gateway" : "Someone else",
      cause: isOnline ? "–" : broker.error?.message ?? "–",
      since: `${since(broker.since)} · ${lasting(broker.since)}`,
      reconnects: count(broker.reconnects),
      received: perSession(events, "received"),
      published: perSession(events, "published"),
      deferred: count(events.deferred),
      outbox: events.queued === 0 ? "0" : `${count(events.queued)} · ${bytes(events.queuedBytes)} · oldest ${milliseconds(events.lag)}`,
      invalid: count(events.invalid),
      connections: `${count(streams.connections)} · ${plural(streams.subscriptions, "subscription")}`,
      delivered: count(streams.delivered),
      dropped: count(streams.dropped),
      queued: count(streams.queued),
      requests: `${count(requests.pending)} · ${count(requests.total)} in total`,
      memory: `${bytes(held.charged)} of ${bytes(held.maximumCharged)}`,
      http: `${count(http.connections)} · ${plural(http.streams, "stream")}`,
      answered: count(http.answered),
      failed: count(http.failed),
      latencies: this.#latencies(),
    })) setText(facts[name], text)
    facts.outbox.classList.toggle("attention", events.queued > 0 && !isOnline)
    facts.dropped.classList.toggle("attention", streams.dropped > 0)
    facts.invalid.classList.toggle("attention", events.invalid > 0)
    facts.failed.classList.toggle("attention", http.failed > 0)
    memory.value = Math.min(1, isCounted)
    memory.setAttribute("aria-valuetext", facts.memory.textContent)
  }

  /** Returns the 50 %, 95 % and 99 % quantiles of the duration of HTTP requests over the last ten seconds. */
  #latencies() {
    const values = [0.5, 0.95, 0.99].map((share) => this.#rates.quantiles("durations", share).at(-1)?.rate ?? null)
    return values.includes(null) ? "–" : values.map(milliseconds).join(" · ")
  }

  #drawPicture({ name, unit, points: pointsOf }, { now, highest, sparkline }, isAway) {
    const points = pointsOf(this.#rates, name)
    const last = isAway ? undefined : points.at(-1)?.rate
    setText(now, last === undefined || last === null ? "–" : rateText(last))
    setText(highest, `Peak ${rateText(Math.max(0, ...points.map(({ rate }) => rate ?? 0)))}${unit}`)
    sparkline.draw(points, performance.now())
  }
}

/** Returns a duration as text: "0.4 ms", "12 ms", "1.2 s". */
const milliseconds = (number) => (number < 999.5 ? `${rateText(number)} ms` : `${rateText(number / 1000)} s`)

const lasting = (ms) => duration(Math.max(0, Date.now() - ms) / 1000)
const since = (ms) => dateTime(ms).replace(/\.\d+$/, "")

// MARK: - Elements

function build(root, isPermitted, clients, connections, parts) {
  const facts = {}
  const fact = (name, term, ...more) => {
    facts[name] = h("span", { className: "num" }, "–")
    return [h("dt", {}, term), h("dd", {}, facts[name], ...more)]
  }
  const card = (title, ...parts) => h("section", { className: "card", "aria-label": title }, h("h2", {}, title), ...parts)
  const list = (...parts) => h("dl", { className: "facts" }, ...parts)

  const about = h("p", { className: "num" })
  root.querySelector(".view-header").append(about)
  const notice = h("p", { className: "notice", "data-kind": "warn", hidden: true })

  const paused = h("p", { className: "notice", "data-kind": "warn", hidden: true }, "The gateway is paused: it refuses new work, and is not ready.")

  const rates = {}
  const tiles = pictures.map(({ name, title, unit, spoken }) => {
    const sparkline = new Sparkline(title, spoken)
    rates[name] = { now: h("span", {}, "–"), highest: h("p", { className: "muted num" }), sparkline }
    return h("section", { className: "card rate", "aria-label": title },
      h("h2", {}, title), h("p", { className: "rate-now num" }, rates[name].now, h("span", { className: "muted" }, unit)),
      sparkline.element, rates[name].highest)
  })

  const state = h("span", { className: "tag" }, "–")
  const memory = h("meter", { min: 0, max: 1, low: 0.5, high: 0.8, optimum: 0, value: 0, "aria-label": "Memory of queued events" })
  // The view scrolls: without a focusable element in it, keys could not scroll it.
  root.tabIndex = 0
  const status = [
    notice,
    paused,
    h("div", { className: "rates" }, tiles),
    clients.element,
    connections.element,
    h("div", { className: "cards" },
      card("Broker", list(h("dt", {}, "Session"), h("dd", {}, state),
        fact("address", "Address"), fact("owner", "Started by"), fact("since", "Since"), fact("cause", "Offline because"), fact("reconnects", "Reconnects"))),
      card("Events", list(
        fact("received", "Received"), fact("published", "Published"), fact("deferred", "Deferred"),
        fact("outbox", "Queued for the broker"), fact("invalid", "Invalid"))),
      card("Clients", list(
        fact("connections", "Connections"), fact("delivered", "Events delivered"), fact("dropped", "Events dropped"),
        fact("queued", "Events queued"), fact("requests", "Requests pending"), fact("memory", "Memory", memory))),
      card("HTTP", list(
        fact("http", "Connections"), fact("answered", "Requests answered"), fact("failed", "Failed, status 5xx"),
        fact("latencies", "50 · 95 · 99 % within")))),
  ]
  root.append(h("div", { className: "view-body gateway" },
    isPermitted ? status : [h("section", { className: "card", "aria-label": "Status" },
      h("h2", {}, "Status"), needsGrant("To see rates, queues and clients", "read: [status]")), connections.element],
    parts.element))
  return { about, notice, paused, rates, facts, state, memory }
}
