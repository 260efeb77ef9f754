// The subscriptions of the feed: traffic that matches a filter, and raw events.

import { observe } from "./observe.js"

/** Maximum number of events that the gateway queues while the page is busy. */
const gatewayBuffer = 4096
/** Whether a refusal is temporary: the gateway has no room at this time. */
const isPassing = (error) => error.status === 503

/** Keeps one subscription for each field of a form. A subscription whose field does not change continues. */
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

  /** Replaces the subscription of a field, and retries one that was refused. @param {any} what undefined for none */
  observe(field, what) {
    const key = JSON.stringify(what)
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

  /** Notes that the text of a field is invalid: the next `observe` subscribes again. */
  refuse(field) {
    const observed = this.#observed.get(field)
    if (observed) observed.isRefused = true
  }
}
