// What can be sent: of each pattern its fields, an example, what goes over the connection, and what over REST.
//
// The body is the event's payload. A field is a view of a part of it, or a parameter beside it.

import { newId } from "./ids.js"

/** The core types of objects. */
export const coreTypes = [
  "CoatyObject", "User", "Annotation", "Task", "IoContext", "IoNode", "IoSource", "IoActor", "Identity", "Log",
  "Location", "Snapshot",
]

/** What objects of a core type must have besides. */
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

/** Makes an object one of another core type: what the former one demands goes. */
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

/** A field for a member of the object. */
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

/** By what objects are looked for, and how their texts are read. */
const selectors = { objectTypes: "Object types", coreTypes: "Core types", objectId: "Object id", externalId: "External id" }
const isList = (selector) => selector.endsWith("s")
const selectorOf = (body) => Object.keys(selectors).find((name) => isObject(body) && Object.hasOwn(body, name)) ?? "objectTypes"

/** Fields for what is looked for. */
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

/** The default timeout and limit of requests. */
const requestFields = [
  { id: "timeout", label: "Timeout (ms)", kind: "number", minimum: 1, isParameter: true },
  { id: "limit", label: "Limit", kind: "number", minimum: 0, isParameter: true, hint: "0: all until the timeout" },
]
const requestDefaults = { timeout: 2000, limit: 0 }

/**
 * @typedef {object} Pattern
 * @property {string} event its name
 * @property {string} hint what it is for
 * @property {any[]} fields
 * @property {() => any} example a body
 * @property {Record<string, any>} [parameters] their defaults
 * @property {boolean} [isRequest] whether it is answered
 * @property {boolean} [isText] whether the body is a text rather than JSON
 * @property {(parameters: any) => string} [path] where it is posted to
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

/** What is posted for the same: see curl.js. */
export function restRequest(pattern, parameters, body) {
  const { timeout, limit, retain } = parameters
  const query = pattern.isRequest ? { timeout, limit } : retain ? { retain } : {}
  return { path: pattern.path?.(parameters) ?? `v1/${pattern.event}`, query, body, isJSON: !pattern.isText }
}

/** What goes over the connection, and how it is answered. */
export function socketRequest(pattern, parameters, body) {
  const { timeout, limit, ...more } = parameters
  const data = pattern.isText ? { encoding: "utf8", value: body } : body
  return { what: { event: pattern.event, ...more, data }, options: pattern.isRequest ? { timeout, limit } : {} }
}

/** Maximum bytes of a frame by the gateway's default settings. A larger one ends the connection. */
export const maximumFrame = 1 << 20

/** How many bytes what goes over the connection has, with the longest id of a client. */
export function frameSize({ what, options }) {
  return new TextEncoder().encode(JSON.stringify({ ...what, ...options, op: "publish", id: "9007199254740991" })).length
}

/** What is wrong with the value of a parameter, in words. */
export function fault(field, value) {
  if (field.kind === "checkbox") return undefined
  if (field.kind === "number") {
    return Number.isInteger(value) && value >= field.minimum ? undefined : `A whole number of ${field.minimum} or more belongs here.`
  }
  if (value === "") return "This is needed."
  if (hasHalfCharacter(value)) return "It has half of a character."
  return value === "." || value === ".." ? "“.” and “..” can't stand in an address." : undefined
}

/** Whether a text can't be sent because of a surrogate without its other half. */
export const hasHalfCharacter = (text) => /\p{Surrogate}/u.test(text)
