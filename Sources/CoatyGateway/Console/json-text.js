// Parses JSON that users type, and reports where it is invalid. Large integers are BigInt.

import { parseExact } from "../client.js"

/** A syntax error with its line and column, counted from 1. */
export class JSONTextError extends Error {
  constructor(what, text, position) {
    const before = text.slice(0, position).split("\n")
    const [line, column] = [before.length, before.at(-1).length + 1]
    super(`Line ${line}, column ${column}: ${what}.`)
    this.position = position
  }
}

/** A number that JavaScript can't represent exactly. */
export class NumberError extends JSONTextError {
  constructor(literal, kept, text, position) {
    const shown = literal.length > maximumLiteral ? literal.slice(0, maximumLiteral) + "…" : literal
    super(`${shown} would become ${kept}`, text, position)
  }
}

/** Maximum number of characters of a number in an error message. */
const maximumLiteral = 40
/** Maximum nesting depth: the gateway accepts 512 levels, and the frame around the value is one of them. */
const maximumDepth = 511

/**
 * Parses JSON.
 *
 * @throws JSONTextError with the position, which not all browsers report
 */
export function parseJSON(text) {
  try {
    return parseExact(text)
  } catch (error) {
    throw firstError(text) ?? error
  }
}

/**
 * Parses JSON whose values stay the same when it is written again.
 *
 * @throws JSONTextError as `parseJSON`, for a number that would change, and for a text that is nested too deeply
 */
export function parseExactJSON(text) {
  const value = parseJSON(text)
  let depth = 0
  for (const { 0: part, index } of text.matchAll(parts)) {
    if (part === "[" || part === "{") {
      depth += 1
      if (depth > maximumDepth) throw new JSONTextError(`nested deeper than ${maximumDepth} levels`, text, index)
    } else if (part === "]" || part === "}") {
      depth -= 1
    } else if (part[0] !== '"' && !isLargeInteger(part)) {
      const kept = JSON.stringify(Number(part))
      if (kept !== part && decimal(kept) !== decimal(part)) throw new NumberError(part, kept, text, index)
    }
  }
  return value
}

/** Whether a number is parsed as BigInt. */
const isLargeInteger = (part) => /^-?\d+$/.test(part) && !Number.isSafeInteger(Number(part))

/** Matches the brackets, strings and numbers of valid JSON. */
const parts = /[[\]{}]|"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[\d.eE+-]*/g

/** Returns a canonical form of a number, equal for all notations. -0 differs from 0, because JSON.stringify drops its sign. */
function decimal(literal) {
  const [, sign, whole, fraction = "", exponent = "0"] = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(literal) ?? []
  if (whole === undefined) return literal
  const digits = whole + fraction
  let [start, end] = [0, digits.length]
  while (digits[start] === "0") start += 1
  if (start === end) return `${sign}0`
  while (digits[end - 1] === "0") end -= 1
  return `${sign}${digits.slice(start, end)}e${Number(exponent) - fraction.length + digits.length - end}`
}

const token = /[ \t\n\r]*(?:([[\]{}:,])|("[^"\\\u0000-\u001f]*(?:\\(?:["\\/bfnrt]|u[\da-fA-F]{4})[^"\\\u0000-\u001f]*)*")|(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)(?![\w.]))/y
const blank = /[ \t\n\r]*/y

function firstError(text) {
  /** The open brackets, innermost last. */
  const open = []
  let state = "value"
  let position = 0
  const skip = () => {
    blank.lastIndex = position
    blank.exec(text)
    return blank.lastIndex
  }
  for (;;) {
    const start = skip()
    if (start === text.length) {
      if (state === "end") return undefined
      return new JSONTextError(`the text ends, where ${wanted[state]} should be`, text, start)
    }
    token.lastIndex = position
    const match = token.exec(text)
    if (!match) return new JSONTextError(text[start] === '"' ? "a string is not well-formed, or does not end" : `${wanted[state]} should be here`, text, start)
    position = token.lastIndex
    const next = follow(state, match[1], match[2] !== undefined, open)
    if (!next) return new JSONTextError(`${wanted[state]} should be here`, text, start)
    state = next
  }
}

const wanted = {
  value: "a value",
  element: "a value or ]",
  member: 'a name in quotation marks or "}"',
  name: "a name in quotation marks",
  colon: "a colon",
  comma: "a comma or a closing bracket",
  end: "nothing more",
}

/** Returns the state after a token; undefined if the token is not allowed in this state. */
function follow(state, mark, isString, open) {
  const value = () => (open.length > 0 ? "comma" : "end")
  const close = () => {
    open.pop()
    return value()
  }
  switch (state) {
    case "element":
      if (mark === "]") return close()
    // falls through
    case "value":
      if (mark === "{" || mark === "[") open.push(mark)
      if (mark === undefined) return value()
      return { "{": "member", "[": "element" }[mark]
    case "member":
      if (mark === "}") return close()
    // falls through
    case "name": return isString ? "colon" : undefined
    case "colon": return mark === ":" ? "value" : undefined
    case "comma":
      if (mark === ",") return open.at(-1) === "{" ? "name" : "value"
      return mark === { "{": "}", "[": "]" }[open.at(-1)] ? close() : undefined
  }
}
