// The subscriptions of the routing view: associations of a context, IO values, and external routes.

import { observe, observeState } from "./observe.js"
import { routesOf } from "./routing-model.js"

/**
 * Keeps the associations of a context up to date until the signal aborts or the context is removed.
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

/** Calls `take(sourceId, data)` with the values of the IO sources of all contexts. */
export function watchValues(client, signal, take, report) {
  const takeFrame = (frame) => {
    if (frame.op === "event") take(frame.ioSourceId, frame.data)
  }
  return observe(client, { event: "traffic", events: ["iovalue"] }, signal, takeFrame, report)
}

/** The observed external routes of IO sources: MQTT topics that are not Coaty's. */
export class ExternalRoutes {
  #client
  #take
  #onRefused
  /** Routes by topic. */
  #routes = new Map()
  #passedOver = { improper: 0, beyond: 0 }

  /** @param take `(sourceId, data)` @param onRefused called when `unobserved` has changed */
  constructor(client, take, onRefused) {
    this.#client = client
    this.#take = take
    this.#onRefused = onRefused
  }

  /** Number of routes that are not observed: no plain topics, beyond the maximum, or refused by the gateway. */
  get unobserved() {
    const refused = [...this.#routes.values()].filter(({ isRefused }) => isRefused).length
    return { ...this.#passedOver, refused }
  }

  /** Observes only the routes of these sources. @param sources `[{id, externalRoute?}]` */
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
