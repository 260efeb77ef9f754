import assert from "node:assert/strict"
import { test } from "node:test"
import { ExternalRoutes, watchAssociations } from "../../../Sources/CoatyGateway/Console/routing-live.js"
import { Associations } from "../../../Sources/CoatyGateway/Console/routing-model.js"
import { scriptedClient, settle, controlledTimers, until } from "./support.mjs"

const change = (associations) => ({ op: "event", data: { associations } })
const pair = { ioSourceId: "s", ioActorId: "a" }

test("associations are observed again after an error, until the context is removed", async (context) => {
  const tick = controlledTimers(context)
  const client = scriptedClient(
    { frames: [change({ added: [pair] })], error: Object.assign(new Error("slow"), { status: 503 }) },
    { frames: [change({ added: [{ ...pair, ioActorId: "b" }] })], error: Object.assign(new Error("gone"), { status: 404 }) },
  )
  const associations = new Associations()
  const reported = []
  let isOver = false
  const { signal } = new AbortController()
  watchAssociations(client, "c", signal, associations, () => {}, (error) => error && reported.push(error.message)).then(() => { isOver = true })
  await until(() => reported.length === 1)
  assert.deepEqual([associations.has("s", "a"), isOver], [true, false])
  tick(5000)
  await until(() => isOver)
  assert.deepEqual([[...associations.values()].map(({ key }) => key), reported], [["s:b"], ["slow"]])
})

test("associations are requested again after a gap", async (context) => {
  const tick = controlledTimers(context)
  const client = scriptedClient({ frames: [change({ added: [pair] }), { op: "gap", dropped: 2 }] }, { frames: [change({ added: [] })] })
  const associations = new Associations()
  const stop = new AbortController()
  watchAssociations(client, "c", stop.signal, associations, () => {}, () => {})
  await until(() => client.subscribed[0]?.signal.aborted)
  await settle()
  tick(1000)
  await until(() => client.subscribed.length === 2 && associations.size === 0)
  stop.abort()
})

test("routes with wildcards are not observed, and refused routes are counted", async (context) => {
  const tick = controlledTimers(context)
  const client = scriptedClient({ frames: [{ op: "event", data: 1 }] }, { error: new Error("no") })
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
