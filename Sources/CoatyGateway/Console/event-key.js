// Keys of events for the address. A page finds an event by its key only if it has received the event.

import { stringifyExact } from "../client.js"

/**
 * Returns the key of an event.
 *
 * The key of a request or response contains the correlation id; the key of another event is a digest of its content, so that
 * events with equal content have equal keys.
 */
export function eventKey(frame) {
  if (typeof frame.correlationId === "string") return [frame.event, frame.correlationId, frame.sourceId].join(" ").slice(0, 200)
  return `${frame.event} ${digest(`${frame.topic ?? ""}\n${stringifyExact(frame.data)}`)}`
}

/** Returns two 32-bit hashes (FNV-1a with different primes). Not collision-resistant. */
function digest(text) {
  let [one, other] = [0x811c9dc5, 0x01000193]
  for (let index = 0; index < text.length; index += 1) {
    const unit = text.charCodeAt(index)
    one = Math.imul(one ^ unit, 0x01000193)
    other = Math.imul(other ^ unit, 0x85ebca6b)
  }
  return [one, other].map((sum) => (sum >>> 0).toString(16).padStart(8, "0")).join("")
}
