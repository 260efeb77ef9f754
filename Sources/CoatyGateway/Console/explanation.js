// Why a source and an actor are associated, or are not, in words. Pure.

/**
 * @param explanation as the gateway gives it
 * @returns `{isAssociated, verdict, parts}`: a sentence, and what decided, `[{holds, text, parts?}]`
 */
export function explain(explanation, sourceName, actorName) {
  const { associated, compatible, valueTypes, useRawIoValues, rules, decidedBy } = explanation
  const pair = `“${sourceName}” and “${actorName}”`
  const isAssociated = associated === true
  const told = (reason, parts = []) => ({
    isAssociated,
    verdict: `${pair} are ${isAssociated ? "associated" : "not associated"}${reason}`,
    parts,
  })
  if (!compatible) {
    if (valueTypes.source !== valueTypes.actor) {
      return told(`: the source gives ${quoted(valueTypes.source)}, the actor takes ${quoted(valueTypes.actor)}.`)
    }
    const kind = (isRaw) => (isRaw ? "raw values" : "JSON values")
    return told(`: the source gives ${kind(useRawIoValues.source)}, the actor takes ${kind(useRawIoValues.actor)}.`)
  }
  const parts = rules.map(({ name, holds, condition }) => ({
    holds,
    text: `Rule “${name}” ${holds ? "holds" : "does not hold"}${condition ? ":" : "."}`,
    parts: condition ? [inWords(condition)] : [],
  }))
  if (rules.length === 0) return told(`: no rule is for ${quoted(valueTypes.source)}.`)
  if (decidedBy === undefined) return told(rules.length === 1 ? ": its rule does not hold." : ": no rule holds.", parts)
  return told(isAssociated ? ` by the rule “${decidedBy}”.` : `, though the rule “${decidedBy}” holds.`, parts)
}

/** What has to hold of a value, by the operator: where it does, and where it does not. */
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
  NotExists: ["is not there, as it should", "should not be there"],
  Contains: ["contains", "should contain"],
  NotContains: ["does not contain", "should not contain"],
  In: ["is one of", "should be one of"],
  NotIn: ["is none of", "should be none of"],
}

/** A condition with the values that were compared. */
function inWords(condition) {
  const { holds } = condition
  if (condition.and?.length === 0) return { holds, text: "It asks for nothing." }
  if (condition.and) return { holds, text: "All of these hold:", parts: condition.and.map(inWords) }
  if (condition.or) return { holds, text: "One of these holds at least:", parts: condition.or.map(inWords) }
  if (condition.not) return { holds, text: "This does not hold:", parts: [inWords(condition.not)] }
  if (condition.tooDeep) return { holds, text: "The condition is nested too deep." }
  if (condition.exhausted) return { holds, text: "The condition takes too much work." }
  const name = path(condition.property)
  const words = operators[condition.operator]?.[holds ? 0 : 1] ?? condition.operator
  const operands = (condition.operands ?? []).map(operand).join(" and ")
  if (condition.operator === "Exists" || condition.operator === "NotExists") {
    const value = valueText(condition)
    return { holds, text: value === undefined ? `${name} ${words}.` : `${name} ${words}: ${value}.` }
  }
  return { holds, text: `${name} is ${valueText(condition) ?? "not there"}; it ${words} ${operands}.` }
}

function operand(operand) {
  if (operand.property === undefined) return valueText(operand) ?? "nothing"
  return `${path(operand.property)}, which is ${valueText(operand) ?? "not there"}`
}

const path = (property) => (Array.isArray(property) ? property.join(".") : String(property))

/** Undefined where there is no value. */
function valueText({ value, valueBegins, valueLength }) {
  if (valueBegins !== undefined) return `${valueBegins}… (${valueLength} bytes)`
  return value === undefined ? undefined : JSON.stringify(value)
}

const quoted = (text) => `“${text}”`
