// Summaries of events. Agents may send any data, so that every function returns texts for every type of value.

import { line, lineEnd, plural, shortId } from "./dom.js"

/** The events of the subscription `traffic`, in the order of their filter chips. */
export const trafficEvents = [
  "advertise", "deadvertise", "channel", "discover", "resolve", "query", "retrieve", "update", "complete",
  "call", "return", "associate", "iovalue",
]

const responses = { discover: "resolve", query: "retrieve", update: "complete", call: "return" }

/** Returns whether an event is a request. */
export const isRequest = (event) => Object.hasOwn(responses, event)

/** Returns whether an event is a response. */
export const isResponse = (event) => Object.values(responses).includes(event)

/** Returns whether an event is a response that reports an error. */
export const isFailure = ({ event, data }) => event === "return" && data?.error !== undefined

/** Returns the request pattern of a request or response; undefined for other events. */
export const requestOf = (event) => (isRequest(event) ? event : Object.keys(responses).find((request) => responses[request] === event))

/** Returns the subject of an event, such as the name of an object, an operation or a value. */
export const subject = (frame, names) => subjectParts(frame, names).join("")

/** Returns the subject in two parts: the channel or the operation, and the rest. @returns {[string, string]} */
export function subjectParts(frame, names) {
  const { data } = frame
  switch (frame.event) {
    case "channel": return [`${line(frame.channelId, 60)} › `, objects(data)]
    case "call": return [line(frame.operation, 80), `(${parameters(data.parameters)})`]
    default: return ["", content(frame, names)]
  }
}

function content(frame, names) {
  const { data } = frame
  switch (frame.event) {
    case "advertise": case "update": case "complete": return objectName(data.object)
    case "deadvertise": {
      const ids = list(data.objectIds)
      return ids.length === 1 ? names.of(ids[0]) : plural(ids.length, "object")
    }
    case "resolve": return data.object === undefined ? plural(list(data.relatedObjects).length, "related object") : objectName(data.object)
    case "retrieve": return objects(data)
    case "discover": case "query": return wanted(data)
    case "return": return data.error === undefined ? line(data.result) : failure(data.error)
    case "associate": {
      const pair = `${names.of(data.ioSourceId)} → ${names.of(data.ioActorId)}`
      return data.associatingRoute === undefined ? `${pair}, no longer` : pair
    }
    case "iovalue": return data.encoding === undefined ? line(data.value) : octets(data)
    case "raw": return octets(data)
    default: return ""
  }
}

/** Returns the object type of an event, or the topic of a raw event. */
export function kind(frame) {
  if (frame.event === "raw") return lineEnd(frame.topic, 100)
  const object = frame.data.object ?? list(frame.data.objects)[0]
  return typeof object?.objectType === "string" ? lineEnd(object.objectType, 100) : ""
}

/** Returns the id of the sender; for an IO value, of its source. */
export function senderId(frame) {
  return frame.sourceId ?? frame.ioSourceId
}

/** Returns the name of the sender. */
export function sender(frame, names) {
  const id = senderId(frame)
  return id === undefined ? "" : names.of(id)
}

/** Returns octets in base64 as text, or their number if they are not UTF-8. */
export function octets({ value }) {
  if (typeof value !== "string") return ""
  try {
    // 400 characters of base64 are 300 whole octets.
    const bytes = Uint8Array.from(atob(value.slice(0, 400)), (character) => character.charCodeAt(0))
    return line(new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: true }))
  } catch {
    return plural(Math.floor((value.replace(/=+$/, "").length * 3) / 4), "octet")
  }
}

/** Decodes octets in base64 as UTF-8; returns undefined if they are not UTF-8. */
export function octetsText({ value }) {
  if (typeof value !== "string") return undefined
  try {
    const bytes = Uint8Array.from(atob(value), (character) => character.charCodeAt(0))
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return undefined
  }
}

/** Returns the name of an object, or the beginning of its id. */
export function objectName(object) {
  const name = typeof object?.name === "string" ? line(object.name) : ""
  return name.trim() === "" ? shortId(object?.objectId) : name
}

function objects(data) {
  if (!Array.isArray(data.objects)) return objectName(data.object)
  return data.objects.length === 1 ? objectName(data.objects[0]) : plural(data.objects.length, "object")
}

function wanted({ objectTypes, coreTypes, objectId, externalId }) {
  const types = [...list(objectTypes).slice(0, 10), ...list(coreTypes).slice(0, 10)].map((type) => lineEnd(type, 60))
  const ids = [objectId === undefined ? "" : shortId(objectId), line(externalId, 60)].filter((text) => text !== "")
  return line([...types, ...ids].join(", "))
}

function failure(error) {
  return typeof error === "object" && error !== null ? line(`${line(error.code, 20)} ${line(error.message)}`) : line(error)
}

/** Returns parameters as text, a list without its brackets. */
function parameters(value) {
  return Array.isArray(value) ? line(value).replace(/^\[ ?/, "").replace(/ ?]$/, "") : line(value)
}

const list = (value) => (Array.isArray(value) ? value : [])
