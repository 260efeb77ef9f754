import assert from "node:assert/strict"
import test from "node:test"
import { Address, fragment, readFragment } from "../../../Sources/CoatyGateway/Console/address.js"

/** The parts of a browser's history and location that an address uses. */
class Tab {
  entries = [{ hash: "", state: null }]
  at = 0
  pushState = (state, _, hash) => {
    this.entries.splice(this.at + 1, Infinity, { hash, state })
    this.at += 1
  }
  replaceState = (state, _, hash) => { this.entries[this.at] = { hash, state } }
  get state() { return this.entries[this.at].state }
  get hash() { return this.entries[this.at].hash }
  follow(hash) { this.pushState(null, "", hash) }
  go(steps) { this.at += steps }
}

const isView = (id) => ["feed", "alive"].includes(id)

test("a fragment that was written is read unchanged", () => {
  const parameters = { kinds: "call,return", find: "a b&c=d#é%", filter: '["name",["Like","%door%"]]' }
  assert.deepEqual(readFragment(fragment("feed", parameters)), { id: "feed", parameters })
  assert.equal(fragment("feed", { find: "", event: undefined }), "#feed")
  assert.deepEqual(readFragment("#feed"), { id: "feed", parameters: {} })
  assert.deepEqual(readFragment(""), { id: "", parameters: {} })
  assert.equal(readFragment(`#feed?find=${"x".repeat(1e6)}`).parameters.find.length, 8000)
})

test("going back undoes one change of the address at a time", () => {
  const tab = new Tab()
  const address = new Address(tab, tab)
  tab.follow("#feed")
  assert.deepEqual(address.take(isView), { id: "feed", parameters: {} })
  address.write("feed", { kinds: "call" }, true)
  address.write("feed", { kinds: "call", find: "d" })
  address.write("feed", { kinds: "call", find: "do" })
  address.write("feed", { kinds: "call", find: "do", sender: "a" }, true)
  assert.equal(tab.hash, "#feed?kinds=call&find=do&sender=a")
  tab.go(-1)
  assert.deepEqual(address.take(isView), { id: "feed", parameters: { kinds: "call", find: "do" } })
  tab.go(-1)
  assert.deepEqual(address.take(isView), { id: "feed", parameters: {} }, "typing adds no history entry")
  tab.go(2)
  assert.deepEqual(address.take(isView).parameters, { kinds: "call", find: "do", sender: "a" })
})

test("a link to another view restores its parameters, and a link to the shown view resets them", () => {
  const tab = new Tab()
  const address = new Address(tab, tab)
  tab.follow("#feed?find=door")
  address.take(isView)
  tab.follow("#alive")
  assert.deepEqual(address.take(isView), { id: "alive", parameters: {} })
  tab.follow("#feed")
  assert.deepEqual(address.take(isView), { id: "feed" })
  assert.equal(tab.hash, "#feed?find=door")
  tab.follow("#feed")
  assert.deepEqual(address.take(isView), { id: "feed", parameters: {} })
})

test("a link to something that is not a view keeps the address", () => {
  const tab = new Tab()
  const address = new Address(tab, tab)
  tab.follow("#feed?find=door")
  address.take(isView)
  tab.follow("#main")
  assert.equal(address.take(isView), undefined)
  assert.equal(tab.hash, "#feed?find=door")
})

test("parameters of a hidden view are written when it is shown again", () => {
  const tab = new Tab()
  const address = new Address(tab, tab)
  tab.follow("#feed")
  address.take(isView)
  tab.follow("#alive")
  address.take(isView)
  address.write("feed", { find: "late" })
  assert.equal(tab.hash, "#alive")
  tab.follow("#feed")
  address.take(isView)
  assert.equal(tab.hash, "#feed?find=late")
})

test("a browser that refuses to change the address causes no error", () => {
  const refuse = () => { throw new Error("too many calls") }
  const address = new Address({ state: null, pushState: refuse, replaceState: refuse }, { hash: "#feed" })
  address.take(isView)
  address.write("feed", { find: "x" }, true)
})
