import assert from "node:assert/strict"
import { test } from "node:test"
import { Coalesced } from "../../../Sources/CoatyGateway/Console/coalesced.js"

/** Lets what has been promised by now happen. */
const settle = () => new Promise((resolve) => setImmediate(resolve))

test("many requests are one run, and one more for what comes during it", async (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] })
  const ends = []
  const work = new Coalesced(() => new Promise((resolve) => ends.push(resolve)), 300)
  for (let count = 0; count < 10; count++) work.request()
  context.mock.timers.tick(299)
  assert.equal(ends.length, 0)
  context.mock.timers.tick(1)
  assert.equal(ends.length, 1)
  work.request()
  work.request()
  context.mock.timers.tick(1000)
  assert.equal(ends.length, 1)
  ends[0]()
  await settle()
  context.mock.timers.tick(300)
  assert.equal(ends.length, 2)
  ends[1]()
  await settle()
  context.mock.timers.tick(1000)
  assert.equal(ends.length, 2)
})

test("what is stopped does not run until it is asked again", (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] })
  let runs = 0
  const work = new Coalesced(() => { runs += 1 }, 300)
  work.request()
  work.stop()
  context.mock.timers.tick(1000)
  assert.equal(runs, 0)
  work.request()
  context.mock.timers.tick(300)
  assert.equal(runs, 1)
})
