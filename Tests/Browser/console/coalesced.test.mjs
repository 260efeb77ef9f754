import assert from "node:assert/strict"
import { test } from "node:test"
import { Coalesced } from "../../../Sources/CoatyGateway/Console/coalesced.js"
import { settle, steeredTimers } from "./support.mjs"

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
