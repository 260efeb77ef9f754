import assert from "node:assert/strict"
import { getEventListeners } from "node:events"
import { test } from "node:test"
import { observe, observeState, pause } from "../../../Sources/CoatyGateway/Console/observe.js"
import { scripted, settle, steeredTimers, until } from "./support.mjs"

test("a pause leaves nothing behind at its signal", async () => {
  const { signal } = new AbortController()
  for (let count = 0; count < 20; count++) await pause(0, signal)
  assert.equal(getEventListeners(signal, "abort").length, 0)
  const stop = new AbortController()
  const paused = pause(1e9, stop.signal)
  stop.abort()
  await paused
  assert.equal(getEventListeners(stop.signal, "abort").length, 0)
  await pause(1e9, stop.signal)
})

test("what is refused is told, and begins again", async (context) => {
  const tick = steeredTimers(context)
  const client = scripted({ error: new Error("too many") }, { frames: [1], ends: true }, { frames: [2] })
  const stop = new AbortController()
  const taken = []
  const told = []
  observe(client, { event: "x" }, stop.signal, (frame) => taken.push(frame), (error) => told.push(error?.message))
  await until(() => told.length === 1)
  tick(5000)
  await until(() => taken.length === 1)
  await settle()
  tick(5000)
  await until(() => taken.length === 2)
  assert.deepEqual([taken, told], [[1, 2], ["too many", undefined, undefined]])
  stop.abort()
  await settle()
  tick(60_000)
  assert.equal(client.subscribed.length, 3)
})

test("what a frame does to who takes it is told, and ends nothing", async (context) => {
  const tick = steeredTimers(context)
  const client = scripted({ frames: [1] }, { frames: [2] })
  const stop = new AbortController()
  const taken = []
  const told = []
  const take = (frame) => {
    if (frame === 1) throw new TypeError("wrong")
    taken.push(frame)
  }
  observe(client, {}, stop.signal, take, (error) => error && told.push(error.message))
  await until(() => told.length === 1)
  tick(5000)
  await until(() => taken.length === 1)
  stop.abort()
})

test("what need not begin again does not", async (context) => {
  const tick = steeredTimers(context)
  const client = scripted({ error: Object.assign(new Error("wrong"), { status: 400 }) })
  const told = []
  let isOver = false
  const { signal } = new AbortController()
  observe(client, {}, signal, () => {}, (error) => told.push(error?.message), (error) => error?.status === 400).then(() => { isOver = true })
  await until(() => isOver)
  tick(60_000)
  await settle()
  assert.deepEqual([told, client.subscribed.length], [["wrong"], 1])
})

test("a state is told anew where changes of it are missing, and not before", async (context) => {
  for (const missed of [{ op: "gap", dropped: 2 }, { op: "gap", dropped: null, cursor: "c" }]) {
    const tick = steeredTimers(context)
    const client = scripted(
      // The first gap is that of a gateway without its broker.
      { frames: [{ op: "gap", dropped: null }, { op: "event", number: 1 }, missed, { op: "event", number: 2 }] },
      { frames: [{ op: "event", number: 3 }] },
    )
    const stop = new AbortController()
    let known = ["old"]
    const state = { begin: () => { known = [] }, take: ({ number }) => known.push(number) }
    observeState(client, {}, stop.signal, state)
    await until(() => client.subscribed[0]?.signal.aborted)
    assert.deepEqual(known, [1], "what is known stays until it is told anew")
    await settle()
    tick(1000)
    await until(() => known[0] === 3)
    assert.deepEqual(known, [3])
    assert.equal(getEventListeners(stop.signal, "abort").length, 1)
    stop.abort()
  }
})

test("what the user may not observe is not requested again", async (context) => {
  const tick = steeredTimers(context)
  const type = "urn:coaty-gateway:problem:forbidden"
  for (const begin of [
    (client, signal, report) => observe(client, {}, signal, () => {}, report),
    (client, signal, report) => observeState(client, {}, signal, { begin() {}, take() {} }, report),
  ]) {
    const client = scripted({ error: Object.assign(new Error("forbidden"), { type, status: 403 }) })
    const reported = []
    let isOver = false
    begin(client, new AbortController().signal, (error) => reported.push(error?.message)).then(() => { isOver = true })
    await until(() => isOver)
    tick(60_000)
    await settle()
    assert.deepEqual([reported, client.subscribed.length], [["forbidden"], 1])
  }
})
