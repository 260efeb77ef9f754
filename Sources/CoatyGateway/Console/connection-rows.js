// What the table of connections shows, made of the gateway's list. Pure.

import { count, duration, line } from "./dom.js"
import { rateText } from "./rates.js"

/** A rate is that of so many milliseconds. */
const rateTime = 10_000

/** How fast events are delivered on each connection. */
export class ConnectionRates {
  /** By connection, `[{ time, delivered }]`. */
  #samples = new Map()

  /** @param {number} time in milliseconds of a clock that only goes forward */
  take(time, connections) {
    const former = this.#samples
    this.#samples = new Map()
    for (const { id, opened, delivered } of connections) {
      // A gateway that was started again begins with the same ids.
      const key = `${id} ${opened}`
      const samples = [...(former.get(key) ?? []), { time, delivered }]
      while (samples[1]?.time <= time - rateTime) samples.shift()
      this.#samples.set(key, samples)
    }
  }

  /** Events a second over at most ten seconds; null if it is not known yet. */
  of({ id, opened }) {
    const samples = this.#samples.get(`${id} ${opened}`) ?? []
    if (samples.length < 2) return null
    const [first, last] = [samples[0], samples.at(-1)]
    return (last.delivered - first.delivered) * 1000 / (last.time - first.time)
  }
}

const transports = { __proto__: null, websocket: "WebSocket", sse: "SSE", ndjson: "NDJSON" }

/** The texts of each connection, in the order of the list. */
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
