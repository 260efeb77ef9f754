import assert from "node:assert/strict"
import { test } from "node:test"
import { explainActor, maximumAsked, namesText, reason } from "../../../Sources/CoatyGateway/Console/actor-explanation.js"

const actor = { id: "a", name: "Heater", valueType: "T" }
const source = (id, valueType = "T") => ({ id, name: `Source ${id}`, valueType })
const leaf = (value) => ({ holds: false, property: "actorNode.state", value, operator: "Equals", operands: [{ property: "context.state", value: "normal" }] })
const refusal = (condition) => ({ associated: false, compatible: true, valueTypes: { source: "T", actor: "T" }, rules: [{ name: "R", holds: false, condition }] })
const refused = refusal({ holds: false, and: [{ holds: true, and: [] }, leaf("emergency")] })
const sentence = "Rule “R” does not hold: actorNode.state is \"emergency\"; it should equal context.state, which is \"normal\"."

const asked = async (more) => {
  const ids = []
  const explained = await explainActor({
    actor, sources: [], associated: [], measure: () => undefined,
    ask: async (id) => {
      ids.push(id)
      return refused
    },
    ...more,
  })
  return { ...explained, ids }
}

test("a reason that all sources share is part of the verdict", async () => {
  const { verdict, isFed, reasons } = await asked({ sources: [source("1"), source("2"), source("3")] })
  assert.equal(verdict, `“Heater” gets nothing from the 3 sources of its value type. ${sentence}`)
  assert.deepEqual([isFed, reasons], [false, []])
})

test("different reasons are listed with their sources", async () => {
  const sources = [source("1"), source("2"), source("3")]
  const ask = async (id) => (id === "2" ? { ...refused, rules: [] } : refused)
  const { verdict, reasons } = await asked({ sources, ask })
  assert.equal(verdict, "“Heater” gets nothing: no rule associates it with any of the 3 sources of its value type.")
  assert.deepEqual(reasons, [{ text: sentence, names: ["Source 1", "Source 3"] }, { text: "No rule is for “T”.", names: ["Source 2"] }])
})

test("sources of other value types are not requested", async () => {
  const { verdict, reasons, ids } = await asked({ sources: [source("1", "U"), source("2", "U")] })
  assert.equal(verdict, "“Heater” gets nothing: no source gives “T”.")
  assert.deepEqual(reasons, [{ text: "The source gives “U”, the actor takes “T”.", names: ["Source 1", "Source 2"] }])
  assert.deepEqual(ids, [])
  assert.equal((await asked({})).verdict, "“Heater” gets nothing: the context has no IO source.")
})

test("requests are bounded in number and in concurrency", async () => {
  let pending = 0
  let most = 0
  const sources = Array.from({ length: 500 }, (_, number) => source(String(number)))
  const ask = async () => {
    most = Math.max(most, pending += 1)
    await new Promise((resolve) => setImmediate(resolve))
    pending -= 1
    return refused
  }
  const { verdict } = await asked({ sources, ask })
  assert.match(verdict, /from the 500 sources/)
  assert.ok(most <= 4)
  const { ids } = await asked({ sources })
  assert.equal(ids.length, maximumAsked)
})

test("the sources of an associated actor are listed with their rates", async () => {
  const measured = { interval: 4980, silence: 100, isSilent: false }
  const associated = [{ id: "1", rate: 5000 }, { id: "2", rate: undefined }]
  const sources = [source("1"), source("2")]
  const fed = await asked({ sources, associated, measure: (id) => (id === "1" ? measured : undefined) })
  assert.deepEqual([fed.verdict, fed.isFed, fed.ids], ["“Heater” gets values from 2 sources.", true, []])
  assert.deepEqual(fed.reasons.map(({ text }) => text), ["agreed every 5 s, measured: every 4.98 s.", "no rate agreed, measured: no value yet."])
  const silent = await asked({ sources, associated, measure: () => ({ ...measured, silence: 60_000, isSilent: true }) })
  assert.equal(silent.isFed, false)
  assert.match(silent.reasons[0].text, /silent for 1 min/)
})

test("the reason is the innermost condition that fails", () => {
  assert.equal(reason(refused), sentence)
  const negated = refusal({ holds: false, not: { holds: true, property: "context.off", value: true, operator: "Equals", operands: [{ value: true }] } })
  assert.equal(reason(negated), "Rule “R” does not hold: This does not hold: context.off is true; it equals true.")
  assert.match(reason({ associated: false, compatible: false, valueTypes: { source: "T", actor: "T" }, useRawIoValues: { source: true, actor: false } }),
    /^The source gives raw values, the actor takes JSON values\.$/)
  for (const odd of [{}, null, undefined, { rules: [null, 7, {}] }, { compatible: true, rules: [{ condition: "x" }] }]) assert.equal(typeof tryReason(odd), "string")
})

/** Returns the reason for an incomplete explanation, as another version of the gateway may send it. */
function tryReason(explanation) {
  return reason({ compatible: true, ...explanation })
}

test("the number of shown names is bounded", () => {
  assert.equal(namesText(["A"]), "“A”")
  assert.equal(namesText(["A", "B", "C", "D", "E", "F"]), "“A”, “B”, “C”, “D” and 2 others")
})
