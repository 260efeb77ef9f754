// JSON with indentation. The cost is proportional to the printed text and the members of an object.

/** Maximum number of characters of a value that are shown. */
export const maximumShown = 100_000

/** Maximum number of characters of a list or object that is printed in one line. */
const shortLine = 60
/** Maximum indentation in characters, and maximum nesting depth that is shown. */
const maximumIndent = 40
const maximumDepth = 600

/**
 * Returns a value as indented JSON. A short list or object without nested ones is printed in one line.
 *
 * @param {any} value a result of `JSON.parse` or `parseExact`
 * @param {{ maximum?: number, isCode?: boolean }} [options] maximum number of characters, for display only; unlimited by default;
 *   and whether to print a BigInt as JavaScript does
 */
export function prettyJSON(value, { maximum = Infinity, isCode = false } = {}) {
  const printer = new Printer(maximum, isCode)
  printer.print(value, "", 0)
  const text = printer.parts.join("")
  return printer.isFull ? `${text.slice(0, maximum)}\n… and more` : text
}

class Printer {
  parts = []
  #room
  #isCode

  constructor(maximum, isCode) {
    this.#room = maximum
    this.#isCode = isCode
  }

  get isFull() {
    return this.#room < 0
  }

  print(value, indent, depth) {
    if (typeof value !== "object" || value === null) return this.#add(scalar(value, this.#room, this.#isCode))
    const line = oneLine(value, this.#isCode)
    if (line !== undefined) return this.#add(line)
    if (depth === maximumDepth) return this.#add(Array.isArray(value) ? "[…]" : "{…}")
    const inner = indent.length < maximumIndent ? indent + "  " : indent
    const isList = Array.isArray(value)
    this.#add(isList ? "[" : "{")
    let separator = "\n"
    if (isList) {
      for (const item of value) {
        if (this.isFull) return
        this.#add(separator + inner)
        this.print(item, inner, depth + 1)
        separator = ",\n"
      }
    } else {
      for (const name in value) {
        if (this.isFull) return
        this.#add(`${separator}${inner}${scalar(name, this.#room)}: `)
        this.print(value[name], inner, depth + 1)
        separator = ",\n"
      }
    }
    this.#add(`\n${indent}${isList ? "]" : "}"}`)
  }

  #add(text) {
    this.parts.push(text)
    this.#room -= text.length
  }
}

/** Returns a scalar as JSON. A long text is cut before it is escaped. */
function scalar(value, room, isCode) {
  if (typeof value === "bigint") return isCode ? `${value}n` : String(value)
  return typeof value === "string" && value.length > room ? JSON.stringify(value.slice(0, Math.max(0, room) + 1)) : JSON.stringify(value) ?? "null"
}

/** Returns a list or object as one line; undefined if the line would be too long, or if there are nested ones. */
function oneLine(value, isCode) {
  const isList = Array.isArray(value)
  const parts = []
  let length = 2
  for (const name in value) {
    const item = value[name]
    if (typeof item === "object" && item !== null && !isEmpty(item)) return undefined
    if (typeof item === "string" && item.length > shortLine || name.length > shortLine) return undefined
    const text = typeof item === "object" && item !== null ? (Array.isArray(item) ? "[]" : "{}") : scalar(item, Infinity, isCode)
    const part = isList ? text : `${JSON.stringify(name)}: ${text}`
    length += part.length + 2
    if (length > shortLine) return undefined
    parts.push(part)
  }
  if (isList) return `[${parts.join(", ")}]`
  return parts.length === 0 ? "{}" : `{ ${parts.join(", ")} }`
}

function isEmpty(value) {
  for (const _ in value) return false
  return true
}
