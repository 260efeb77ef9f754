// The status of the gateway, polled once a second.

const interval = 1000

/** The polled `GET v1/status`. Dispatches `change` after each attempt. */
export class Status extends EventTarget {
  /** The last answer; undefined before the first one, and while the gateway does not answer. */
  latest
  /** When `latest` was received, in milliseconds of a monotonic clock. */
  time
  #client
  #rest
  #timer
  /** The number of requests that were begun or given up. An answer to a former one is ignored. */
  #asked = 0

  /** @param {boolean} isPermitted whether the user may read the status */
  constructor(client, rest, isPermitted) {
    super()
    if (!isPermitted) return
    this.#client = client
    this.#rest = rest
    client.addEventListener("statechange", () => this.#restart())
    document.addEventListener("visibilitychange", () => this.#restart())
    this.#restart()
  }

  #restart() {
    clearTimeout(this.#timer)
    this.#asked += 1
    // The page is hidden, or the connection already shows that the gateway does not answer.
    if (document.hidden || this.#client.state !== "online") return this.#update(document.hidden ? this.latest : undefined)
    this.#ask()
  }

  async #ask() {
    const number = ++this.#asked
    let answer
    try {
      answer = (await this.#rest("v1/status")).json
    } catch {
      answer = undefined
    }
    if (number !== this.#asked) return
    this.time = performance.now()
    this.#update(answer)
    if (!document.hidden && this.#client.state === "online") this.#timer = setTimeout(() => this.#ask(), interval)
  }

  #update(answer) {
    this.latest = answer
    this.dispatchEvent(new Event("change"))
  }
}
