// The curl command and the client.js code for an event, an object, or a change of an IO context. Pure.

import { publishCode, requestCode, subscribeCode } from "./client-code.js"
import { curlCommand } from "./curl.js"
import { prettyJSON } from "./json-print.js"
import { patterns, restRequest, socketRequest } from "./patterns.js"
import { octetsText } from "./summary.js"

/**
 * A curl command and code for client.js. Both are created on demand, because a body may be large.
 *
 * @typedef {{ curl: () => string, client: () => string }} Code
 */

/**
 * Returns code that publishes an event again, or sends its request again. For events that clients cannot publish, the code
 * observes such events.
 *
 * @param {string} base the gateway's address
 * @param {boolean} needsToken
 * @returns {Code}
 */
export function codeOfEvent(frame, base, needsToken) {
  const { event, data, channelId, operation, topic } = frame
  const pattern = patterns.find((pattern) => pattern.event === event)
  const text = event === "raw" ? octetsText(data) : undefined
  if (pattern === undefined || (event === "raw" && text === undefined)) return observing(observationOf(frame), base, needsToken)
  const names = Object.entries({ channelId, operation, ...(event === "raw" && { topic }) }).filter(([, value]) => value !== undefined)
  const parameters = { ...pattern.parameters, ...Object.fromEntries(names) }
  const { what, options } = socketRequest(pattern, parameters, text ?? data)
  return {
    curl: () => curlCommand(restRequest(pattern, parameters, text ?? prettyJSON(data)), base, needsToken),
    client: () => (pattern.isRequest ? requestCode(what, options, base, needsToken) : publishCode(what, base, needsToken)),
  }
}

function observationOf({ event, contextName, topic }) {
  if (event === "raw") return { event, topic }
  return event === "associate" && contextName !== undefined ? { event, contextName } : { event: "traffic", events: [event] }
}

function observing(what, base, needsToken) {
  const { event, ...query } = what
  return {
    curl: () => curlCommand({ path: `v1/sse/${event}`, query, method: "GET", isStream: true }, base, needsToken),
    client: () => subscribeCode(what, undefined, base, needsToken),
  }
}

/** Returns code for an object: curl gets it, client.js observes it. @returns {Code} */
export function codeOfObject({ objectId }, base, needsToken) {
  const filter = ["objectId", ["Equals", objectId]]
  return {
    curl: () => curlCommand({ path: `v1/objects/${encodeURIComponent(objectId)}`, method: "GET" }, base, needsToken),
    client: () => subscribeCode({ event: "advertise", snapshot: true }, { filter }, base, needsToken),
  }
}

/**
 * Returns code that changes an IO context. Without a change, curl gets the context and client.js observes its routing.
 *
 * @param context the changed context
 * @param {{ method: string, body: any } | undefined} change the request to the gateway's REST API
 * @returns {Code}
 */
export function codeOfContext(context, change, base, needsToken) {
  const { objectId } = context
  const path = `v1/routing/contexts/${encodeURIComponent(objectId)}`
  if (change === undefined) {
    return {
      curl: () => curlCommand({ path, method: "GET" }, base, needsToken),
      client: () => subscribeCode({ event: "routing", contextId: objectId }, undefined, base, needsToken),
    }
  }
  const { method, body } = change
  const type = method === "PATCH" ? "application/merge-patch+json" : "application/json"
  return {
    curl: () => curlCommand({ path, method, body: prettyJSON(body), type }, base, needsToken),
    client: () => requestCode({ event: "update", data: { object: context } }, { timeout: 2000, limit: 1 }, base, needsToken),
  }
}
