import assert from "node:assert/strict"
import { getEventListeners } from "node:events"
import { test } from "node:test"
import { ExternalRoutes, observe, pause, watchAssociations } from "../../../Sources/CoatyGateway/Console/routing-live.js"
import { Associations } from "../../../Sources/CoatyGateway/Console/routing-model.js"

/** A client of which each subscription does what the next turn says: frames that come, then an error, or waiting for the signal. */
function scripted(...turns) {
  const subscribed = []
  return {
    subscribed,
    subscribe(what, { signal }) {
      subscribed.push({ ...what, signal })
      const { frames = [], error, ends = false } = turns.shift() ?? {}
      const ready = error ? Promise.reject(error) : Promise.resolve()
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

const settle = () => new Promise((resolve) => setImmediate(resolve))
async function until(condition) {
  for (let turn = 0; turn < 1000 && !condition(); turn++) await settle()
  assert.ok(condition())
}
const change = (associations) => ({ op: "event", data: { associations } })
const pair = { ioSourceId: "s", ioActorId: "a" }

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
  context.mock.timers.enable({ apis: ["setTimeout"] })
  const client = scripted({ error: new Error("too many") }, { frames: [1], ends: true }, { frames: [2] })
  const stop = new AbortController()
  const taken = []
  const told = []
  observe(client, { event: "x" }, stop.signal, (frame) => taken.push(frame), (error) => told.push(error?.message))
  await until(() => told.length === 1)
  context.mock.timers.tick(5000)
  await until(() => taken.length === 1)
  await settle()
  context.mock.timers.tick(5000)
  await until(() => taken.length === 2)
  assert.deepEqual([taken, told], [[1, 2], ["too many", undefined, undefined]])
  stop.abort()
  await settle()
  context.mock.timers.tick(60_000)
  assert.equal(client.subscribed.length, 3)
})

test("what a frame does to who takes it is told, and ends nothing", async (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] })
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
  context.mock.timers.tick(5000)
  await until(() => taken.length === 1)
  stop.abort()
})

test("associations are followed again after an error, until the context is gone", async (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] })
  const client = scripted(
    { frames: [change({ added: [pair] })], error: Object.assign(new Error("slow"), { status: 503 }) },
    { frames: [change({ added: [{ ...pair, ioActorId: "b" }] })], error: Object.assign(new Error("gone"), { status: 404 }) },
  )
  const associations = new Associations()
  const told = []
  let isOver = false
  const { signal } = new AbortController()
  watchAssociations(client, "c", signal, associations, () => {}, (error) => error && told.push(error.message)).then(() => { isOver = true })
  await until(() => told.length === 1)
  assert.deepEqual([associations.has("s", "a"), isOver], [true, false])
  context.mock.timers.tick(5000)
  await until(() => isOver)
  assert.deepEqual([[...associations.values()].map(({ key }) => key), told], [["s:b"], ["slow"]])
})

test("associations are asked for anew where changes are missing", async (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] })
  const client = scripted({ frames: [change({ added: [pair] }), { op: "gap", lost: 2 }] }, { frames: [change({ added: [] })] })
  const associations = new Associations()
  const stop = new AbortController()
  watchAssociations(client, "c", stop.signal, associations, () => {}, () => {})
  await until(() => client.subscribed[0]?.signal.aborted)
  await settle()
  context.mock.timers.tick(1000)
  await until(() => client.subscribed.length === 2 && associations.size === 0)
  stop.abort()
})

test("routes that are no plain topics are not observed, and those refused are counted", async (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] })
  const client = scripted({ frames: [{ op: "event", data: 1 }] }, { error: new Error("no") })
  const taken = []
  const routes = new ExternalRoutes(client, (...value) => taken.push(value), () => {})
  const sources = ["plant/1", "#", "a/+", "$SYS/x", "plant/2"].map((externalRoute, index) => ({ id: `s${index}`, externalRoute }))
  routes.follow([...sources, { id: "t", externalRoute: "plant/1" }, { id: "u" }])
  assert.deepEqual(client.subscribed.map(({ topic }) => topic), ["plant/1", "plant/2"])
  await until(() => taken.length === 2 && routes.unobserved.refused === 1)
  assert.deepEqual([taken, routes.unobserved], [[["s0", 1], ["t", 1]], { improper: 3, beyond: 0, refused: 1 }])
  routes.follow([])
  assert.deepEqual(client.subscribed.map(({ signal }) => signal.aborted), [true, true])
  assert.deepEqual(routes.unobserved, { improper: 0, beyond: 0, refused: 0 })
})
