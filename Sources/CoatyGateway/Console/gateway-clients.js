// Tables of the clients that cost most, slow consumers, and reached limits.

import { count, h, replace, setHidden } from "./dom.js"
import { ClientRates, rateText } from "./rates.js"

/** Returns a text that replaces content for which the user has no grant. */
export const needsGrant = (what, grant) => h("p", { className: "muted" }, `${what} needs the grant `, h("code", {}, grant), ".")

/** Returns a number of bytes as text: "512 B", "2.1 KiB", "256 MiB". */
export function bytes(number) {
  if (number < 1024) return `${number} B`
  const units = ["KiB", "MiB", "GiB"]
  const power = Math.min(units.length, Math.floor(Math.log2(number) / 10))
  const value = number / 1024 ** power
  return `${value < 9.95 ? value.toFixed(1).replace(/\.0$/, "") : Math.round(value)} ${units[power - 1]}`
}

/** Returns a rate of work steps as text: "850", "12k", "3.4M". */
export function steps(rate) {
  if (rate < 1000) return String(Math.round(rate))
  const [value, unit] = rate < 999_500 ? [rate / 1000, "k"] : [rate / 1_000_000, "M"]
  return `${value < 9.95 ? value.toFixed(1).replace(/\.0$/, "") : Math.round(value)}${unit}`
}

/** A card with a table, or with a placeholder if it has no rows. */
class TableCard {
  element
  #rows = h("tbody")
  #table
  #empty
  #body
  #drawn

  /** @param heads `[text, className]` of each column @param empty title and text of the placeholder */
  constructor(title, heads, empty) {
    this.#table = h("div", { className: "table-scroll", tabIndex: 0, role: "group", "aria-label": title, hidden: true },
      h("table", { className: "table" },
        h("thead", {}, h("tr", {}, heads.map(([text, className]) => h("th", { scope: "col", className }, text)))), this.#rows))
    this.#empty = h("div", { className: "empty" }, h("h2", {}, empty[0]), h("p", {}, empty[1]))
    this.#body = h("div", {}, this.#table, this.#empty)
    this.element = h("section", { className: "card", "aria-label": title }, h("h2", {}, title), this.#body)
  }

  /** Draws the rows, unless they are equal to the drawn ones. @param draw returns the cells of a row */
  draw(rows, draw) {
    const text = JSON.stringify(rows)
    if (text === this.#drawn) return
    this.#drawn = text
    setHidden(this.#table, rows.length === 0)
    setHidden(this.#empty, rows.length > 0)
    replace(this.#rows, rows.map((row) => h("tr", {}, draw(row))))
  }

  /** Replaces the table with a text. */
  deny(reason) {
    replace(this.#body, reason)
  }
}

export class Clients {
  element
  #rates = new ClientRates()
  #top = new TableCard("Top clients",
    [["Client"], ["Work /s", "num"], ["Events /s", "num"], ["Memory", "num"], ["Connections", "num wide-only"],
      ["Subscriptions", "num wide-only"], ["Pending", "num wide-only"]],
    ["No clients", "The clients that cost the gateway most are listed here."])
  #slow = new TableCard("Slow consumers",
    [["Event"], ["Subscription"], ["Queued", "num"], ["Bytes", "num wide-only"], ["Dropped", "num"], ["When full, it", "wide-only"]],
    ["All clients keep up", "Subscriptions whose clients read more slowly than events arrive are listed here, with their queued and dropped events."])
  #limits = new TableCard("Limits reached",
    [["Limit"], ["Used up", ""], ["Refused", "num"]],
    ["No limit was reached", "Limits at which the gateway refused or delayed clients are listed here."])

  /** @param {boolean} maySeeClients whether the user may see other clients */
  constructor(maySeeClients) {
    this.element = h("div", { className: "operations" }, this.#top.element, this.#slow.element, this.#limits.element)
    if (maySeeClients) return
    this.#top.deny(needsGrant("To see what clients cost", "administer: [clients]"))
    this.#slow.deny(needsGrant("To see which clients are slow", "administer: [clients]"))
  }

  /** Draws the status. @param {number} time when it was received, in milliseconds of a monotonic clock */
  draw(time, { started, topClients, slowConsumers, refused }) {
    if (topClients !== undefined) this.#drawTop(time, started, topClients)
    if (slowConsumers !== undefined) this.#slow.draw(slowConsumers, slowCells)
    this.#limits.draw(refused.limits, ({ limit, scope, count: times }) => [
      h("td", {}, limit.replaceAll("_", " ")), h("td", { className: "muted" }, scopeName[scope] ?? scope),
      h("td", { className: "num attention" }, count(times)),
    ])
  }

  #drawTop(time, started, clients) {
    this.#rates.take(time, started, clients)
    const shown = clients.map((client) => ({
      ...client, work: this.#rates.of(client.client, "work"), publications: this.#rates.of(client.client, "publications"),
    }))
    shown.sort((one, other) => other.work - one.work || other.memory - one.memory)
    this.#top.draw(shown, ({ client, delayed, work, publications, memory, connections, subscriptions, pendingRequests }) => [
      h("td", {}, h("div", { className: "slow" }, h("span", {}, client), delayed && h("span", { className: "tag", "data-kind": "warn" }, "delayed"))),
      h("td", { className: "num" }, work === null ? "–" : steps(work)),
      h("td", { className: "num" }, publications === null ? "–" : rateText(publications)),
      h("td", { className: "num" }, bytes(memory)),
      [connections, subscriptions, pendingRequests].map((number) => h("td", { className: "num wide-only" }, count(number))),
    ])
  }
}

const scopeName = { own: "by one client", all: "by all together" }

const transportName = { websocket: "WebSocket", sse: "event stream" }

/** Texts for the action on a full buffer. */
const overflowName = { dropOldest: "drops the oldest", latest: "keeps the latest", close: "ends" }

const slowCells = ({ connection, transport, id, event, queued, queuedBytes, dropped, overflow }) => [
  h("td", {}, h("span", { className: "tag", "data-pattern": event }, event)),
  h("td", {}, h("div", { className: "slow" },
    id && h("span", {}, id), h("span", { className: "muted" }, `#${connection} ${transportName[transport] ?? transport}`))),
  h("td", { className: "num" }, count(queued)),
  h("td", { className: "num wide-only" }, bytes(queuedBytes)),
  h("td", { className: `num${dropped > 0 ? " attention" : ""}` }, count(dropped)),
  h("td", { className: "muted wide-only" }, overflowName[overflow] ?? overflow),
]
