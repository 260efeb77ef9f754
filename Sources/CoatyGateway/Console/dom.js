// Elements, text and drawing. Nothing here, nor anywhere in the console, makes markup of text.

import { prettyJSON } from "./json-print.js"

/** The most characters of what comes from the network that stand in a line. */
const maximumLine = 200

/** What is narrower shows one thing at a time, as console.css has it. */
const narrow = globalThis.matchMedia?.("(max-width: 719px)")

/** Returns whether the screen is narrow. */
export const isNarrow = () => narrow?.matches === true

const attributes = new Set(["role", "for", "list", "href", "type", "colspan", "scope"])

/** The children that there are, of lists too. */
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
 * An HTML element: `h("button", { className: "button", onclick: send, "aria-label": "Send" }, "Send")`.
 * Strings become text nodes; children that are null, undefined or false are left out.
 */
export function h(tag, props, ...children) {
  return fill(document.createElement(tag), props, children)
}

/** An SVG element; all its properties are attributes. */
export function s(tag, props, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag)
  for (const [name, value] of Object.entries(props ?? {})) if (value !== undefined && value !== null) element.setAttribute(name, value)
  element.append(...present(children))
  return element
}

/** Sets an element's children. */
export function replace(parent, ...children) {
  parent.replaceChildren(...present(children))
}

/** Sets an element's text, where it is another than before: an equal one would cost a layout. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text
}

/** Shows or hides an element. */
export function setHidden(element, isHidden) {
  if (element.hidden !== isHidden) element.hidden = isHidden
}

/** A text, or whatever stands in its place, in one line of bounded length. */
export function line(value, length = maximumLine) {
  if (value === undefined) return ""
  const text = typeof value === "string" ? value : prettyJSON(value, { maximum: length })
  const short = text.length > length ? text.slice(0, length) + "…" : text
  return short.replace(/\s+/g, " ")
}

/** An id, or whatever stands in its place, as it is shown where there is little room. */
export function shortId(id) {
  const text = line(id, 40)
  return text === "" ? "–" : text.length > 13 ? text.slice(0, 8) + "…" : text
}

/** A count, with separators between thousands. */
export function count(number) {
  return number.toLocaleString("en-US")
}

/** "1 event", "2 events". */
export function plural(number, noun, nouns = noun + "s") {
  return `${count(number)} ${number === 1 ? noun : nouns}`
}

/** The time of day with milliseconds: 14:03:22.123. */
export function clock(ms) {
  const date = new Date(ms)
  const two = (number) => String(number).padStart(2, "0")
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}.${String(date.getMilliseconds()).padStart(3, "0")}`
}

/** The time of day, and the day where that is not today. */
export function dateTime(ms) {
  const day = new Date(ms)
  return day.toDateString() === new Date().toDateString() ? clock(ms) : `${day.toLocaleDateString("en-CA")} ${clock(ms)}`
}

/** How long ago: "now", "12 s ago", "3 min ago". */
export function ago(ms, now = Date.now()) {
  const seconds = Math.floor(Math.max(0, now - ms) / 1000)
  return seconds < 1 ? "now" : `${duration(seconds)} ago`
}

/** A duration in its largest unit: "12 s", "3 min", "5 h", "2 d". */
export function duration(seconds) {
  for (const [length, unit] of [[86_400, "d"], [3600, "h"], [60, "min"]]) {
    if (seconds >= length) return `${Math.floor(seconds / length)} ${unit}`
  }
  return `${Math.floor(seconds)} s`
}

/** A button that copies a text. */
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

/** The clipboard API is there for secure origins alone; others have a selection to copy. */
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

/** What is opened, and covers the rest where the screen is narrow. */
let covering
narrow?.addEventListener("change", () => { if (covering) setCovering(covering, true) })

/** Takes what an opened element covers on a narrow screen out of reach, or gives it back. */
export function setCovering(element, isCovering) {
  covering = isCovering ? element : undefined
  for (let inner = element; inner !== document.body; inner = inner.parentElement) {
    for (const other of inner.parentElement.children) {
      // What is told to those who listen goes on.
      if (other !== inner && other.getAttribute("role") !== "status") other.inert = isCovering && narrow.matches
    }
  }
}

/**
 * Draws when asked to, at most so often, and not while the page is hidden: receiving never waits for drawing.
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
