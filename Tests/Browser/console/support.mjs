// Test support for the console's modules: timers and clients that a test controls.

import assert from "node:assert/strict"

/**
 * Replaces the timers until the test ends, because the timer mocks of node differ between versions.
 *
 * @returns `tick(milliseconds)`, which advances the timers
 */
export function controlledTimers(context) {
  const { setTimeout, clearTimeout } = globalThis
  const timers = new Map()
  let now = 0
  let lastId = 0
  globalThis.setTimeout = (run, wait) => {
    timers.set(++lastId, { run, at: now + wait })
    return lastId
  }
  globalThis.clearTimeout = (id) => timers.delete(id)
  context.after(() => Object.assign(globalThis, { setTimeout, clearTimeout }))
  return function tick(time) {
    now += time
    for (const [id, { run, at }] of timers) {
      if (at > now) continue
      timers.delete(id)
      run()
    }
  }
}

/** Lets the promises that are settled by now run their reactions. */
export const settle = () => new Promise((resolve) => setImmediate(resolve))

/** Waits for a condition that follows from promises only, without timers. */
export async function until(condition) {
  for (let turn = 0; turn < 1000 && !condition(); turn++) await settle()
  assert.ok(condition())
}

/** Creates a client. Each subscription uses up one turn: it delivers the frames, then throws the error, ends, or waits for the signal. */
export function scriptedClient(...turns) {
  const subscribed = []
  return {
    subscribed,
    subscribe(what, { signal }) {
      subscribed.push({ ...what, signal })
      const { frames = [], error, ends = false } = turns.shift() ?? {}
      const ready = error && frames.length === 0 ? Promise.reject(error) : Promise.resolve()
      ready.catch(() => {})
      return {
        ready,
        async *[Symbol.asyncIterator]() {
          yield* frames
          if (error) throw error
          if (!ends && !signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }))
        },
      }
    },
  }
}
