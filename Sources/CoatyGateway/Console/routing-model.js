// What the routing view knows of a context, made of what the gateway tells. Pure; all that comes from the network is taken
// with whatever types it has.

/** How many associations are kept; those beyond are left out. */
export const maximumAssociations = 100_000

/** How many characteristics of a node are shown. */
const maximumNotes = 2
/** Of names, value types and notes, in characters. */
const maximumLength = 200

export const edgeKey = (sourceId, actorId) => `${sourceId}:${actorId}`

/** The associations of a context, kept as the changes come. */
export class Associations {
  #all = new Map()
  isCut = false

  /** @param changes `{added, changed, removed}`, each a list of `{ioSourceId, ioActorId, updateRate?}` */
  apply(changes) {
    for (const gone of list(changes?.removed)) this.#all.delete(edgeKey(gone.ioSourceId, gone.ioActorId))
    for (const come of [...list(changes?.added), ...list(changes?.changed)]) {
      const association = toEdge(come)
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

function toEdge({ ioSourceId, ioActorId, updateRate }) {
  return { key: edgeKey(ioSourceId, ioActorId), sourceId: text(ioSourceId), actorId: text(ioActorId), rate: updateRate }
}

/**
 * The edges to draw: the marked ones first, then those of the source and the actor that are chosen.
 *
 * @param marks null, `{whatIf: {added, removed}}` or `{explained: {sourceId, actorId, isAssociated}}`
 * @param chosen `{sourceId, actorId}`, of which either may be undefined
 * @returns `[{key, sourceId, actorId, rate, mark?, isReal}]`, of which those that are not real are marks alone
 */
export function edgesOf(associations, marks, chosen = {}) {
  const marked = new Map()
  const mark = (edge, name) => {
    const real = associations.get(edge.key)
    marked.set(edge.key, { ...edge, ...real, mark: name, isReal: real !== undefined })
  }
  for (const added of list(marks?.whatIf?.added)) mark(toEdge(added), "added")
  for (const removed of list(marks?.whatIf?.removed)) mark(toEdge(removed), "removed")
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
 * The IO nodes of a context as the layout takes them. Points that only associations name stand in a node of their own.
 *
 * @param nodes IO nodes as they were advertised
 * @param agentName `(agentId) => name`
 */
export function graphNodes(nodes, edges, agentName) {
  const known = new Set()
  const points = (values) =>
    list(values).filter((point) => point && typeof point === "object" && isNew(point.objectId, known)).map(toPoint)
  const graph = list(nodes).map((node) => ({
    id: text(node.objectId),
    title: agentName(node.parentObjectId ?? node.objectId),
    notes: characteristics(node.characteristics),
    sources: points(node.ioSources),
    actors: points(node.ioActors),
  }))
  const stray = { id: "", title: "Not of a known node", notes: [], sources: [], actors: [] }
  for (const { sourceId, actorId } of edges) {
    if (isNew(sourceId, known)) stray.sources.push({ id: sourceId, name: sourceId, valueType: "" })
    if (isNew(actorId, known)) stray.actors.push({ id: actorId, name: actorId, valueType: "" })
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
    name: text(point.name).slice(0, maximumLength) || point.objectId,
    valueType: text(point.valueType).slice(-maximumLength),
    externalRoute: typeof point.externalRoute === "string" ? point.externalRoute : undefined,
  }
}

/** What is told of a node, in lines. */
function characteristics(value) {
  if (!value || typeof value !== "object") return []
  return Object.entries(value)
    .slice(0, maximumNotes)
    .map(([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`.slice(0, maximumLength))
}

/** An update rate in words. @param milliseconds undefined where none is recommended */
export function rateText(milliseconds) {
  if (typeof milliseconds !== "number") return "as they come"
  if (milliseconds < 1000) return `every ${milliseconds} ms`
  if (milliseconds < 60_000) return `every ${round(milliseconds / 1000)} s`
  return `every ${round(milliseconds / 60_000)} min`
}

const round = (number) => Math.round(number * 100) / 100

/** The rate of each source that feeds something: that of all its associations, or null where they differ. */
export function ratesOfSources(edges) {
  const rates = new Map()
  for (const { sourceId, rate, mark, isReal } of edges) {
    if (!isReal && mark !== "added") continue
    rates.set(sourceId, rates.has(sourceId) && rates.get(sourceId) !== rate ? null : rate)
  }
  return rates
}

/** An IO value as text. @param data `{value}`, or octets `{encoding, value}` */
export function valueText(data) {
  if (data?.encoding === "base64" && typeof data.value === "string") return octetsText(data.value)
  const text = typeof data?.value === "string" ? data.value : JSON.stringify(data?.value)
  return (text ?? "").slice(0, maximumLength)
}

function octetsText(base64) {
  const padding = base64.endsWith("==") ? 2 : base64.endsWith("=") ? 1 : 0
  const count = (base64.length / 4) * 3 - padding
  if (count > maximumLength) return `${count} bytes`
  try {
    const octets = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0))
    return new TextDecoder("utf-8", { fatal: true }).decode(octets)
  } catch {
    return `${count} bytes`
  }
}

const list = (value) => (Array.isArray(value) ? value : [])
const text = (value) => (typeof value === "string" ? value : "")
