// Conditions as rows of a form. Each row has a property, an operator and a value; all rows or at least one must hold. Pure.

import { parseExact, stringifyExact } from "../client.js"

/** The operators. `values` is the number of values that an operator takes, or `list`. */
export const operators = {
  Equals: { title: "equals", values: 1 },
  NotEquals: { title: "does not equal", values: 1 },
  Like: { title: "is like", values: 1, hint: "% any text, _ one character" },
  LessThan: { title: "is less than", values: 1 },
  LessThanOrEqual: { title: "is at most", values: 1 },
  GreaterThan: { title: "is greater than", values: 1 },
  GreaterThanOrEqual: { title: "is at least", values: 1 },
  Between: { title: "is between", values: 2, hint: "two values: 1, 9" },
  NotBetween: { title: "is not between", values: 2, hint: "two values: 1, 9" },
  In: { title: "is one of", values: "list", hint: "values: open, closed" },
  NotIn: { title: "is none of", values: "list", hint: "values: open, closed" },
  Contains: { title: "contains", values: 1 },
  NotContains: { title: "does not contain", values: 1 },
  Exists: { title: "exists", values: 0 },
  NotExists: { title: "does not exist", values: 0 },
}

/**
 * @typedef {{ property: string, operator: string, value: string }} Row
 * @typedef {{ join: "and" | "or", rows: Row[] }} Rows
 */

/** Returns the condition of rows; undefined if no row has a property. @param {Rows} form */
export function conditionOf({ join, rows }) {
  const conditions = rows.filter(({ property }) => property.trim() !== "").map(({ property, operator, value }) =>
    [property.trim(), [operator, ...operandsOf(operator, value)]])
  return conditions.length > 1 ? { [join]: conditions } : conditions[0]
}

/** Returns the rows of a condition; undefined if rows can't express it. @returns {Rows | undefined} */
export function rowsOf(condition) {
  if (condition === undefined) return { join: "and", rows: [] }
  const join = isObject(condition) && Object.keys(condition).length === 1 ? ["and", "or"].find((join) => Array.isArray(condition[join])) : undefined
  const rows = (join ? condition[join] : [condition]).map(rowOf)
  return rows.length === 0 || rows.includes(undefined) ? undefined : { join: join ?? "and", rows }
}

function rowOf(condition) {
  if (!Array.isArray(condition) || condition.length !== 2) return undefined
  const [property, expression] = condition
  if (typeof property !== "string" || property.trim() !== property || property === "" || !Array.isArray(expression)) return undefined
  const [operator, ...operands] = expression
  if (typeof operator !== "string" || !Object.hasOwn(operators, operator)) return undefined
  const { values } = operators[operator]
  const list = values === "list" ? operands[0] : operands
  if (!Array.isArray(list) || (values === "list" ? operands.length !== 1 : operands.length !== values)) return undefined
  // The form has no field for an operand that is another property.
  if (list.some(isObject)) return undefined
  const row = { property, operator, value: list.map((value) => textOf(value, values !== 1)).join(", ") }
  return stringifyExact(conditionOf({ join: "and", rows: [row] })) === stringifyExact(condition) ? row : undefined
}

function operandsOf(operator, text) {
  const { values } = operators[operator]
  if (values === 0) return []
  if (values === 1) return [valueOfText(text)]
  const list = listOf(text)
  return values === "list" ? [list] : list
}

/** Reads values that are separated by commas: JSON, or texts. */
function listOf(text) {
  if (text.trim() === "") return []
  try {
    return parseExact(`[${text}]`)
  } catch {
    return text.split(",").map((part) => valueOfText(part))
  }
}

/** Reads a text as JSON if it is JSON: `3`, `true`, `"3"`. */
function valueOfText(text) {
  try {
    return parseExact(text)
  } catch {
    return text.trim()
  }
}

function textOf(value, isInList) {
  const isPlain = typeof value === "string" && valueOfText(value) === value && value !== "" && !(isInList && value.includes(","))
  return isPlain ? value : stringifyExact(value)
}

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value)
