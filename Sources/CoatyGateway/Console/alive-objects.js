// The object registry: advertised objects and their changes.

import { differences, maximumCompared } from "./object-changes.js"
import { observeState } from "./observe.js"
import { objectName } from "./summary.js"
import { Histories, numbers } from "./value-history.js"

/** Maximum number of present objects, maximum number of removed objects, and how long these are kept, in milliseconds. */
export const maximumObjects = 20_000
const maximumGone = 200
const goneTime = 60_000
/** Maximum number of agents that have left. They are kept without a time limit. */
export const maximumDeparted = 1000
const gatewayBuffer = 4096

/**
 * An object with its last changes.
 *
 * @typedef {{ id: string, name: string, object: any, owner: string, since: number, changed: number,
 *   state: "added" | "changed" | "gone", changes: { property: string, before: any, after: any }[] }} Entry
 */

/** The observed objects in the network, and those removed recently. */
export class AliveObjects {
  /** @type {Map<string, Entry>} */
  entries = new Map()
  /** Whether objects were left out because of the maximum. */
  isCut = false
  /** Incremented with each change. */
  version = 0
  /** The values of numeric properties that have changed, by object. They are kept over a reconnect. */
  histories = new Histories()
  /** The ids of removed objects, and of agents that have left, oldest first. */
  #gone = new Set()
  #departed = new Set()

  /**
   * Observes the objects until the signal aborts.
   *
   * @param client a `CoatyClient`
   * @param {() => Promise<{ identity: any, since: number }[]>} departed returns the agents that left before, latest last
   * @param {() => void} changed
   * @param {(error?: any) => void} report as of `observe`
   */
  follow(client, departed, signal, changed, report) {
    let turns = 0
    const addDeparted = async () => {
      const turn = ++turns
      const agents = await departed()
      if (turn !== turns || signal.aborted) return
      this.depart(agents)
      changed()
    }
    const state = {
      begin: () => {
        this.histories.interrupt(Date.now())
        this.#clear()
        changed()
        // Without them, the present agents are still shown.
        addDeparted().catch(() => {})
      },
      take: (frame) => {
        this.take(frame, Date.now())
        changed()
      },
    }
    return observeState(client, { event: "advertise", snapshot: true, buffer: gatewayBuffer }, signal, state, report)
  }

  /** Applies an event of the subscription. @param now in milliseconds since 1970 */
  take(frame, now) {
    const { object } = frame.data
    const id = object.objectId
    const before = this.entries.get(id)
    const isKnown = before !== undefined && before.state !== "gone"
    this.version += 1
    if (frame.change === "removed") {
      if (isKnown) this.#remove(before, now)
      return
    }
    if (!isKnown && this.entries.size - this.#gone.size - this.#departed.size >= maximumObjects) {
      this.isCut = true
      return
    }
    this.#gone.delete(id)
    this.#departed.delete(id)
    const isCompared = frame.size <= maximumCompared
    const changes = isKnown && isCompared ? differences(before.object, object) : []
    if (changes.length > 0) this.histories.takeChanges(id, changes, before.changed, now)
    else if (!isKnown && isCompared) this.#resume(id, object, now)
    this.entries.set(id, {
      id,
      name: objectName(object),
      object,
      owner: frame.sourceId,
      since: frame.since ?? now,
      changed: frame.changed ?? now,
      state: isKnown && (!isCompared || changes.length > 0 || before.state === "changed") ? "changed" : "added",
      changes: changes.length > 0 || !isKnown || !isCompared ? changes : before.changes,
    })
  }

  /** Adds agents that left before the objects were observed, latest last. Agents that are known by now are left as they are. */
  depart(agents) {
    const known = [...this.#departed]
    this.#departed.clear()
    for (const { identity, since } of agents) {
      const id = identity.objectId
      if (this.entries.has(id)) continue
      this.entries.set(id, { id, name: objectName(identity), object: identity, owner: id, since, changed: since, state: "gone", changes: [] })
      this.#departed.add(id)
    }
    for (const id of known) this.#departed.add(id)
    this.#forgetDeparted()
    this.version += 1
  }

  #forgetDeparted() {
    for (const id of this.#departed) {
      if (this.#departed.size <= maximumDeparted) return
      this.#departed.delete(id)
      this.entries.delete(id)
    }
  }

  /** Removes the entries of objects that were removed too long ago, and of those beyond the maximum. */
  forget(now) {
    for (const id of this.#gone) {
      if (this.entries.get(id).changed > now - goneTime && this.#gone.size <= maximumGone) return
      this.#gone.delete(id)
      this.entries.delete(id)
      this.version += 1
    }
  }

  /** Continues the series that began before a reconnect. */
  #resume(id, object, now) {
    for (const [name] of this.histories.of(id)) {
      const property = Object.keys(object).find((property) => name === property || name.startsWith(`${property}.`))
      const found = property !== undefined && [...numbers(object[property], property)].find(([path]) => path === name)
      if (found) this.histories.take(id, name, now, found[1])
    }
  }

  #clear() {
    this.entries.clear()
    this.#gone.clear()
    this.#departed.clear()
    this.isCut = false
    this.version += 1
  }

  #remove(entry, now) {
    this.entries.set(entry.id, { ...entry, state: "gone", changed: now })
    if (isAgent(entry)) {
      this.#departed.add(entry.id)
      return this.#forgetDeparted()
    }
    this.#gone.add(entry.id)
    this.forget(now)
  }
}

/** Whether an object is the identity of an agent. */
export const isAgent = ({ object }) => object.coreType === "Identity"
