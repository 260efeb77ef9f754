// Work that many events request.

/** Work that runs on request: one run at a time, each after a delay. Requests until then, or during a run, share the next run. */
export class Coalesced {
  #run
  #spacing
  #timer
  #isRunning = false
  #isWanted = false

  /** @param run may be async @param spacing the delay before each run, in milliseconds */
  constructor(run, spacing) {
    this.#run = run
    this.#spacing = spacing
  }

  request() {
    this.#isWanted = true
    if (!this.#isRunning) this.#timer ??= setTimeout(() => this.#turn(), this.#spacing)
  }

  /** Runs the work without the delay. During a run, it requests another one, with the delay. */
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
