// Elements, texts and drawing. No code in the console parses text as markup.

import { prettyJSON } from "./json-print.js"

/** Default maximum of characters in a line of text from the network. */
const maximumLine = 200

/** Matches narrow screens, which show the list or the detail; the same as in console.css. */
const narrow = globalThis.matchMedia?.("(max-width: 719px)")

/** Returns whether the screen is narrow. */
export const isNarrow = () => narrow?.matches === true

const attributes = new Set(["role", "for", "list", "href", "type", "colspan", "scope"])

/** Returns the children to append: arrays are flattened; undefined, null and false are left out. */
const present = (children) => children.flat(Infinity).filter((child) => child !== undefined && child !== null && child !== false)

function fill(element, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === undefined || value === null || value === false) continue
    if (attributes.has(name) || name.includes("-") || !(name in element)) element.setAttribute(name, value === true ? "" : value)
    else element[name] = value
  }
  element.append(...present(children))
  return element
}

/**
 * Creates an HTML element: `h("button", { className: "button", onclick: send, "aria-label": "Send" }, "Send")`.
 * Strings become text nodes; children that are null, undefined or false are left out.
 */
export function h(tag, props, ...children) {
  return fill(document.createElement(tag), props, children)
}

/** Creates an SVG element. All properties are set as attributes. */
export function s(tag, props, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag)
  for (const [name, value] of Object.entries(props ?? {})) if (value !== undefined && value !== null) element.setAttribute(name, value)
  element.append(...present(children))
  return element
}

/** Returns the tag with the name of an event. @param {boolean} isFailure whether the event reports an error */
export const eventTag = (event, isFailure = false) => h("span", { className: "tag", "data-pattern": event, "data-kind": isFailure && "bad" }, event)

/** Replaces an element's children. */
export function replace(parent, ...children) {
  parent.replaceChildren(...present(children))
}

/** Sets an element's text. An equal text is not set again, because that would cost a layout. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text
}

/** Shows or hides an element. */
export function setHidden(element, isHidden) {
  if (element.hidden !== isHidden) element.hidden = isHidden
}

/** Returns a text in one line of bounded length. Any other value is printed as JSON, undefined as an empty text. */
export function line(value, length = maximumLine) {
  if (value === undefined) return ""
  const text = typeof value === "string" ? value : prettyJSON(value, { maximum: length })
  const short = text.length > length ? text.slice(0, length) + "…" : text
  return short.replace(/\s+/g, " ")
}

/** Returns a text in one line of bounded length as `line` does, but keeps its end: types and topics differ there. */
export function lineEnd(value, length = maximumLine) {
  if (typeof value !== "string" || value.length <= length) return line(value, length)
  return `…${value.slice(-length)}`.replace(/\s+/g, " ")
}

/** Returns a type, an operation or a topic in two parts, of which a narrow cell shows the second one: ["com.example.", "Door"]. */
export function ends(text) {
  const start = Math.max(text.lastIndexOf("."), text.lastIndexOf("/")) + 1
  return start === text.length ? ["", text] : [text.slice(0, start), text.slice(start)]
}

/** Returns a short form of an id; any other value is printed as JSON, undefined as "–". */
export function shortId(id) {
  const text = line(id, 40)
  return text === "" ? "–" : text.length > 13 ? text.slice(0, 8) + "…" : text
}

/** Returns a count with thousands separators. */
export function count(number) {
  return number.toLocaleString("en-US")
}

/** Returns a count with its noun: "1 event", "2 events". */
export function plural(number, noun, nouns = noun + "s") {
  return `${count(number)} ${number === 1 ? noun : nouns}`
}

/** Returns the local time of day with milliseconds: 14:03:22.123. */
export function clock(ms) {
  const date = new Date(ms)
  const two = (number) => String(number).padStart(2, "0")
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}.${String(date.getMilliseconds()).padStart(3, "0")}`
}

/** Returns the local time of day, with the date unless it is today. */
export function dateTime(ms) {
  const day = new Date(ms)
  return day.toDateString() === new Date().toDateString() ? clock(ms) : `${day.toLocaleDateString("en-CA")} ${clock(ms)}`
}

/** Returns the age of a time: "now", "12 s ago", "3 min ago". */
export function ago(ms, now = Date.now()) {
  const seconds = Math.floor(Math.max(0, now - ms) / 1000)
  return seconds < 1 ? "now" : `${duration(seconds)} ago`
}

/** Returns a duration in its largest unit: "12 s", "3 min", "5 h", "2 d". */
export function duration(seconds) {
  for (const [length, unit] of [[86_400, "d"], [3600, "h"], [60, "min"]]) {
    if (seconds >= length) return `${Math.floor(seconds / length)} ${unit}`
  }
  return `${Math.floor(seconds)} s`
}

/** Returns a button that copies a text. */
export function copyButton(getText, label = "Copy") {
  const button = h("button", { className: "button quiet", type: "button" }, label)
  let timer
  button.addEventListener("click", async () => {
    const isCopied = await copy(getText())
    button.textContent = isCopied ? "Copied" : "Not copied"
    clearTimeout(timer)
    timer = setTimeout(() => { button.textContent = label }, 1500)
  })
  return button
}

/** Copies a text, and returns whether it did. The clipboard API exists only in secure contexts; others copy a selection. */
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    const area = h("textarea", { className: "visually-hidden", value: text, readOnly: true, "aria-hidden": "true" })
    document.body.append(area)
    const focused = document.activeElement
    area.select()
    const isCopied = document.execCommand("copy")
    area.remove()
    focused?.focus()
    return isCopied
  }
}

/** The opened element that covers the page on narrow screens. */
let covering
narrow?.addEventListener("change", () => { if (covering) setCovering(covering, true) })

/** Makes everything that an opened element covers on narrow screens inert, or undoes this. */
export function setCovering(element, isCovering) {
  covering = isCovering ? element : undefined
  for (let inner = element; inner !== document.body; inner = inner.parentElement) {
    for (const other of inner.parentElement.children) {
      // Screen readers still announce status messages.
      if (other !== inner && other.getAttribute("role") !== "status") other.inert = isCovering && narrow.matches
    }
  }
}

/**
 * Returns a scheduler that draws on request, with a maximum rate and only while the page is visible. Receiving never waits for
 * drawing.
 *
 * @param {() => void} draw
 * @param {number} perSecond
 */
export function frames(draw, perSecond) {
  const interval = 1000 / perSecond
  let last = -Infinity
  let timer
  let frame
  const run = (now) => {
    frame = undefined
    last = now
    draw()
  }
  return {
    request() {
      if (timer !== undefined || frame !== undefined) return
      timer = setTimeout(() => {
        timer = undefined
        frame = requestAnimationFrame(run)
      }, Math.max(0, last + interval - performance.now()))
    },
    stop() {
      clearTimeout(timer)
      if (frame !== undefined) cancelAnimationFrame(frame)
      timer = frame = undefined
    },
  }
}
