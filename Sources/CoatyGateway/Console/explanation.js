// Explains in words why a source and an actor are associated or not. Pure.

import { line } from "./dom.js"

/** Maximum nesting depth of an explained condition; the gateway evaluates none that is deeper. */
const maximumDepth = 64
/** Maximum length of a text from the network, in characters. */
const maximumLength = 200

/**
 * Returns an explanation in words.
 *
 * @param explanation the gateway's explanation
 * @returns `{isAssociated, verdict, parts}`: a sentence, and the rules with their conditions, `[{holds, text, parts?}]`
 */
export function explain(explanation, sourceName, actorName) {
  const { associated, compatible, valueTypes, useRawIoValues, decidedBy } = explanation ?? {}
  const rules = objects(explanation?.rules)
  const pair = `“${sourceName}” and “${actorName}”`
  const isAssociated = associated === true
  const explained = (reason, parts = []) => ({
    isAssociated,
    verdict: `${pair} are ${isAssociated ? "associated" : "not associated"}${reason}`,
    parts,
  })
  if (!compatible) {
    if (valueTypes?.source !== valueTypes?.actor) {
      return explained(`: the source gives ${quoted(valueTypes.source)}, the actor takes ${quoted(valueTypes.actor)}.`)
    }
    const kind = (isRaw) => (isRaw ? "raw values" : "JSON values")
    return explained(`: the source gives ${kind(useRawIoValues?.source)}, the actor takes ${kind(useRawIoValues?.actor)}.`)
  }
  const parts = rules.map(({ name, holds, condition }) => ({
    holds: holds === true,
    text: `Rule ${quoted(name)} ${holds === true ? "holds" : "does not hold"}${isObject(condition) ? ":" : "."}`,
    parts: isObject(condition) ? [inWords(condition)] : [],
  }))
  if (rules.length === 0) return explained(`: no rule is for ${quoted(valueTypes?.source)}.`)
  if (decidedBy === undefined) return explained(rules.length === 1 ? ": its rule does not hold." : ": no rule holds.", parts)
  return explained(isAssociated ? ` by the rule ${quoted(decidedBy)}.` : `, though the rule ${quoted(decidedBy)} holds.`, parts)
}

/** Texts by operator: for a condition that holds, and for one that does not. */
const operators = {
  LessThan: ["is less than", "should be less than"],
  LessThanOrEqual: ["is at most", "should be at most"],
  GreaterThan: ["is greater than", "should be greater than"],
  GreaterThanOrEqual: ["is at least", "should be at least"],
  Between: ["is between", "should be between"],
  NotBetween: ["is not between", "should not be between"],
  Like: ["is like", "should be like"],
  Equals: ["equals", "should equal"],
  NotEquals: ["does not equal", "should not equal"],
  Exists: ["is there", "should be there"],
  NotExists: ["is not there, as required", "should not be there"],
  Contains: ["contains", "should contain"],
  NotContains: ["does not contain", "should not contain"],
  In: ["is one of", "should be one of"],
  NotIn: ["is none of", "should be none of"],
}

/** Returns a condition in words, with the compared values. */
function inWords(condition, depth = 0) {
  const holds = condition.holds === true
  if (condition.tooDeep || depth === maximumDepth) return { holds, text: "The condition is nested too deep." }
  if (condition.exhausted) return { holds, text: "The condition takes too much work." }
  const all = (conditions) => objects(conditions).map((condition) => inWords(condition, depth + 1))
  if (Array.isArray(condition.and) && condition.and.length === 0) return { holds, text: "The condition is empty, so it always holds." }
  if (condition.and) return { holds, text: "All of these hold:", parts: all(condition.and) }
  if (condition.or) return { holds, text: "One of these holds at least:", parts: all(condition.or) }
  if (condition.not) return { holds, text: "This does not hold:", parts: all([condition.not]) }
  const operator = line(condition.operator, maximumLength)
  const name = path(condition.property)
  const words = Object.hasOwn(operators, operator) ? operators[operator][holds ? 0 : 1] : operator
  if (operator === "Exists" || operator === "NotExists") {
    const value = valueText(condition)
    return { holds, text: value === undefined ? `${name} ${words}.` : `${name} ${words}: ${value}.` }
  }
  const operands = objects(condition.operands).map(operand).join(" and ")
  return { holds, text: `${name} is ${valueText(condition) ?? "not there"}; it ${words} ${operands}.` }
}

function operand(operand) {
  if (operand.property === undefined) return valueText(operand) ?? "nothing"
  return `${path(operand.property)}, which is ${valueText(operand) ?? "not there"}`
}

function path(property) {
  return Array.isArray(property) ? line(property.map((name) => line(name, maximumLength)).join("."), maximumLength) : line(property, maximumLength)
}

/** Returns a value as text; undefined if there is none. */
function valueText({ value, valueBegins, valueLength }) {
  if (valueBegins !== undefined) return `${line(valueBegins, maximumLength)}… (${line(valueLength)} bytes)`
  if (value === undefined) return undefined
  return typeof value === "string" ? JSON.stringify(value.length > maximumLength ? value.slice(0, maximumLength) + "…" : value) : line(value, maximumLength)
}

const quoted = (text) => `“${line(text, maximumLength)}”`
const isObject = (value) => typeof value === "object" && value !== null
const objects = (value) => (Array.isArray(value) ? value.filter(isObject) : [])
