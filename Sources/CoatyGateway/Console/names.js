// Names of agents, IO sources and IO actors, as they are advertised.

import { line, shortId } from "./dom.js"
import { forever, observe } from "./observe.js"

/** Maximum number of names. Beyond it the oldest are removed. */
const maximumNames = 20_000
/** Maximum number of characters of a name in a list, and of a name that is kept. */
const maximumShort = 100
const maximumName = 1000
/** Maximum number of IO sources, and of IO actors, of a node whose names are kept. */
const maximumPoints = 1000

/** The known names. Dispatches `change` when there are new ones, at most every 100 milliseconds. */
export class Names extends EventTarget {
  /** Names by id, `{ full, short }`. */
  #names = new Map()
  #isReportDue = false

  /** @param {boolean} isPermitted whether the user may observe advertised objects */
  constructor(client, isPermitted) {
    super()
    if (!isPermitted) return
    this.#follow(client, "Identity", (identity) => this.#keep(identity))
    this.#follow(client, "IoNode", (node) => {
      for (const points of [node.ioSources, node.ioActors]) {
        if (Array.isArray(points)) for (const point of points.slice(0, maximumPoints)) this.#keep(point)
      }
    })
  }

  /** Returns the name of an agent or an IO point, cut to fit a list; if it is unknown, the beginning of the id. */
  of(id) {
    return this.#names.get(id)?.short ?? shortId(id)
  }

  /** Returns the full name; if it is unknown, the beginning of the id. */
  full(id) {
    return this.#names.get(id)?.full ?? shortId(id)
  }

  /** Returns the full name if `of` cuts it; otherwise undefined. */
  uncut(id) {
    const name = this.#names.get(id)
    return name === undefined || name.full === name.short ? undefined : name.full
  }

  /** Returns whether the name of an id is known. */
  has(id) {
    return this.#names.has(id)
  }

  #follow(client, coreType, take) {
    // If the broker refuses the subscription, the console shows ids.
    observe(client, { event: "advertise", coreType, snapshot: true }, forever, (frame) => {
      // The names of removed objects stay, because their events are still shown.
      if (frame.op === "event" && frame.change !== "removed") take(frame.data.object)
    })
  }

  #keep(object) {
    if (typeof object?.objectId !== "string" || typeof object.name !== "string") return
    const { objectId } = object
    const full = line(object.name, maximumName)
    if (full.trim() === "" || this.#names.get(objectId)?.full === full) return
    this.#names.delete(objectId)
    this.#names.set(objectId, { full, short: line(full, maximumShort) })
    if (this.#names.size > maximumNames) this.#names.delete(this.#names.keys().next().value)
    if (this.#isReportDue) return
    this.#isReportDue = true
    setTimeout(() => {
      this.#isReportDue = false
      this.dispatchEvent(new Event("change"))
    }, 100)
  }
}
