// What the routing view hears: the associations of a context, the values that pass, and that something has changed.

/** How many external routes are observed at most. */
export const maximumExternalRoutes = 32
/** How long to wait before associations are asked for anew. */
const resubscribeTime = 1000

/** Calls `take` with each frame until the signal says stop; `fail` where the gateway refuses or ends it. */
export async function observe(client, what, signal, take, fail = () => {}) {
  try {
    for await (const frame of client.subscribe(what, { signal })) {
      if (signal.aborted) return
      take(frame)
    }
  } catch (error) {
    if (!signal.aborted) fail(error)
  }
}

/**
 * Keeps the associations of a context.
 *
 * @param associations an `Associations`
 * @param onChange called after each change
 */
export async function watchAssociations(client, contextId, signal, associations, onChange, fail) {
  let isToldAnew = true
  while (isToldAnew && !signal.aborted) {
    isToldAnew = false
    const turn = new AbortController()
    const both = AbortSignal.any([signal, turn.signal])
    let hasBegun = false
    const take = (frame) => {
      if (frame.op === "event") {
        if (!hasBegun) associations.clear()
        hasBegun = true
        associations.apply(frame.data?.associations)
        onChange()
      } else if (hasBegun) {
        // Changes are missing: all associations are told to who subscribes anew.
        isToldAnew = true
        turn.abort()
      }
    }
    await observe(client, { event: "routing", context: contextId }, both, take, fail)
    if (isToldAnew) await pause(resubscribeTime, signal)
  }
}

function pause(milliseconds, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds)
    signal.addEventListener("abort", () => {
      clearTimeout(timer)
      resolve()
    }, { once: true })
  })
}

/** Calls `take(sourceId, data)` with the values of IO sources, whatever their context. */
export function watchValues(client, signal, take, fail) {
  const takeFrame = (frame) => {
    if (frame.op === "event") take(frame.ioSourceId, frame.data)
  }
  return observe(client, { event: "traffic", events: ["iovalue"] }, signal, takeFrame, fail)
}

/** Observes the external routes of sources, which are MQTT topics outside of Coaty's. */
export class ExternalRoutes {
  #client
  #take
  /** By topic. */
  #routes = new Map()

  /** @param take `(sourceId, data)` */
  constructor(client, take) {
    this.#client = client
    this.#take = take
  }

  /** Observes the routes of these sources and no others. @param sources `[{id, externalRoute?}]` */
  follow(sources) {
    const wanted = new Map()
    for (const { id, externalRoute: topic } of sources) {
      if (topic === undefined) continue
      if (wanted.has(topic)) wanted.get(topic).push(id)
      else if (wanted.size < maximumExternalRoutes) wanted.set(topic, [id])
    }
    for (const [topic, route] of this.#routes) {
      if (wanted.has(topic)) continue
      route.stop.abort()
      this.#routes.delete(topic)
    }
    for (const [topic, sourceIds] of wanted) {
      const route = this.#routes.get(topic) ?? this.#begin(topic)
      route.sourceIds = sourceIds
    }
  }

  #begin(topic) {
    const route = { stop: new AbortController(), sourceIds: [] }
    this.#routes.set(topic, route)
    observe(this.#client, { event: "raw", topic }, route.stop.signal, (frame) => {
      if (frame.op === "event") for (const id of route.sourceIds) this.#take(id, frame.data)
    })
    return route
  }
}
