// The patterns that can be sent: their fields, an example, and their WebSocket frame and REST request.
//
// The body is the event's payload. A field edits a part of the body, or a parameter next to it.

import { stringifyExact } from "../client.js"
import { newId } from "./ids.js"

/** The core types of objects. */
export const coreTypes = [
  "CoatyObject", "User", "Annotation", "Task", "IoContext", "IoNode", "IoSource", "IoActor", "Identity", "Log",
  "Location", "Snapshot",
]

/** Returns example values for the properties that a core type requires. */
function required(coreType) {
  const created = { creatorId: newId(), creationTimestamp: Date.now() }
  switch (coreType) {
    case "User": return { names: { formatted: "Ann Example" } }
    case "Annotation": return { type: 0, ...created, status: 0 }
    case "Task": return { ...created, status: 0 }
    case "IoSource": case "IoActor": return { valueType: "com.example.Value" }
    case "Log": return { logLevel: 20, logMessage: "", logDate: new Date().toISOString() }
    case "Location": return { geoLocation: { timestamp: Date.now(), coords: { latitude: 0, longitude: 0, accuracy: 1 } } }
    case "Snapshot": return { ...created, parentObjectId: newId(), object: exampleObject() }
    default: return {}
  }
}

const exampleObject = () => ({ coreType: "CoatyObject", objectType: "com.example.Door", objectId: newId(), name: "Front door" })

/** Changes the core type of the object: properties that the former type requires are replaced by those of the new type. */
function setCoreType(body, coreType) {
  const former = objectOf(body)
  const demanded = required(former.coreType)
  const kept = Object.fromEntries(Object.entries(former).filter(([name]) => !Object.hasOwn(demanded, name)))
  const isOwnType = former.objectType === `coaty.${former.coreType}`
  body.object = { ...kept, coreType, ...(isOwnType && { objectType: `coaty.${coreType}` }), ...required(coreType) }
}

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value)
const objectOf = (body) => (isObject(body?.object) ? body.object : {})
const text = (value) => (typeof value === "string" ? value : "")
const list = (value) => (Array.isArray(value) ? value.filter((item) => typeof item === "string") : [text(value)]).join(", ")
const items = (value) => value.split(/[\s,]+/).filter((item) => item !== "")

/** Returns a field for a member of the object. */
const member = (name, label, more = {}) => ({
  id: name, label,
  get: (body) => text(objectOf(body)[name]),
  set: (body, value) => { body.object = { ...objectOf(body), [name]: value } },
  ...more,
})

const objectFields = [
  member("coreType", "Core type", { kind: "select", options: coreTypes, set: setCoreType }),
  member("objectType", "Object type"),
  member("name", "Name", { isWide: true }),
  member("objectId", "Object id", { makeNew: newId, isWide: true }),
]

/** The properties that select objects, with their labels. */
const selectors = { objectTypes: "Object types", coreTypes: "Core types", objectId: "Object id", externalId: "External id" }
const isList = (selector) => selector.endsWith("s")
const selectorOf = (body) => Object.keys(selectors).find((name) => isObject(body) && Object.hasOwn(body, name)) ?? "objectTypes"

/** Returns the fields for a selector and its value. */
const selectorFields = (names) => [
  {
    id: "selector", label: "Look for", kind: "select", options: names, titles: selectors,
    get: selectorOf,
    set: (body, selector) => {
      for (const name of names) delete body[name]
      body[selector] = isList(selector) ? [selector === "coreTypes" ? "Identity" : "com.example.Door"] : newId()
    },
  },
  {
    id: "wanted", label: (body) => selectors[selectorOf(body)],
    get: (body) => list(body?.[selectorOf(body)]),
    set: (body, value) => { body[selectorOf(body)] = isList(selectorOf(body)) ? items(value) : value.trim() },
  },
]

const parameter = (id, label, placeholder) => ({ id, label, placeholder, isParameter: true })

/** The fields for the timeout and limit of requests. */
const requestFields = [
  { id: "timeout", label: "Timeout (ms)", kind: "number", minimum: 1, isParameter: true },
  { id: "limit", label: "Limit", kind: "number", minimum: 0, isParameter: true, hint: "0: all until the timeout" },
]
const requestDefaults = { timeout: 2000, limit: 0 }

/**
 * @typedef {object} Pattern
 * @property {string} event the name of the event
 * @property {string} hint its purpose
 * @property {any[]} fields
 * @property {() => any} example returns an example of the body
 * @property {Record<string, any>} [parameters] the defaults of the parameters
 * @property {boolean} [isRequest] whether the event is a request
 * @property {boolean} [isText] whether the body is a text rather than JSON
 * @property {(parameters: any) => string} [path] returns the path of the REST request; `v1/` and the event by default
 */

/** @type {Pattern[]} */
export const patterns = [
  {
    event: "advertise", hint: "Advertises an object to all agents.",
    fields: objectFields, example: () => ({ object: { ...exampleObject(), isOpen: true } }),
  },
  {
    event: "deadvertise", hint: "Withdraws advertised objects.",
    fields: [{
      id: "objectIds", label: "Object ids", placeholder: "ids, separated by commas", isWide: true,
      get: (body) => list(body?.objectIds ?? []), set: (body, value) => { body.objectIds = items(value) },
    }],
    example: () => ({ objectIds: [] }),
  },
  {
    event: "channel", hint: "Sends an object to the subscribers of a channel.",
    fields: [{ ...parameter("channelId", "Channel", "news"), isWide: true }, ...objectFields],
    example: () => ({ object: exampleObject() }),
    parameters: { channelId: "" },
    path: ({ channelId }) => `v1/channel/${encodeURIComponent(channelId)}`,
  },
  {
    event: "discover", hint: "Asks for objects by type or id. Agents respond with Resolve events.", isRequest: true,
    fields: [...selectorFields(Object.keys(selectors)), ...requestFields],
    example: () => ({ coreTypes: ["Identity"] }), parameters: { ...requestDefaults },
  },
  {
    event: "query", hint: "Asks for objects that match a filter. Agents respond with Retrieve events.", isRequest: true,
    fields: [...selectorFields(["objectTypes", "coreTypes"]), ...requestFields],
    example: () => ({ objectTypes: ["com.example.Door"], objectFilter: { conditions: ["isOpen", ["Equals", true]], take: 10 } }),
    parameters: { ...requestDefaults },
  },
  {
    event: "update", hint: "Asks for an update of an object. Its owner responds with a Complete event.", isRequest: true,
    fields: [...objectFields, ...requestFields], example: () => ({ object: { ...exampleObject(), isOpen: false } }),
    parameters: { ...requestDefaults, limit: 1 },
  },
  {
    event: "call", hint: "Calls a remote operation. Agents respond with a result or an error.", isRequest: true,
    fields: [{ ...parameter("operation", "Operation", "com.example.add"), isWide: true }, ...requestFields],
    example: () => ({ parameters: [1, 2] }), parameters: { ...requestDefaults, limit: 1, operation: "" },
    path: ({ operation }) => `v1/call/${encodeURIComponent(operation)}`,
  },
  {
    event: "raw", hint: "Publishes a text on an MQTT topic outside of Coaty.", isText: true,
    fields: [
      { ...parameter("topic", "Topic", "greenhouse/door"), isWide: true },
      { id: "retain", label: "Retain", kind: "checkbox", isParameter: true },
    ],
    example: () => "open", parameters: { topic: "", retain: false },
    path: ({ topic }) => `v1/raw/${encodeURIComponent(topic)}`,
  },
]

/** Returns the REST request of an event, as `curlCommand` takes it. */
export function restRequest(pattern, parameters, body) {
  const { timeout, limit, retain } = parameters
  const query = pattern.isRequest ? { timeout, limit } : retain ? { retain } : {}
  return { path: pattern.path?.(parameters) ?? `v1/${pattern.event}`, query, body, isJSON: !pattern.isText }
}

/** Returns the event as client.js takes it, and the options of a request. */
export function socketRequest(pattern, parameters, body) {
  const { timeout, limit, ...more } = parameters
  const data = pattern.isText ? { encoding: "utf8", value: body } : body
  return { what: { event: pattern.event, ...more, data }, options: pattern.isRequest ? { timeout, limit } : {} }
}

/** Maximum bytes of a frame in the gateway's default settings. A larger frame ends the connection. */
export const maximumFrame = 1 << 20

/** Returns the maximum bytes of the frame of an event, with the longest id that a client assigns. */
export function frameSize({ what, options }) {
  return new TextEncoder().encode(stringifyExact({ ...what, ...options, op: "publish", id: "9007199254740991" })).length
}

/** Returns an error text for the value of a parameter; undefined if it is valid. */
export function fault(field, value) {
  if (field.kind === "checkbox") return undefined
  if (field.kind === "number") {
    return Number.isInteger(value) && value >= field.minimum ? undefined : `A whole number of ${field.minimum} or more belongs here.`
  }
  if (value === "") return "This is needed."
  if (hasHalfCharacter(value)) return "It has half of a character."
  return value === "." || value === ".." ? "“.” and “..” can't stand in an address." : undefined
}

/** Returns whether a text contains an unpaired surrogate, which can't be sent. */
export const hasHalfCharacter = (text) => /\p{Surrogate}/u.test(text)
