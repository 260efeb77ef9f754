// Describes how an object has changed. Without side effects.

import { stringifyExact } from "../client.js"
import { line } from "./dom.js"

/** Maximum number of changes of an object. */
const maximumChanges = 12
/** Maximum size, in about bytes, of objects whose changes are determined. */
export const maximumCompared = 64 << 10
/** Maximum number of objects whose last version is remembered, and maximum bytes of their frames. */
export const maximumRemembered = 2000
export const maximumRememberedBytes = 2 << 20
/** Maximum number of characters of the name of a member, of a value, and of the text. */
const maximumName = 60
const maximumValue = 60
const maximumText = 200

/** Members that every object has. They are not shown as its values. */
const common = new Set(["coreType", "objectType", "objectId", "name", "parentObjectId", "externalId"])

/** Returns the properties in which two versions of an object differ. */
export function differences(before, after) {
  const changes = []
  for (const property of new Set([...Object.keys(before), ...Object.keys(after)])) {
    if (changes.length === maximumChanges) break
    if (stringifyExact(before[property]) !== stringifyExact(after[property])) {
      changes.push({ property, before: before[property], after: after[property] })
    }
  }
  return changes
}

/** Returns a value as text, "–" for none. */
export const shown = (value) => (value === undefined ? "–" : line(value, maximumValue))

/** Returns changes as text: "isOpen: false → true, place: – → Hall". */
export const changesText = (changes) =>
  line(changes.map(({ property, before, after }) => `${line(property, maximumName)}: ${shown(before)} → ${shown(after)}`).join(", "), maximumText)

/** Returns the members of an object that not every object has, as text: "isOpen: true". */
export function valuesText(object) {
  const texts = []
  for (const name of Object.keys(object ?? {})) {
    if (common.has(name)) continue
    texts.push(`${line(name, maximumName)}: ${shown(object[name])}`)
    if (texts.length === maximumChanges) break
  }
  return line(texts.join(", "), maximumText)
}

/** The last versions of the objects in events. Those seen least recently are forgotten. */
export class LastObjects {
  /** `{ object, size }` by object id, the one seen last at the end. */
  #versions = new Map()
  #bytes = 0

  /**
   * Notes the object of an event.
   *
   * @returns its former version; undefined if it is not remembered
   */
  take({ event, data, size }) {
    const object = data?.object
    const id = object?.objectId
    if (typeof id !== "string") return undefined
    const former = this.#versions.get(id)
    // An Update event only asks for a change.
    if (event === "update") return former?.object
    this.#forget(id, former)
    if (size > maximumCompared) return undefined
    this.#versions.set(id, { object, size })
    this.#bytes += size
    while (this.#versions.size > maximumRemembered || this.#bytes > maximumRememberedBytes) this.#forget(...this.#versions.entries().next().value)
    return former?.object
  }

  #forget(id, version) {
    if (version === undefined) return
    this.#versions.delete(id)
    this.#bytes -= version.size
  }
}
