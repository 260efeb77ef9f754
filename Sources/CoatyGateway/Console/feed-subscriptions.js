// The subscriptions of the feed: traffic that matches a filter, and raw events.

import { stringifyExact } from "../client.js"
import { observe } from "./observe.js"

/** Maximum number of events that the gateway queues while the page is busy. */
const gatewayBuffer = 4096
/** Returns whether a refusal is temporary: status 503, for example because no memory is left. */
const isPassing = (error) => error.status === 503

/** One subscription for each field of a form. If a field does not change, its subscription continues. */
export class FeedSubscriptions {
  #client
  #take
  #report
  /** The subscriptions by field. */
  #observed = new Map()

  /**
   * @param {(frame: any) => void} take
   * @param {(field: string, text: string, isRefused: boolean) => void} report called with the error of a field's
   *   subscription; with an empty text when the subscription has started or changes
   */
  constructor(client, take, report) {
    this.#client = client
    this.#take = take
    this.#report = report
  }

  /** Replaces the subscription of a field, or retries one that was refused. @param {any} what undefined for none */
  observe(field, what) {
    const key = stringifyExact(what)
    const before = this.#observed.get(field)
    if (before === undefined ? what === undefined : before.key === key && !before.isRefused) return
    before?.controller.abort()
    this.#report(field, "", false)
    if (what === undefined) return this.#observed.delete(field)
    const observed = { key, controller: new AbortController(), isRefused: false }
    this.#observed.set(field, observed)
    const report = (error) => {
      observed.isRefused = error !== undefined && !isPassing(error)
      this.#report(field, error?.detail ?? error?.message ?? "", observed.isRefused)
    }
    observe(this.#client, { ...what, buffer: gatewayBuffer }, observed.controller.signal, this.#take, report, (error) => error !== undefined && !isPassing(error))
  }

  /** Marks the text of a field as invalid, so that the next `observe` subscribes again. */
  refuse(field) {
    const observed = this.#observed.get(field)
    if (observed) observed.isRefused = true
  }
}
