// The objects that are alive, and how they change.

import { observeState } from "./observe.js"
import { objectName } from "./summary.js"
import { Histories, numbers } from "./value-history.js"

/** How many objects are kept, and how many of those that have gone, and for how many milliseconds these are. */
export const maximumObjects = 20_000
const maximumGone = 200
const goneTime = 60_000
/** The largest objects, in about bytes, that are compared with what they were, and how many changed properties are told. */
const maximumCompared = 64 << 10
const maximumChanges = 12
const gatewayBuffer = 4096

/**
 * What is known of an object.
 *
 * @typedef {{ id: string, name: string, object: any, owner: string, since: number, changed: number,
 *   state: "added" | "changed" | "gone", changes: { property: string, before: any, after: any }[] }} Entry
 */

/** Follows the objects that are alive. */
export class AliveObjects {
  /** @type {Map<string, Entry>} */
  entries = new Map()
  /** Whether there were more objects than are kept. */
  isCut = false
  /** Grows with each change. */
  version = 0
  /** The numeric properties that have changed, by object; they outlast a reconnect. */
  histories = new Histories()
  #gone = new Set()

  /**
   * Follows them until the signal says stop.
   *
   * @param client what subscribes
   * @param {() => void} changed
   * @param {(error?: any) => void} report as of `observe`
   */
  follow(client, signal, changed, report) {
    const state = {
      begin: () => {
        this.histories.interrupt(Date.now())
        this.#clear()
        changed()
      },
      take: (frame) => {
        this.take(frame, Date.now())
        changed()
      },
    }
    return observeState(client, { event: "advertise", snapshot: true, buffer: gatewayBuffer }, signal, state, report)
  }

  /** Takes an event. */
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
    if (!isKnown && this.entries.size - this.#gone.size >= maximumObjects) {
      this.isCut = true
      return
    }
    this.#gone.delete(id)
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

  /** Forgets what has been gone for long. */
  forget(now) {
    for (const id of this.#gone) {
      if (this.entries.get(id).changed > now - goneTime && this.#gone.size <= maximumGone) return
      this.#gone.delete(id)
      this.entries.delete(id)
      this.version += 1
    }
  }

  /** Takes the values of series that began before a reconnect. */
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
    this.isCut = false
    this.version += 1
  }

  #remove(entry, now) {
    this.entries.set(entry.id, { ...entry, state: "gone", changed: now })
    this.#gone.add(entry.id)
    this.forget(now)
  }
}

/** Which properties of an object differ from what they were. */
function differences(before, after) {
  const changes = []
  for (const property of new Set([...Object.keys(before), ...Object.keys(after)])) {
    if (changes.length === maximumChanges) break
    if (JSON.stringify(before[property]) !== JSON.stringify(after[property])) {
      changes.push({ property, before: before[property], after: after[property] })
    }
  }
  return changes
}
