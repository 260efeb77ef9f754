import assert from "node:assert/strict"
import { test } from "node:test"
import { Coalesced } from "../../../Sources/CoatyGateway/Console/coalesced.js"

/** Timers that go when the test says so. */
function steeredTimers(context) {
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
const settle = () => new Promise((resolve) => setImmediate(resolve))

test("many requests are one run, and one more for what comes during it", async (context) => {
  const tick = steeredTimers(context)
  const ends = []
  const work = new Coalesced(() => new Promise((resolve) => ends.push(resolve)), 300)
  for (let count = 0; count < 10; count++) work.request()
  tick(299)
  assert.equal(ends.length, 0)
  tick(1)
  assert.equal(ends.length, 1)
  work.request()
  work.request()
  tick(1000)
  assert.equal(ends.length, 1)
  ends[0]()
  await settle()
  tick(300)
  assert.equal(ends.length, 2)
  ends[1]()
  await settle()
  tick(1000)
  assert.equal(ends.length, 2)
})

test("what is stopped does not run until it is asked again", (context) => {
  const tick = steeredTimers(context)
  let runs = 0
  const work = new Coalesced(() => { runs += 1 }, 300)
  work.request()
  work.stop()
  tick(1000)
  assert.equal(runs, 0)
  work.request()
  tick(300)
  assert.equal(runs, 1)
})

test("what is in a hurry does not wait, and is still one at a time", async (context) => {
  const tick = steeredTimers(context)
  const ends = []
  const work = new Coalesced(() => new Promise((resolve) => ends.push(resolve)), 300)
  work.request()
  work.hurry()
  tick(0)
  assert.equal(ends.length, 1)
  work.hurry()
  tick(0)
  assert.equal(ends.length, 1)
  ends[0]()
  await settle()
  tick(300)
  assert.equal(ends.length, 2)
  ends[1]()
  await settle()
  tick(1000)
  assert.equal(ends.length, 2)
})
