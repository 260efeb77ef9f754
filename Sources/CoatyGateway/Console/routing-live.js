// What the routing view hears: the associations of a context, the values that pass, and that something has changed.

import { observe, observeState } from "./observe.js"
import { routesOf } from "./routing-model.js"

/**
 * Keeps the associations of a context until the signal says stop, or the context is gone.
 *
 * @param associations an `Associations`
 * @param onChange called after each change
 * @param report as of `observe`
 */
export function watchAssociations(client, contextId, signal, associations, onChange, report) {
  const state = {
    begin: () => associations.clear(),
    take: (frame) => {
      associations.apply(frame.data?.associations)
      onChange()
    },
  }
  return observeState(client, { event: "routing", contextId }, signal, state, report, (error) => !error || error.status === 404)
}

/** Calls `take(sourceId, data)` with the values of IO sources, whatever their context. */
export function watchValues(client, signal, take, report) {
  const takeFrame = (frame) => {
    if (frame.op === "event") take(frame.ioSourceId, frame.data)
  }
  return observe(client, { event: "traffic", events: ["iovalue"] }, signal, takeFrame, report)
}

/** Observes the external routes of sources, which are MQTT topics outside of Coaty's. */
export class ExternalRoutes {
  #client
  #take
  #onRefused
  /** By topic. */
  #routes = new Map()
  #passedOver = { improper: 0, beyond: 0 }

  /** @param take `(sourceId, data)` @param onRefused called when `unobserved` has become another */
  constructor(client, take, onRefused) {
    this.#client = client
    this.#take = take
    this.#onRefused = onRefused
  }

  /** How many routes are not observed, and why: they are no plain topics, are too many, or the gateway refuses. */
  get unobserved() {
    const refused = [...this.#routes.values()].filter(({ isRefused }) => isRefused).length
    return { ...this.#passedOver, refused }
  }

  /** Observes the routes of these sources and no others. @param sources `[{id, externalRoute?}]` */
  follow(sources) {
    const { routes, ...passedOver } = routesOf(sources)
    this.#passedOver = passedOver
    for (const [topic, route] of this.#routes) {
      if (routes.has(topic)) continue
      route.stop.abort()
      this.#routes.delete(topic)
    }
    for (const [topic, sourceIds] of routes) {
      const route = this.#routes.get(topic) ?? this.#begin(topic)
      route.sourceIds = sourceIds
    }
  }

  #begin(topic) {
    const route = { stop: new AbortController(), sourceIds: [], isRefused: false }
    this.#routes.set(topic, route)
    const take = (frame) => {
      if (frame.op === "event") for (const id of route.sourceIds) this.#take(id, frame.data)
    }
    const report = (error) => {
      if (route.isRefused === Boolean(error)) return
      route.isRefused = Boolean(error)
      this.#onRefused()
    }
    observe(this.#client, { event: "raw", topic }, route.stop.signal, take, report)
    return route
  }
}
