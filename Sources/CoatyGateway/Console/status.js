// What the gateway says of itself, once a second.

const interval = 1000

/** Tells `change` with each answer of `GET v1/status`, of which `latest` is the last. */
export class Status extends EventTarget {
  /** The last answer; undefined before the first, and while the gateway is away. */
  latest
  #client
  #rest
  #timer

  constructor(client, rest) {
    super()
    this.#client = client
    this.#rest = rest
    client.addEventListener("statechange", () => this.#restart())
    document.addEventListener("visibilitychange", () => this.#restart())
    this.#restart()
  }

  #restart() {
    clearTimeout(this.#timer)
    // Nobody looks, or the connection knows already that the gateway is away.
    if (document.hidden || this.#client.state !== "online") return this.#tell(document.hidden ? this.latest : undefined)
    this.#ask()
  }

  async #ask() {
    let answer
    try {
      answer = (await this.#rest("v1/status")).json
    } catch {
      answer = undefined
    }
    this.#tell(answer)
    clearTimeout(this.#timer)
    if (!document.hidden && this.#client.state === "online") this.#timer = setTimeout(() => this.#ask(), interval)
  }

  #tell(answer) {
    this.latest = answer
    this.dispatchEvent(new Event("change"))
  }
}
