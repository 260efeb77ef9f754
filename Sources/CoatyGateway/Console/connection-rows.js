// The rows of the table of connections. Pure.

import { count, duration, line } from "./dom.js"
import { minimumStep, rateText } from "./rates.js"

/** The time over which a rate is measured, in milliseconds. */
const rateTime = 10_000

/** The rate of delivered events of each connection. */
export class ConnectionRates {
  /** Samples by connection, `[{ time, delivered }]`, oldest first. */
  #samples = new Map()

  /** Takes the gateway's list. @param {number} time in milliseconds of a monotonic clock */
  take(time, connections) {
    const former = this.#samples
    this.#samples = new Map()
    for (const { id, opened, delivered } of connections) {
      // A restarted gateway assigns the same ids again.
      const key = `${id} ${opened}`
      const samples = [...(former.get(key) ?? []), { time, delivered }]
      while (samples[1]?.time <= time - rateTime) samples.shift()
      this.#samples.set(key, samples)
    }
  }

  /** Returns the events per second over about the last ten seconds; null if not known yet. */
  of({ id, opened }) {
    const samples = this.#samples.get(`${id} ${opened}`) ?? []
    const [first, last] = [samples[0], samples.at(-1)]
    if (samples.length < 2 || last.time < first.time + minimumStep) return null
    return (last.delivered - first.delivered) * 1000 / (last.time - first.time)
  }
}

const transports = { __proto__: null, websocket: "WebSocket", sse: "SSE", ndjson: "NDJSON" }

/** Whether a row contains a text, in any of the columns that name the client. @param {string} text in lower case */
export const isFound = ({ client, identity, address, transport }, text) =>
  [client, identity, address, transport].some((part) => part.toLowerCase().includes(text))

/** Returns the texts of each connection, in the order of the list. */
export function connectionRows(connections, rates, now) {
  return connections.map((connection) => {
    const { id, client, address, identity, transport, opened, dropped, queued, queuedBytes } = connection
    const rate = rates.of(connection)
    const name = line(identity?.name ?? "", 100)
    return {
      id,
      client,
      identity: name || "–",
      address: address || "–",
      transport: transports[transport] ?? transport,
      age: duration(Math.max(0, now - opened) / 1000),
      rate: rate === null ? "–" : rateText(rate),
      queued: count(queued),
      queuedBytes,
      dropped: count(dropped),
      title: `${name || client} at ${address || "no address"} (${transports[transport] ?? transport} ${id})`,
    }
  })
}
