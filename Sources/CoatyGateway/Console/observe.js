// Subscriptions that are started again when they end or are refused, unless the user has no grant for them.

import { isForbidden } from "./access.js"

/** Milliseconds before a subscription that was refused or has ended is started again. */
const retryTime = 5000
/** Milliseconds before a state is requested again after a gap. */
const renewalTime = 1000

/** A signal that never aborts. */
export const forever = new AbortController().signal

/**
 * Calls `take` with each frame until the signal aborts. A subscription that ends earlier is started again.
 *
 * @param {(frame: any) => void} take
 * @param {(error?: any) => void} report called with the error if the gateway refuses or ends the subscription, and without
 *   one when it has begun
 * @param {(error?: any) => boolean} isOver returns whether not to start it again after this error, or after its end
 */
export async function observe(client, what, signal, take, report = () => {}, isOver = () => false) {
  while (!signal.aborted) {
    const error = await observeOnce(client, what, signal, take, report)
    if (signal.aborted) return
    if (error) report(error)
    if (isOver(error) || isForbidden(error)) return
    await pause(retryTime, signal)
  }
}

/**
 * Observes a state: the subscription delivers the whole state, then its changes. After a gap it is started again.
 *
 * @param {{ begin: () => void, take: (frame: any) => void }} state `begin` discards the state before it is delivered again
 * @param report as of `observe`
 * @param isOver as of `observe`
 */
export async function observeState(client, what, signal, { begin, take }, report = () => {}, isOver = () => false) {
  while (!signal.aborted) {
    const turn = new AbortController()
    // The turn's own signal removes this listener when the turn ends.
    signal.addEventListener("abort", () => turn.abort(), { signal: turn.signal })
    let hasBegun = false
    let isMissing = false
    const takeFrame = (frame) => {
      if (frame.op === "event") {
        hasBegun = true
        take(frame)
      } else if (hasBegun) {
        isMissing = true
        turn.abort()
      }
    }
    const reportTurn = (error) => {
      if (!error) begin()
      report(error)
    }
    const error = await observeOnce(client, what, turn.signal, takeFrame, reportTurn)
    turn.abort()
    if (signal.aborted) return
    if (isMissing) {
      await pause(renewalTime, signal)
      continue
    }
    if (isOver(error)) return
    if (error) report(error)
    if (isForbidden(error)) return
    await pause(retryTime, signal)
  }
}

/** Observes until the subscription ends. @returns the error that ended it, if any */
async function observeOnce(client, what, signal, take, report) {
  try {
    const subscription = client.subscribe(what, { signal })
    await subscription.ready
    if (signal.aborted) return
    report()
    for await (const frame of subscription) {
      if (signal.aborted) return
      take(frame)
    }
  } catch (error) {
    return error
  }
}

/** Waits for a time, or until the signal aborts. */
export function pause(milliseconds, signal) {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer)
      signal.removeEventListener("abort", end)
      resolve()
    }
    const timer = setTimeout(end, milliseconds)
    signal.addEventListener("abort", end)
    if (signal.aborted) end()
  })
}
