// Events as a file.

import { stringifyExact } from "../client.js"
import { h } from "./dom.js"

/** Returns events as NDJSON: each as the gateway delivered it, with the time at which the page received it. */
export function exportLines(items) {
  return items.map(({ at, frame: { op, size, ...frame } }) => `${stringifyExact({ time: new Date(at).toISOString(), ...frame })}\n`).join("")
}

/** Downloads a text as a file. */
export function save(name, text, type) {
  const url = URL.createObjectURL(new Blob([text], { type }))
  const link = h("a", { href: url, download: name, hidden: true })
  document.body.append(link)
  link.click()
  link.remove()
  // The browser may read the content later.
  setTimeout(() => URL.revokeObjectURL(url), 60_000)
}

/** Returns a file name: coaty-events-2026-01-01T12-00-00.ndjson. */
export const fileName = (now) => `coaty-events-${new Date(now).toISOString().replace(/\..*/, "").replaceAll(":", "-")}.ndjson`
