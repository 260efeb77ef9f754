// What tests of the console's modules steer: timers, and what a client is told.

import assert from "node:assert/strict"

/** Timers that go when the test says so: `tick(milliseconds)`. Not every node can mock them in the same way. */
export function steeredTimers(context) {
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

/** Lets what has been promised by now happen. */
export const settle = () => new Promise((resolve) => setImmediate(resolve))

/** Waits for what follows from promises alone. */
export async function until(condition) {
  for (let turn = 0; turn < 1000 && !condition(); turn++) await settle()
  assert.ok(condition())
}

/** A client of which each subscription does what the next turn says: frames that come, then an error, or waiting for the signal. */
export function scripted(...turns) {
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
