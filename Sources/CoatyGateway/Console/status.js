// The status of the gateway, polled once a second.

const interval = 1000

/** The polled `GET v1/status`. Dispatches `change` after each attempt. */
export class Status extends EventTarget {
  /** The last answer; undefined before the first one, and while the gateway does not answer. */
  latest
  #client
  #rest
  #timer

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
    // The page is hidden, or the connection already shows that the gateway does not answer.
    if (document.hidden || this.#client.state !== "online") return this.#update(document.hidden ? this.latest : undefined)
    this.#ask()
  }

  async #ask() {
    let answer
    try {
      answer = (await this.#rest("v1/status")).json
    } catch {
      answer = undefined
    }
    this.#update(answer)
    clearTimeout(this.#timer)
    if (!document.hidden && this.#client.state === "online") this.#timer = setTimeout(() => this.#ask(), interval)
  }

  #update(answer) {
    this.latest = answer
    this.dispatchEvent(new Event("change"))
  }
}
