// The gateway itself: its broker session, rates, queued events, and slow clients.

import { count, dateTime, duration, h, plural, replace, setHidden, setText } from "./dom.js"
import { Rates, rateText } from "./rates.js"
import { Sparkline } from "./sparkline.js"

/** Milliseconds after which the shown status counts as out of date. */
const patience = 2500

/** The counters that have a picture. */
const pictures = [
  ["received", "Received from the broker"],
  ["published", "Published to the broker"],
  ["delivered", "Delivered to clients"],
  ["dropped", "Dropped for slow clients"],
]

export const view = {
  id: "gateway",
  title: "Gateway",
  isPermitted: (access) => access.may("read", "status"),
  mount: (root, app) => new GatewayView(root, app),
}

class GatewayView {
  #app
  #ui
  #rates = new Rates()
  /** The last answer, and when it came. */
  #status
  #time
  #slow = ""
  #timer

  constructor(root, app) {
    this.#app = app
    this.#ui = build(root)
    app.status.addEventListener("change", () => this.#take())
    this.#take()
  }

  show() {
    // Ages grow, also where no answer comes.
    this.#timer = setInterval(() => this.#draw(), 1000)
    this.#draw()
  }

  hide() {
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #take() {
    const status = this.#app.status.latest
    // Pictures go on while the view is hidden.
    if (status !== undefined && status !== this.#status) {
      this.#status = status
      this.#time = performance.now()
      this.#rates.take(this.#time, status.started, { ...status.events, ...status.streams })
    }
    if (this.#timer !== undefined) this.#draw()
  }

  // MARK: - Drawing

  #draw() {
    if (document.hidden) return
    const isAway = this.#drawAge()
    for (const [name] of pictures) this.#drawRate(name, this.#ui.rates[name], isAway)
    if (isAway) {
      // The last status stays, except the state of the session: an old "Online" would mislead.
      setText(this.#ui.state, "Unknown")
      delete this.#ui.state.dataset.kind
      return
    }
    this.#drawFacts(this.#status)
    const { slowConsumers } = this.#status
    setHidden(this.#ui.slow, slowConsumers === undefined)
    if (slowConsumers !== undefined) this.#drawSlow(slowConsumers)
  }

  /** @returns {boolean} whether the gateway is away. */
  #drawAge() {
    const { notice } = this.#ui
    const age = this.#status === undefined ? Infinity : performance.now() - this.#time
    const isAway = age > patience
    setHidden(notice, !isAway)
    if (isAway) {
      setText(notice, this.#status === undefined ? "The gateway has not answered yet. The page keeps trying."
        : `The gateway does not answer. The page keeps trying; the values shown are ${duration(age / 1000)} old.`)
    }
    return isAway
  }

  #drawFacts({ version, started, broker, events, streams, memory: held, requests }) {
    const { facts, state, memory } = this.#ui
    const isOnline = broker.state === "online"
    const isCounted = held.charged / held.maximumCharged
    setText(this.#ui.about, `Version ${version} · up for ${lasting(started)}`)
    setText(state, isOnline ? "Online" : "Offline")
    state.dataset.kind = isOnline ? "ok" : "bad"
    for (const [name, text] of Object.entries({
      address: broker.address,
      owner: broker.embedded ? "This gateway" : "Someone else",
      since: `${since(broker.since)} · ${lasting(broker.since)}`,
      reconnects: count(broker.reconnects),
      received: count(events.received),
      published: count(events.published),
      deferred: count(events.deferred),
      outbox: events.queued === 0 ? "0" : `${count(events.queued)} · ${bytes(events.queuedBytes)}`,
      invalid: count(events.invalid),
      connections: `${count(streams.connections)} · ${plural(streams.subscriptions, "subscription")}`,
      delivered: count(streams.delivered),
      dropped: count(streams.dropped),
      queued: count(streams.queued),
      requests: `${count(requests.pending)} · ${count(requests.total)} in total`,
      memory: `${bytes(held.charged)} of ${bytes(held.maximumCharged)}`,
    })) setText(facts[name], text)
    facts.outbox.classList.toggle("attention", events.queued > 0 && !isOnline)
    facts.dropped.classList.toggle("attention", streams.dropped > 0)
    facts.invalid.classList.toggle("attention", events.invalid > 0)
    memory.value = Math.min(1, isCounted)
    memory.setAttribute("aria-valuetext", facts.memory.textContent)
  }

  #drawRate(name, { now, highest, sparkline }, isAway) {
    const points = this.#rates.of(name)
    const last = isAway ? undefined : points.at(-1)?.rate
    setText(now, last === undefined || last === null ? "–" : rateText(last))
    setText(highest, `Peak ${rateText(Math.max(0, ...points.map(({ rate }) => rate ?? 0)))} /s`)
    sparkline.draw(points, performance.now())
  }

  #drawSlow(slow) {
    const { table, rows, empty } = this.#ui
    const text = JSON.stringify(slow)
    if (text === this.#slow) return
    this.#slow = text
    setHidden(table, slow.length === 0)
    setHidden(empty, slow.length > 0)
    replace(rows, slow.map(({ connection, transport, id, event, queued, queuedBytes, dropped, overflow }) =>
      h("tr", {},
        h("td", {}, h("span", { className: "tag", "data-pattern": event }, event)),
        h("td", {}, h("div", { className: "slow" },
          id && h("span", {}, id), h("span", { className: "muted" }, `#${connection} ${transportName[transport] ?? transport}`))),
        h("td", { className: "num" }, count(queued)),
        h("td", { className: "num wide-only" }, bytes(queuedBytes)),
        h("td", { className: `num${dropped > 0 ? " attention" : ""}` }, count(dropped)),
        h("td", { className: "muted wide-only" }, overflowName[overflow] ?? overflow))))
  }
}

const transportName = { websocket: "WebSocket", sse: "event stream" }

/** What happens where a buffer is full. */
const overflowName = { dropOldest: "drops the oldest", latest: "keeps the latest", close: "ends" }

const lasting = (ms) => duration(Math.max(0, Date.now() - ms) / 1000)
const since = (ms) => dateTime(ms).replace(/\.\d+$/, "")

/** "512 B", "2.1 KiB", "256 MiB". */
export function bytes(number) {
  if (number < 1024) return `${number} B`
  const units = ["KiB", "MiB", "GiB"]
  const power = Math.min(units.length, Math.floor(Math.log2(number) / 10))
  const value = number / 1024 ** power
  return `${value < 9.95 ? value.toFixed(1).replace(/\.0$/, "") : Math.round(value)} ${units[power - 1]}`
}

// MARK: - Elements

function build(root) {
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

  const rates = {}
  const tiles = pictures.map(([name, title]) => {
    const sparkline = new Sparkline(title)
    rates[name] = { now: h("span", {}, "–"), highest: h("p", { className: "muted num" }), sparkline }
    return h("section", { className: "card rate", "aria-label": title },
      h("h2", {}, title), h("p", { className: "rate-now num" }, rates[name].now, h("span", { className: "muted" }, " /s")),
      sparkline.element, rates[name].highest)
  })

  const state = h("span", { className: "tag" }, "–")
  const memory = h("meter", { min: 0, max: 1, low: 0.5, high: 0.8, optimum: 0, value: 0, "aria-label": "Memory of queued events" })
  const table = h("div", { className: "table-scroll", tabIndex: 0, role: "group", "aria-label": "Slow consumers", hidden: true })
  const rows = h("tbody")
  table.append(h("table", { className: "table" },
    h("thead", {}, h("tr", {},
      ["Event", "Subscription"].map((text) => h("th", { scope: "col" }, text)),
      [["Queued"], ["Bytes", "wide-only"], ["Dropped"]].map(([text, more = ""]) => h("th", { scope: "col", className: `num ${more}` }, text)),
      h("th", { scope: "col", className: "wide-only" }, "When full, it"))), rows))
  const empty = h("div", { className: "empty" },
    h("h2", {}, "All clients keep up"),
    h("p", {}, "Subscriptions whose clients read more slowly than events arrive are listed here, with their queued and dropped events."))

  const slow = card("Slow consumers", table, empty)
  // It scrolls, and may hold nothing that takes the focus: then keys could not.
  root.tabIndex = 0
  root.append(h("div", { className: "view-body gateway" },
    notice,
    h("div", { className: "rates" }, tiles),
    h("div", { className: "cards" },
      card("Broker", list(h("dt", {}, "Session"), h("dd", {}, state),
        fact("address", "Address"), fact("owner", "Started by"), fact("since", "Since"), fact("reconnects", "Reconnects"))),
      card("Events", list(
        fact("received", "Received"), fact("published", "Published"), fact("deferred", "Deferred"),
        fact("outbox", "Queued for the broker"), fact("invalid", "Invalid"))),
      card("Clients", list(
        fact("connections", "Connections"), fact("delivered", "Events delivered"), fact("dropped", "Events dropped"),
        fact("queued", "Events queued"), fact("requests", "Requests pending"), fact("memory", "Memory", memory)))),
    slow))
  return { about, notice, rates, facts, state, memory, slow, table, rows, empty }
}
