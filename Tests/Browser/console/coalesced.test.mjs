import assert from "node:assert/strict"
import { test } from "node:test"
import { Coalesced } from "../../../Sources/CoatyGateway/Console/coalesced.js"
import { settle, controlledTimers } from "./support.mjs"

test("requests are combined into one run, and those during a run into one more", async (context) => {
  const tick = controlledTimers(context)
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

test("stopped work does not run until it is requested again", (context) => {
  const tick = controlledTimers(context)
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

test("hurried work skips the delay but does not overlap", async (context) => {
  const tick = controlledTimers(context)
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
