// What an event is about, in a line.

import { line, plural, shortId } from "./dom.js"

/** The events of the traffic, in the order in which people look for them. */
export const trafficEvents = [
  "advertise", "deadvertise", "channel", "discover", "resolve", "query", "retrieve", "update", "complete",
  "call", "return", "associate", "iovalue",
]

/** Which event answers which. */
export const responses = { discover: "resolve", query: "retrieve", update: "complete", call: "return" }

/** Whether an event answers another one. */
export const isResponse = (event) => Object.values(responses).includes(event)

/** What it is about: the name of an object, an operation, a value. */
export function subject(frame, names) {
  const { data } = frame
  switch (frame.event) {
    case "advertise": case "update": case "complete": return objectName(data.object)
    case "channel": return `${line(frame.channelId ?? "", 60)} › ${objects(data)}`
    case "deadvertise": {
      const ids = Array.isArray(data.objectIds) ? data.objectIds : []
      return ids.length === 1 ? names.of(ids[0]) : plural(ids.length, "object")
    }
    case "resolve": return data.object ? objectName(data.object) : plural(data.relatedObjects?.length ?? 0, "related object")
    case "retrieve": return objects(data)
    case "discover": case "query": return line(wanted(data))
    case "call": return `${line(frame.operation ?? "", 80)}(${inner(data.parameters)})`
    case "return": return data.error ? line(`${data.error.code ?? ""} ${data.error.message ?? ""}`) : value(data.result)
    case "associate": {
      const pair = `${names.of(data.ioSourceId)} → ${names.of(data.ioActorId)}`
      return data.associatingRoute === undefined ? `${pair}, no longer` : pair
    }
    case "iovalue": return data.encoding ? octets(data) : value(data.value)
    case "raw": return octets(data)
    default: return ""
  }
}

/** The type of what it is about. */
export function kind(frame) {
  const { data } = frame
  const object = data?.object ?? data?.objects?.[0]
  return typeof object?.objectType === "string" ? line(object.objectType, 100) : frame.event === "raw" ? line(frame.topic, 100) : ""
}

/** The id of who sent it; an IO value comes from its source. */
export function senderId(frame) {
  return frame.sourceId ?? frame.ioSourceId
}

/** Who sent it. */
export function sender(frame, names) {
  const id = senderId(frame)
  return id === undefined ? "" : line(names.of(id), 80)
}

/** A value in a line. */
export function value(value) {
  return line(typeof value === "string" ? value : JSON.stringify(value) ?? "")
}

/** Octets as text where they are some, else how many they are. */
export function octets({ value }) {
  if (typeof value !== "string") return ""
  // A part of base64 that stands for whole octets.
  const bytes = Uint8Array.from(atob(value.slice(0, 400)), (character) => character.charCodeAt(0))
  try {
    return line(new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: true }))
  } catch {
    return plural(Math.floor((value.length * 3) / 4), "octet")
  }
}

function objectName(object) {
  if (typeof object?.name === "string" && object.name.trim() !== "") return line(object.name)
  return shortId(typeof object?.objectId === "string" ? object.objectId : "")
}

function objects(data) {
  if (!Array.isArray(data.objects)) return objectName(data.object)
  return data.objects.length === 1 ? objectName(data.objects[0]) : plural(data.objects.length, "object")
}

function wanted(data) {
  const types = [...list(data.objectTypes), ...list(data.coreTypes)]
  const ids = [data.objectId && shortId(data.objectId), data.externalId].filter(Boolean)
  return [...types, ...ids].join(", ")
}

const list = (value) => (Array.isArray(value) ? value : [])

function inner(parameters) {
  return parameters === undefined ? "" : Array.isArray(parameters) ? value(parameters).slice(1).replace(/]$/, "") : value(parameters)
}
