import assert from "node:assert/strict"
import { test } from "node:test"
import { Names } from "../../../Sources/CoatyGateway/Console/names.js"
import { scriptedClient, settle } from "./support.mjs"

const identity = (objectId, name) => ({ op: "event", event: "advertise", data: { object: { coreType: "Identity", objectId, name } } })

async function namesOf(...frames) {
  const names = new Names(scriptedClient({ frames }), true)
  await settle()
  return names
}

test("a long name is cut in lists and kept in full", async () => {
  const long = `Agent ${"x".repeat(200)}`
  const names = await namesOf(identity("a", long), identity("b", "Lamp"))
  assert.equal(names.of("a"), `${long.slice(0, 100)}…`)
  assert.equal(names.full("a"), long)
  assert.equal(names.uncut("a"), long)
  assert.deepEqual([names.of("b"), names.full("b"), names.uncut("b")], ["Lamp", "Lamp", undefined])
})

test("an unknown name is the beginning of the id", async () => {
  const names = await namesOf()
  const id = "5a9c1f6e-3b52-4d0a-8f6e-2f6f0a3c7d11"
  assert.deepEqual([names.of(id), names.full(id), names.uncut(id)], ["5a9c1f6e…", "5a9c1f6e…", undefined])
})

test("a changed end of a long name replaces the name", async () => {
  const names = await namesOf(identity("a", `${"x".repeat(150)} one`), identity("a", `${"x".repeat(150)} two`))
  assert.ok(names.full("a").endsWith("two"))
})

test("the length of a name is bounded", async () => {
  const names = await namesOf(identity("a", "x".repeat(1e6)), identity("b", " "), identity("c", 7))
  assert.equal(names.full("a").length, 1001)
  assert.ok(!names.has("b") && !names.has("c"))
})
