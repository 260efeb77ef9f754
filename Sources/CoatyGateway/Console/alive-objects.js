// The objects that are alive, and how they change.

/** How many objects are kept, and how many of those that have gone, and for how long these are. */
export const maximumObjects = 20_000
const maximumGone = 200
const goneTime = 60_000
/** How many changed properties are told of one change. */
const maximumChanges = 12

/**
 * What is known of an object.
 *
 * @typedef {{ id: string, object: any, owner: string, since: number, changed: number, state: "added" | "changed" | "gone",
 *   changes: { property: string, before: any, after: any }[] }} Entry
 */

/** Follows a subscription with a snapshot. */
export class AliveObjects {
  /** @type {Map<string, Entry>} */
  entries = new Map()
  /** Whether there were more objects than are kept. */
  isCut = false
  #gone = new Set()

  /** Takes a frame of the subscription. */
  take(frame, now) {
    if (frame.op === "gap") return
    const { object } = frame.data
    if (frame.change === "removed") return this.#remove(object.objectId, now)
    const before = this.entries.get(object.objectId)
    const isKnown = before !== undefined && before.state !== "gone"
    if (!isKnown && this.entries.size - this.#gone.size >= maximumObjects) {
      this.isCut = true
      return
    }
    this.#gone.delete(object.objectId)
    const changes = isKnown ? difference(before.object, object) : []
    this.entries.set(object.objectId, {
      id: object.objectId,
      object,
      owner: frame.sourceId,
      since: frame.since ?? before?.since ?? now,
      changed: frame.changed ?? now,
      state: isKnown && (changes.length > 0 || before.state === "changed") ? "changed" : "added",
      changes: changes.length > 0 ? changes : isKnown ? before.changes : [],
    })
  }

  /** Forgets all: the snapshot comes anew. */
  clear() {
    this.entries.clear()
    this.#gone.clear()
    this.isCut = false
  }

  /** Forgets what has been gone for long. */
  forget(now) {
    for (const id of this.#gone) {
      const entry = this.entries.get(id)
      if (entry !== undefined && entry.changed > now - goneTime && this.#gone.size <= maximumGone) return
      this.#gone.delete(id)
      this.entries.delete(id)
    }
  }

  #remove(id, now) {
    const entry = this.entries.get(id)
    if (entry === undefined || entry.state === "gone") return
    this.entries.set(id, { ...entry, state: "gone", changed: now })
    this.#gone.add(id)
    this.forget(now)
  }
}

/** Which properties differ. */
export function difference(before, after) {
  const changes = []
  for (const property of new Set([...Object.keys(before), ...Object.keys(after)])) {
    if (changes.length === maximumChanges) break
    if (JSON.stringify(before[property]) !== JSON.stringify(after[property])) {
      changes.push({ property, before: before[property], after: after[property] })
    }
  }
  return changes
}
