// How the console reads the grants of a user.

import assert from "node:assert/strict"
import { test } from "node:test"
import { Access, covers, questions } from "../../../Sources/CoatyGateway/Console/access.js"
import { question } from "../../../Sources/CoatyGateway/Console/access-check.js"
import { curlCommand } from "../../../Sources/CoatyGateway/Console/curl.js"
import { tokenFault } from "../../../Sources/CoatyGateway/Console/token.js"

const access = (...grants) => new Access({ name: "dashboard", roles: ["viewer"], grants })

test("A user may do what at least one grant allows", () => {
  const user = access(
    { role: "viewer", observe: ["advertise", "channel"], types: ["com.example.*"], channels: ["hall/*"], where: ["object.site", ["Exists"]] },
    { role: "operator", route: ["Temperature*"] },
    { role: "viewer", publish: ["raw"], topics: ["a/#"], retain: true },
  )
  assert.deepEqual(user.grants.map(({ name }) => name), ["viewer#1", "operator#1", "viewer#2"])
  assert.deepEqual(user.grants[0].names, ["com.example.*", "hall/*"])
  assert.equal(user.may("observe", "traffic", "advertise"), true)
  assert.equal(user.may("observe", "traffic"), false)
  assert.equal(user.may("publish", "advertise"), false)
  assert.equal(user.mayRoute("TemperatureMeasurement"), true)
  assert.equal(user.mayRoute("Light"), false)
  assert.equal(user.mayRetain, true)
  assert.equal(user.isOpen, false)
})

test("An unrestricted user may do everything", () => {
  const open = new Access({ name: null, roles: [], attributes: {}, unrestricted: true, grants: [] })
  assert.equal(open.isOpen, true)
  assert.equal(open.may("publish", "raw") && open.mayRoute("Any") && open.mayRetain, true)
  assert.equal(new Access({ name: "admin", unrestricted: true }).isOpen, false)
})

test("Entries of a grant cover names and prefixes", () => {
  for (const [entry, name, isCovered] of [
    ["a", "a", true], ["a", "ab", false], ["a*", "ab", true], ["*", "", true], ["a\\*", "a*", true], ["a\\*", "ab", false],
    ["a\\\\*", "a\\b", true], ["a\\\\", "a\\", true], ["A*", "ab", false],
  ]) assert.equal(covers(entry, name), isCovered, `${entry} ${name}`)
})

test("A question contains only the members of its pattern", () => {
  assert.deepEqual(question("publish", "advertise", { name: "com.example.Lamp", json: { site: 1 }, others: true }), {
    publish: "advertise", type: "com.example.Lamp", object: { site: 1 }, others: true,
  })
  assert.deepEqual(question("observe", "advertise", { name: "Task" }), { observe: "advertise", coreType: "Task" })
  assert.deepEqual(question("answer", "call", { name: "a", json: {} }), { answer: "call", operation: "a", request: {} })
  assert.deepEqual(question("route", "contexts", { name: "Hall" }), { route: "contexts", context: "Hall" })
  assert.deepEqual(question("read", "status", { name: "left over" }), { read: "status" })
  for (const [verb, patterns] of Object.entries(questions)) {
    for (const pattern of Object.keys(patterns)) assert.deepEqual(question(verb, pattern, {}), { [verb]: pattern })
  }
})

test("A token that is invalid in a header field is refused", () => {
  assert.equal(tokenFault("coaty_aB-9_"), undefined)
  for (const text of ["", "two words", "“quoted”", "a\nb"]) assert.notEqual(tokenFault(text), undefined)
})

test("The curl command reads the token from a variable", () => {
  const request = { path: "v1/advertise", body: "{}" }
  assert.match(curlCommand(request, "http://127.0.0.1/", true), / -H "authorization: Bearer \$COATY_GATEWAY_TOKEN"/)
  assert.doesNotMatch(curlCommand(request, "http://127.0.0.1/"), /authorization/)
})
