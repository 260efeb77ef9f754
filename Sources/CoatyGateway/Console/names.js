// Names of agents, IO sources and IO actors, as they are advertised.

import { shortId } from "./dom.js"

/** How many names are kept; the oldest go. */
const maximumNames = 20_000

/** Tells `change` when names have come. */
export class Names extends EventTarget {
  #names = new Map()
  #isTold = false

  constructor(client) {
    super()
    this.#follow(client, "Identity", (identity) => this.#keep(identity))
    this.#follow(client, "IoNode", (node) => {
      for (const point of [...(node.ioSources ?? []), ...(node.ioActors ?? [])]) this.#keep(point)
    })
  }

  /** The name of an agent or of an IO point, or the beginning of its id. */
  of(id) {
    return this.#names.get(id) ?? shortId(id)
  }

  /** Whether there is a name for an id. */
  has(id) {
    return this.#names.has(id)
  }

  async #follow(client, coreType, take) {
    try {
      for await (const frame of client.subscribe({ event: "advertise", coreType, snapshot: true })) {
        // The names of those that have gone stay: what they have said is still shown.
        if (frame.op === "event" && frame.change !== "removed") take(frame.data.object)
      }
    } catch {
      // The broker does not let the gateway observe them: then ids are shown.
    }
  }

  #keep({ objectId, name }) {
    if (typeof objectId !== "string" || typeof name !== "string" || this.#names.get(objectId) === name) return
    this.#names.delete(objectId)
    this.#names.set(objectId, name)
    if (this.#names.size > maximumNames) this.#names.delete(this.#names.keys().next().value)
    if (this.#isTold) return
    this.#isTold = true
    setTimeout(() => {
      this.#isTold = false
      this.dispatchEvent(new Event("change"))
    }, 100)
  }
}
