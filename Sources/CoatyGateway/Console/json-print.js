// JSON to be read by people. What it costs grows with what is printed, and with how many members an object has.

/** The most characters that are shown of a value. */
export const maximumShown = 100_000

/** What stands in one line where it is short. */
const shortLine = 60
/** The deepest indentation, and the deepest lists and objects that are shown. */
const maximumIndent = 40
const maximumDepth = 600

/**
 * Prints a value as JSON: a list or object without others in it stands in one line, where that is short.
 *
 * @param {any} value what `JSON.parse` gives
 * @param {{ maximum?: number }} [options] where it is cut; a value to be edited or copied is not
 */
export function prettyJSON(value, { maximum = Infinity } = {}) {
  const printer = new Printer(maximum)
  printer.print(value, "", 0)
  const text = printer.parts.join("")
  return printer.isFull ? `${text.slice(0, maximum)}\n… and more` : text
}

class Printer {
  parts = []
  #room

  constructor(maximum) {
    this.#room = maximum
  }

  get isFull() {
    return this.#room < 0
  }

  print(value, indent, depth) {
    if (typeof value !== "object" || value === null) return this.#add(scalar(value, this.#room))
    const line = oneLine(value)
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

/** A long text is cut before it is escaped. */
function scalar(value, room) {
  return typeof value === "string" && value.length > room ? JSON.stringify(value.slice(0, Math.max(0, room) + 1)) : JSON.stringify(value) ?? "null"
}

/** A list or object in a line; undefined where that is not short, or where there are others in it. */
function oneLine(value) {
  const isList = Array.isArray(value)
  const parts = []
  let length = 2
  for (const name in value) {
    const item = value[name]
    if (typeof item === "object" && item !== null && !isEmpty(item)) return undefined
    if (typeof item === "string" && item.length > shortLine || name.length > shortLine) return undefined
    const text = typeof item === "object" && item !== null ? (Array.isArray(item) ? "[]" : "{}") : JSON.stringify(item)
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
