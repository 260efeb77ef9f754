// Finds a text in the data of events and in objects. Pure.

import { octetsText } from "./summary.js"

/** Maximum number of names and values of one event or object that are compared. Further ones are not found. */
export const maximumCompared = 10_000

/** Members whose names are not compared, because every object has them. */
const common = new Set(["coreType", "objectType", "objectId", "name"])

/**
 * Returns whether an object contains a text, in the name of a member or in a value, except its core type.
 *
 * @param {any} object any JSON, also with integers as `bigint`
 * @param {string} text in lower case
 */
export function hasValue(object, text) {
  const isFound = (value) => String(value).toLowerCase().includes(text)
  const waiting = [object]
  for (let left = maximumCompared; waiting.length > 0 && left > 0; left -= 1) {
    const value = waiting.pop()
    if (Array.isArray(value)) {
      for (const item of value.slice(0, left)) waiting.push(item)
    } else if (typeof value === "object" && value !== null) {
      for (const name of Object.keys(value).slice(0, left)) {
        if (!common.has(name) && isFound(name)) return true
        if (name !== "coreType") waiting.push(value[name])
      }
    } else if (value !== undefined && isFound(value)) {
      return true
    }
  }
  return false
}

/** Returns whether the data of an event contains a text. Octets are compared as UTF-8. */
export function frameHasValue({ data }, text) {
  if (typeof data !== "object" || data === null) return false
  if (data.encoding !== undefined) return hasValue(data.encoding === "base64" ? octetsText(data) : data.value, text)
  // The names of the members of data are the same in each event.
  return Object.values(data).some((value) => hasValue(value, text))
}
