// What the routing view hears: the associations of a context, the values that pass, and that something has changed.

import { routesOf } from "./routing-model.js"

/** How long to wait before associations are asked for anew, of which some were missed. */
const resubscribeTime = 1000
/** How long to wait before something that was refused, or has ended, is observed again. */
const retryTime = 5000

/**
 * Calls `take` with each frame until the signal says stop; what ends before that begins again.
 *
 * @param report called with the error where the gateway refuses or ends it, and without one when it has begun
 */
export async function observe(client, what, signal, take, report = () => {}) {
  while (!signal.aborted) {
    const error = await observeOnce(client, what, signal, take, report)
    if (signal.aborted) return
    if (error) report(error)
    await pause(retryTime, signal)
  }
}

/** @returns the error that it ended with, if it did */
async function observeOnce(client, what, signal, take, report) {
  try {
    const subscription = client.subscribe(what, { signal })
    subscription.ready.then(() => { if (!signal.aborted) report() }, () => {})
    for await (const frame of subscription) {
      if (signal.aborted) return
      take(frame)
    }
  } catch (error) {
    return error
  }
}

/**
 * Keeps the associations of a context until the signal says stop, or the context is gone.
 *
 * @param associations an `Associations`
 * @param onChange called after each change
 * @param report as of `observe`
 */
export async function watchAssociations(client, contextId, signal, associations, onChange, report) {
  while (!signal.aborted) {
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
        turn.abort()
      }
    }
    const error = await observeOnce(client, { event: "routing", context: contextId }, both, take, report)
    if (signal.aborted) return
    if (turn.signal.aborted) {
      await pause(resubscribeTime, signal)
      continue
    }
    if (!error || error.status === 404) return
    report(error)
    await pause(retryTime, signal)
  }
}

/** Ends when the time is over, or with the signal. */
export function pause(milliseconds, signal) {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer)
      signal.removeEventListener("abort", end)
      resolve()
    }
    const timer = setTimeout(end, milliseconds)
    signal.addEventListener("abort", end)
    if (signal.aborted) end()
  })
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
