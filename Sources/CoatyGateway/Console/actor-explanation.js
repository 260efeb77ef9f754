// Explains why an actor gets nothing, over all sources of its context.

import { line, plural } from "./dom.js"
import { explain } from "./explanation.js"
import { rateText } from "./routing-model.js"
import { measuredText } from "./source-rates.js"

/** Maximum number of sources that the gateway is asked about. */
export const maximumAsked = 60
/** Number of concurrent requests. */
const atATime = 4
/** Maximum number of rules, reasons and names that are shown. */
const maximumRules = 3
const maximumReasons = 8
const maximumNames = 4

/**
 * Returns why an actor gets nothing, or what it gets.
 *
 * @param actor `{ id, name, valueType }`
 * @param sources all sources of the context, `[{ id, name, valueType }]`
 * @param associated the sources that are associated with it, `[{ id, rate }]`
 * @param measure `(sourceId, rate) => measured` of `SourceRates.of`
 * @param ask `async (sourceId) => explanation` of the gateway
 * @returns `{ verdict, isFed, reasons: [{ text, names }] }`
 */
export async function explainActor({ actor, sources, associated, measure, ask }) {
  const name = quoted(actor.name)
  if (associated.length > 0) return explainFed(name, sources, associated, measure)
  const nothing = (reason, reasons = []) => ({ isFed: false, verdict: `${name} gets nothing${reason}`, reasons })
  if (sources.length === 0) return nothing(": the context has no IO source.")
  const others = sources.filter(({ valueType }) => valueType !== actor.valueType)
  const asked = sources.filter(({ valueType }) => valueType === actor.valueType)
  const reasons = new Map()
  const note = (text, source) => reasons.set(text, [...(reasons.get(text) ?? []), source.name])
  await forEach(asked.slice(0, maximumAsked), async (source) => note(reason(await ask(source.id)), source))
  const ofTypes = [...reasons].map(([text, names]) => ({ text, names }))
  for (const source of others) note(`The source gives ${quoted(source.valueType)}, the actor takes ${quoted(actor.valueType)}.`, source)
  const all = [...reasons].map(([text, names]) => ({ text, names })).slice(0, maximumReasons)
  if (asked.length === 0) return nothing(`: no source gives ${quoted(actor.valueType)}.`, all)
  const ofThem = `${plural(asked.length, "source")} of its value type`
  if (ofTypes.length === 1) return nothing(` from the ${ofThem}. ${ofTypes[0].text}`, all.slice(1))
  return nothing(`: no rule associates it with any of the ${ofThem}.`, all)
}

/** Explains what an actor with associations gets. */
function explainFed(name, sources, associated, measure) {
  const nameOf = (id) => sources.find((source) => source.id === id)?.name ?? id
  const reasons = associated.slice(0, maximumReasons).map(({ id, rate }) => {
    const measured = measure(id, rate)
    const agreed = rate === undefined ? "no rate agreed" : `agreed ${rateText(rate)}`
    return { isFed: measured?.isSilent === false, text: `${agreed}, measured: ${measuredText(measured)}.`, names: [nameOf(id)] }
  })
  const isFed = reasons.some(({ isFed }) => isFed)
  const from = plural(associated.length, "source")
  return {
    isFed,
    verdict: isFed ? `${name} gets values from ${from}.`
      : `${name} is associated with ${from}, but receives no values.`,
    reasons: reasons.map(({ text, names }) => ({ text, names })),
  }
}

/** Returns why a source and an actor are not associated: equal sentences for pairs with the same reason. */
export function reason(explanation) {
  const { verdict, parts } = explain(explanation, "", "")
  const failing = parts.filter(({ holds }) => !holds)
  if (failing.length === 0) {
    const text = verdict.replace(/^.*?not associated[:,]? ?/, "")
    return text.charAt(0).toUpperCase() + text.slice(1)
  }
  const texts = failing.slice(0, maximumRules).map((rule) => `${rule.text} ${leaf(rule)}`.trim())
  return texts.join(" ")
}

/** Returns the innermost condition that does not hold. */
function leaf({ parts = [] }) {
  const failing = parts.find(({ holds }) => !holds)
  if (failing === undefined) return parts.map(({ text }) => text).join(" ")
  const inner = leaf(failing)
  // Of a conjunction, the part that fails is enough; a negation needs both texts.
  if (inner === "") return failing.text
  return failing.parts.some(({ holds }) => !holds) ? inner : `${failing.text} ${inner}`
}

/** Returns a list of names: “A”, “B” and 3 others. */
export function namesText(names) {
  const shown = names.slice(0, maximumNames).map(quoted)
  const rest = names.length - shown.length
  return rest > 0 ? `${shown.join(", ")} and ${plural(rest, "other")}` : shown.join(", ")
}

/** Calls an async function with each item, at most `atATime` concurrently. */
async function forEach(items, work) {
  const rest = items[Symbol.iterator]()
  const turns = Array.from({ length: atATime }, async () => {
    for (const item of rest) await work(item)
  })
  await Promise.all(turns)
}

const quoted = (text) => `“${line(text, 200)}”`
