import assert from "node:assert/strict"
import { test } from "node:test"
import { ContextDraft, maximumDrafts } from "../../../Sources/CoatyGateway/Console/routing-draft.js"

const base = (version, state = "on", objectId = "c1") => ({ context: { objectId, name: objectId, state }, version })
const edited = (draft) => { draft.text = draft.text.replace('"on"', '"off"') }

test("an unedited text follows the gateway's context", () => {
  const draft = new ContextDraft()
  assert.equal(draft.take(base(1)).change, "loaded")
  assert.equal(draft.take(base(1)).change, "none")
  assert.equal(draft.take(base(2, "off")).change, "loaded")
  assert.deepEqual(JSON.parse(draft.text), base(2, "off").context)
})

test("an edited text is kept and marked as behind until it is reloaded", () => {
  const draft = new ContextDraft()
  draft.take(base(1))
  edited(draft)
  const { text } = draft
  assert.equal(draft.take(base(2, "x")).change, "behind")
  assert.deepEqual([draft.text, draft.base.version, draft.isBehind], [text, 1, true])
  assert.equal(draft.take(base(1)).change, "none")
  assert.equal(draft.isBehind, false)
  draft.take(base(3, "y"))
  assert.equal(draft.take(base(3, "y"), true).change, "loaded")
  assert.deepEqual([JSON.parse(draft.text).state, draft.isEdited, draft.isBehind], ["y", false, false])
})

test("text typed during a save is kept for the next save", () => {
  const draft = new ContextDraft()
  draft.take(base(1))
  edited(draft)
  draft.send()
  assert.ok(draft.isSaving)
  draft.text += "  "
  assert.equal(draft.take(base(2, "off")).change, "none")
  assert.equal(draft.saved(base(2, "off")), false)
  assert.ok(draft.text.endsWith("  ") && draft.isEdited && !draft.isSaving && !draft.isBehind)
  assert.equal(draft.base.version, 2)
  draft.reset()
  assert.equal(JSON.parse(draft.text).state, "off")
})

test("a text that was saved unchanged is no longer edited", () => {
  const draft = new ContextDraft()
  draft.take(base(1))
  edited(draft)
  draft.send()
  assert.equal(draft.saved(base(2, "off")), true)
  assert.deepEqual([draft.isEdited, draft.base.version], [false, 2])
  edited(draft)
  draft.send()
  draft.refused()
  assert.equal(draft.isSaving, false)
})

test("an edited text is restored when its context is opened again", () => {
  const draft = new ContextDraft()
  draft.take(base(1))
  edited(draft)
  const { text } = draft
  const { change, left } = draft.take(base(7, "on", "c2"))
  assert.deepEqual([change, left.objectId, draft.isEdited], ["loaded", "c1", false])
  assert.equal(draft.take(base(1)).change, "restored")
  assert.deepEqual([draft.text, draft.isEdited, draft.isBehind], [text, true, false])
  draft.take(base(7, "on", "c2"))
  assert.equal(draft.take(base(2, "x")).change, "restored")
  assert.deepEqual([draft.text, draft.isBehind], [text, true])
  assert.equal(draft.take(base(7, "on", "c2")).change, "loaded")
})

test("a save that completes after switching contexts is applied to its own context", () => {
  for (const isTypedOn of [false, true]) {
    const draft = new ContextDraft()
    draft.take(base(1))
    edited(draft)
    draft.send()
    if (isTypedOn) draft.text += " "
    draft.take(base(7, "on", "c2"))
    draft.saved(base(2, "off"))
    assert.equal(draft.id, "c2")
    assert.equal(draft.take(base(2, "off")).change, isTypedOn ? "restored" : "loaded")
    assert.deepEqual([draft.isBehind, draft.isEdited], [false, isTypedOn])
  }
})

test("the number of edited texts is bounded", () => {
  const draft = new ContextDraft()
  const change = (index) => draft.take(base(1, "on", `c${index}`)).change
  for (let index = 0; index <= maximumDrafts + 1; index++) {
    change(index)
    edited(draft)
  }
  assert.deepEqual([change(0), change(2)], ["loaded", "restored"])
})

test("a context of any size can be edited", () => {
  const draft = new ContextDraft()
  const context = { objectId: "c", name: "n", long: "x".repeat(300_000), list: Array.from({ length: 20_000 }, (_, a) => ({ a })) }
  draft.take({ context, version: 1 })
  assert.deepEqual(JSON.parse(draft.text), context)
})
