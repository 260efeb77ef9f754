// Work that many events ask for.

/** Runs something when it is asked to, one at a time and at most so often; what asked meanwhile is served by one more run. */
export class Coalesced {
  #run
  #spacing
  #timer
  #isRunning = false
  #isWanted = false

  /** @param run may be async @param spacing in milliseconds, before each run */
  constructor(run, spacing) {
    this.#run = run
    this.#spacing = spacing
  }

  request() {
    this.#isWanted = true
    if (!this.#isRunning) this.#timer ??= setTimeout(() => this.#turn(), this.#spacing)
  }

  /** Runs it without the spacing: at once, or after the run that there is. */
  hurry() {
    this.#isWanted = true
    if (this.#isRunning) return
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#turn(), 0)
  }

  stop() {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#isWanted = false
  }

  async #turn() {
    this.#timer = undefined
    this.#isWanted = false
    this.#isRunning = true
    try {
      await this.#run()
    } finally {
      this.#isRunning = false
      if (this.#isWanted) this.request()
    }
  }
}
