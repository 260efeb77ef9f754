import assert from "node:assert/strict"
import { test } from "node:test"
import { Away } from "../../../Sources/CoatyGateway/Console/away.js"
import { controlledTimers } from "./support.mjs"

/** Returns an `Away` with its fake parts. `at` moves the clock to a time in milliseconds and runs the due timers. */
function away(context, state = "connecting") {
  const tick = controlledTimers(context)
  const { now } = Date
  let time = 0
  Date.now = () => time
  context.after(() => { Date.now = now })
  const client = Object.assign(new EventTarget(), { state })
  const status = new EventTarget()
  const main = { dataset: {} }
  const banner = { hidden: true, textContent: "" }
  const connect = (state, reason) => {
    client.state = state
    client.dispatchEvent(Object.assign(new Event("statechange"), { detail: { state, reason } }))
  }
  const broker = (state) => {
    status.latest = { broker: { state } }
    status.dispatchEvent(new Event("change"))
  }
  const at = (next) => {
    tick(next - time, time = next)
  }
  return { connect, broker, at, main, banner, away: new Away(client, status, main, banner) }
}

test("a connection that is soon there is not reported", (context) => {
  const { connect, at, main, banner, away: it } = away(context)
  assert.equal(it.since, 0)
  at(900)
  assert.equal(banner.hidden, true)
  connect("online")
  at(5000)
  assert.equal(it.since, undefined)
  assert.equal(banner.hidden, true)
  assert.deepEqual(main.dataset, {})
})

test("a lost connection is reported until it is back", (context) => {
  const { connect, at, main, banner, away: it } = away(context, "online")
  assert.equal(it.since, undefined)
  at(10_000)
  connect("connecting", "close code 1006")
  assert.equal(it.since, 10_000, "values are known until then")
  at(11_000)
  assert.equal(banner.hidden, false)
  assert.match(banner.textContent, /^The connection to the gateway was lost at \d\d:\d\d:\d\d\. /)
  assert.equal(main.dataset.stale, "gateway")
  at(20_000)
  connect("connecting", "close code 1006")
  assert.equal(it.since, 10_000, "further attempts change nothing")
  connect("online")
  assert.equal(banner.hidden, true)
  assert.equal(it.since, undefined)
  assert.deepEqual(main.dataset, {})
})

test("a page that was never connected does not speak of a loss", (context) => {
  const { at, banner } = away(context)
  at(1000)
  assert.equal(banner.textContent, "The page can't connect to the gateway. It keeps trying.")
})

test("a closed client is reported at once, with the reason", (context) => {
  const { connect, main, banner } = away(context, "online")
  connect("closed", "the token was removed")
  assert.equal(banner.textContent, "The connection to the gateway was closed: the token was removed. Reload the page to connect again.")
  assert.equal(main.dataset.stale, "closed")
})

test("a lost broker is reported while the gateway is there", (context) => {
  const { connect, broker, at, main, banner, away: it } = away(context, "online")
  broker("online")
  assert.equal(it.since, undefined)
  at(3000)
  broker("offline")
  at(4000)
  assert.match(banner.textContent, /^The gateway is not connected to its broker\. /)
  assert.equal(main.dataset.stale, "broker")
  connect("connecting")
  assert.equal(it.since, 3000, "values are as old as before")
  assert.equal(main.dataset.stale, "gateway")
})
