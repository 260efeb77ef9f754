// The data of the routing view, made of the gateway's answers and events. Pure. Values from the network may have any type.

import { line, plural } from "./dom.js"
import { octets } from "./summary.js"

/** Maximum number of associations; further ones are left out. */
export const maximumAssociations = 100_000

/** Maximum number of external routes that are observed. */
export const maximumExternalRoutes = 32

/** Maximum number of characteristics of a node that are shown. */
const maximumNotes = 2
/** Maximum length of names, value types and notes, in characters. */
const maximumLength = 200
/** Maximum length of a topic in UTF-16 units (up to three octets each; the gateway accepts 65,535 octets), and maximum levels. */
const maximumTopic = 21_000
const maximumLevels = 200

export const edgeKey = (sourceId, actorId) => `${sourceId}:${actorId}`

/** The associations of a context, updated by the changes. */
export class Associations {
  #all = new Map()
  isCut = false

  /** @param changes `{added, changed, removed}`, each a list of `{ioSourceId, ioActorId, updateRate?}` */
  apply(changes) {
    for (const { key } of toEdges(changes?.removed)) this.#all.delete(key)
    for (const association of [...toEdges(changes?.added), ...toEdges(changes?.changed)]) {
      if (this.#all.size < maximumAssociations || this.#all.has(association.key)) this.#all.set(association.key, association)
      else this.isCut = true
    }
  }

  clear() {
    this.#all.clear()
    this.isCut = false
  }

  get size() {
    return this.#all.size
  }

  get(key) {
    return this.#all.get(key)
  }

  has(sourceId, actorId) {
    return this.#all.has(edgeKey(sourceId, actorId))
  }

  values() {
    return this.#all.values()
  }
}

/** Returns the edges of the associations with a source and an actor. */
function toEdges(associations) {
  return list(associations)
    .filter((association) => typeof association?.ioSourceId === "string" && typeof association.ioActorId === "string")
    .map(({ ioSourceId: sourceId, ioActorId: actorId, updateRate }) =>
      ({ key: edgeKey(sourceId, actorId), sourceId, actorId, rate: typeof updateRate === "number" ? updateRate : undefined }))
}

/**
 * Returns the edges to draw: the marked ones first, then those of the chosen source and actor, then the others.
 *
 * @param marks null, `{whatIf: {added, removed}}` or `{explained: {sourceId, actorId, isAssociated}}`
 * @param chosen `{sourceId, actorId}`; either may be undefined
 * @returns `[{key, sourceId, actorId, rate, mark?, isReal}]`; an edge that is not real is only a mark
 */
export function edgesOf(associations, marks, chosen = {}) {
  const marked = new Map()
  const mark = (edge, name) => {
    const real = associations.get(edge.key)
    marked.set(edge.key, { ...edge, ...real, mark: name, isReal: real !== undefined })
  }
  for (const added of toEdges(marks?.whatIf?.added)) mark(added, "added")
  for (const removed of toEdges(marks?.whatIf?.removed)) mark(removed, "removed")
  if (marks?.explained) {
    const { sourceId, actorId } = marks.explained
    mark({ key: edgeKey(sourceId, actorId), sourceId, actorId }, "explained")
  }
  const ofChosen = []
  const others = []
  for (const association of associations.values()) {
    if (marked.has(association.key)) continue
    const isOfChosen = association.sourceId === chosen.sourceId || association.actorId === chosen.actorId
    const list = isOfChosen ? ofChosen : others
    list.push({ ...association, isReal: true })
  }
  return [...marked.values(), ...ofChosen, ...others]
}

/**
 * Returns the IO nodes of a context as `layout` takes them. Sources and actors that only edges name are in a separate node.
 *
 * @param nodes IO nodes as they were advertised
 * @param agentName `(agentId) => name`
 */
export function graphNodes(nodes, edges, agentName) {
  const known = new Set()
  const points = (values) =>
    list(values).filter((point) => isNew(point?.objectId, known)).map(toPoint)
  const graph = list(nodes).filter((node) => node && typeof node === "object").map((node) => ({
    id: text(node.objectId),
    title: agentName(text(node.parentObjectId) || text(node.objectId)),
    notes: characteristics(node.characteristics),
    sources: points(node.ioSources),
    actors: points(node.ioActors),
  }))
  const stray = { id: "", title: "Not of a known node", notes: [], sources: [], actors: [] }
  for (const { sourceId, actorId } of edges) {
    if (isNew(sourceId, known)) stray.sources.push(toPoint({ objectId: sourceId }))
    if (isNew(actorId, known)) stray.actors.push(toPoint({ objectId: actorId }))
  }
  return stray.sources.length + stray.actors.length > 0 ? [...graph, stray] : graph
}

function isNew(id, known) {
  if (typeof id !== "string" || known.has(id)) return false
  known.add(id)
  return true
}

function toPoint(point) {
  return {
    id: point.objectId,
    name: line(text(point.name), maximumLength).trim() || line(point.objectId, maximumLength),
    valueType: text(point.valueType).slice(-maximumLength),
    externalRoute: text(point.externalRoute) || undefined,
  }
}

/** Returns the first characteristics of a node as lines. */
function characteristics(value) {
  const notes = []
  if (!value || typeof value !== "object") return notes
  for (const name in value) {
    if (notes.length === maximumNotes) break
    notes.push(line(`${line(name, maximumLength)}: ${line(value[name], maximumLength)}`, maximumLength))
  }
  return notes
}

/** Returns whether a text is a topic that the gateway accepts: no filter, no broker topic (`$…`), within the bounds. */
export function isPlainTopic(topic) {
  return topic.length > 0 && topic.length <= maximumTopic && !/^\$|[+#\p{Cc}\p{Cs}]/u.test(topic)
    && topic.split("/").length <= maximumLevels
}

/**
 * Returns the external routes of sources.
 *
 * @param sources `[{id, externalRoute?}]`
 * @returns `{routes, improper, beyond}`: the ids of sources by topic, and the number of routes that are not observed because
 *   they are no plain topics or beyond the maximum
 */
export function routesOf(sources) {
  const routes = new Map()
  const improper = new Set()
  const beyond = new Set()
  for (const { id, externalRoute: topic } of sources) {
    // The subscription `traffic` delivers values on Coaty's topics.
    if (topic === undefined || topic.startsWith("coaty/")) continue
    if (!isPlainTopic(topic)) improper.add(topic)
    else if (routes.has(topic)) routes.get(topic).push(id)
    else if (routes.size < maximumExternalRoutes) routes.set(topic, [id])
    else beyond.add(topic)
  }
  return { routes, improper: improper.size, beyond: beyond.size }
}

/** Returns a text about the routes that are not observed; empty if all are. */
export function unobservedText({ improper, beyond, refused }) {
  const reasons = [
    [improper, "no plain topic", "no plain topics"],
    [beyond, `beyond the ${maximumExternalRoutes} that are observed`],
    [refused, "refused by the gateway"],
  ].filter(([count]) => count > 0).map(([count, one, many = one]) => `${count} ${count === 1 ? `is ${one}` : `are ${many}`}`)
  const all = improper + beyond + refused
  return all === 0 ? "" : `Values on ${plural(all, "external route")} are not shown: ${reasons.join(", ")}.`
}

/** Returns an update rate in words. @param milliseconds undefined if no rate is recommended */
export function rateText(milliseconds) {
  if (typeof milliseconds !== "number") return "as they come"
  if (milliseconds < 1000) return `every ${milliseconds} ms`
  if (milliseconds < 60_000) return `every ${round(milliseconds / 1000)} s`
  return `every ${round(milliseconds / 60_000)} min`
}

const round = (number) => Math.round(number * 100) / 100

/** Returns the rate of each associated source: the common rate of its associations, or null if they differ. */
export function ratesOfSources(edges) {
  const rates = new Map()
  for (const { sourceId, rate, mark, isReal } of edges) {
    if (!isReal && mark !== "added") continue
    rates.set(sourceId, rates.has(sourceId) && rates.get(sourceId) !== rate ? null : rate)
  }
  return rates
}

/** Returns an IO value as text. @param data `{value}`, or octets `{encoding, value}` */
export function valueText(data) {
  return data?.encoding === undefined ? line(data?.value, maximumLength) : octets(data)
}

const list = (value) => (Array.isArray(value) ? value : [])
const text = (value) => (typeof value === "string" ? value : "")
