// JSON that people write: what it says, or where it stops to be JSON.

/** What a text is not, and where: counted from 1. */
export class JSONTextError extends Error {
  constructor(what, text, position) {
    const before = text.slice(0, position).split("\n")
    const [line, column] = [before.length, before.at(-1).length + 1]
    super(`Line ${line}, column ${column}: ${what}.`)
    this.position = position
  }
}

/**
 * Reads JSON.
 *
 * @throws JSONTextError browsers say it each in their own way, and some do not say where
 */
export function parseJSON(text) {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw firstError(text) ?? error
  }
}

/** JSON to be read and changed: a list without objects stands in one line, where that is short. */
export function prettyJSON(value, indent = "") {
  if (typeof value !== "object" || value === null) return JSON.stringify(value)
  if (Array.isArray(value) && hasNoObject(value)) {
    const line = `[${value.map((item) => prettyJSON(item)).join(", ")}]`
    if (line.length <= maximumLine && !line.includes("\n")) return line
  }
  const inner = indent + "  "
  const parts = Array.isArray(value)
    ? value.map((item) => inner + prettyJSON(item, inner))
    : Object.entries(value).map(([name, item]) => `${inner}${JSON.stringify(name)}: ${prettyJSON(item, inner)}`)
  const [open, close] = Array.isArray(value) ? "[]" : "{}"
  return parts.length === 0 ? open + close : `${open}\n${parts.join(",\n")}\n${indent}${close}`
}

const maximumLine = 60
const hasNoObject = (value) => Array.isArray(value) ? value.every(hasNoObject) : typeof value !== "object" || value === null

const token = /[ \t\n\r]*(?:([[\]{}:,])|("[^"\\\u0000-\u001f]*(?:\\(?:["\\/bfnrt]|u[\da-fA-F]{4})[^"\\\u0000-\u001f]*)*")|(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)(?![\w.]))/y
const blank = /[ \t\n\r]*/y

function firstError(text) {
  /** The brackets that are open. */
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

/** What may come behind a token; undefined where that may not be here. */
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
