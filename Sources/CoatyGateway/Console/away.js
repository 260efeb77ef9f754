// The banner while something is away: the gateway for the page, or the broker for the gateway. What the page shows is then of the past.

import { clock, setHidden, setText } from "./dom.js"

/** Milliseconds until a lost connection is shown. Most last less than that. */
const patience = 1000

export class Away {
  /**
   * The time until which values are known, in milliseconds since 1970; undefined while they are present.
   *
   * @type {number | undefined}
   */
  since
  #client
  #status
  #main
  #banner
  #timer
  #wasOnline = false
  #reason = ""

  /** @param {HTMLElement} main marked with `data-stale` while values are of the past @param {HTMLElement} banner */
  constructor(client, status, main, banner) {
    this.#client = client
    this.#status = status
    this.#main = main
    this.#banner = banner
    client.addEventListener("statechange", ({ detail }) => {
      this.#reason = detail.reason ?? ""
      this.#update()
    })
    status.addEventListener("change", () => this.#update())
    this.#update()
  }

  #update() {
    const what = this.#what()
    this.since = what === undefined ? undefined : this.since ?? Date.now()
    if (this.#client.state === "online") this.#wasOnline = true
    const isShown = what !== undefined && (what === "closed" || Date.now() - this.since >= patience)
    clearTimeout(this.#timer)
    if (what !== undefined && !isShown) this.#timer = setTimeout(() => this.#update(), patience)
    setHidden(this.#banner, !isShown)
    // An unchanged text is not announced again.
    setText(this.#banner, isShown ? this.#text(what) : "")
    if (isShown) this.#main.dataset.stale = what
    else delete this.#main.dataset.stale
  }

  /** Returns what is away; undefined if nothing is. */
  #what() {
    if (this.#client.state !== "online") return this.#client.state === "closed" ? "closed" : "gateway"
    const { broker } = this.#status.latest ?? {}
    return broker !== undefined && broker.state !== "online" ? "broker" : undefined
  }

  #text(what) {
    const time = clock(this.since).slice(0, -4)
    switch (what) {
      case "closed": return `The connection to the gateway was closed${this.#reason && `: ${this.#reason}`}. Reload the page to connect again.`
      case "broker": return `The gateway is not connected to its broker. Agents, objects and values are those of ${time}.`
      default: return this.#wasOnline ? `The connection to the gateway was lost at ${time}. The page keeps trying, and shows what was known then.`
        : "The page can't connect to the gateway. It keeps trying."
    }
  }
}
