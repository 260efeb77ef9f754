// The elements of the live feed.

import { h, replace, setHidden } from "./dom.js"
import { dimensions, kinds } from "./feed-filter.js"
import { FilterBuilder } from "./filter-builder.js"
import { ListPane } from "./list-pane.js"
import { namespaceHint } from "./namespaces.js"

/** The columns of a row. */
const heads = ["Time", "Event", "Channel, operation", "About", "Type", "Sender"]
const cells = [
  "num muted", "tag",
  { className: "ends", parts: [{ className: "pick", pick: "name" }, { className: "pick", pick: "name" }] },
  // The first part is the name, shown only if its own column is hidden; the last one what has changed.
  { className: "clip", parts: [{ className: "lead" }, {}, { className: "muted" }] },
  { className: "ends muted", parts: [{ className: "pick", pick: "type" }, { className: "pick", pick: "type" }] },
  { className: "clip", parts: [{ className: "pick", pick: "sender" }] },
]

/**
 * Builds the page.
 *
 * @param {HTMLElement} root
 * @param {any} app
 * @param {Record<"choose" | "apply" | "build" | "edit" | "offer" | "find" | "togglePause" | "clear" | "save" | "hold" | "release", any>} on
 *   also with the callbacks of a `ListPane`
 */
export function feedPage(root, app, on) {
  const { access } = app
  const mayTraffic = access.may("observe", "traffic")
  const message = (id) => h("p", { className: "error", id, role: "alert" })
  const field = (label, input, error) => h("div", { className: "field" }, h("label", { for: input.id }, label), input, error)

  const chips = kinds.map((event) => h("input", { type: "checkbox", value: event, onchange: () => choose() }))
  const all = h("input", { type: "checkbox", checked: true, onchange: () => { for (const chip of chips) chip.checked = false; choose() } })
  function choose() {
    showAll()
    on.choose()
  }
  function showAll() {
    all.checked = chips.every((chip) => !chip.checked)
  }

  const labels = chips.map((input) => chip(input, input.value))
  const rawChip = labels[kinds.indexOf("raw")]

  const find = h("input", { id: "feed-find", type: "search", "aria-label": "Find", "aria-keyshortcuts": "/", placeholder: "Find by name, type, sender, value …", oninput: () => on.find() })
  const chosen = h("ul", { className: "chips chosen", "aria-label": "Chosen", hidden: true })

  const builder = new FilterBuilder(on.build)
  const filterError = message("feed-filter-error")
  const filter = h("textarea", { id: "feed-filter", rows: 2, placeholder: '["name", ["Like", "%door%"]]', spellcheck: false, autocomplete: "off", autocapitalize: "off", "aria-describedby": "feed-filter-error", onchange: () => on.edit() })
  const topicError = message("feed-topic-error")
  const topic = h("input", { id: "feed-topic", className: "mono", placeholder: "sensors/#", spellcheck: false, autocomplete: "off", "aria-describedby": "feed-topic-error" })
  const form = h("form", { className: "form", onsubmit: (event) => { event.preventDefault(); on.apply() } },
    h("div", { className: "filter-parts" },
      mayTraffic && builder.element,
      h("div", { className: "form" },
        mayTraffic && field("Filter", filter, filterError),
        access.may("observe", "raw") && field("Raw topics", topic, topicError))),
    h("div", { className: "toolbar" },
      h("button", { className: "button", type: "submit" }, "Apply"),
      mayTraffic && h("p", { className: "hint" }, "The gateway delivers only the events that match. A response whose object does not match is left out.")))
  const filters = h("details", { className: "filters", open: !mayTraffic, ontoggle: () => { if (filters.open) on.offer() } }, h("summary", {}, "Filters"), form)

  const pauseButton = h("button", { className: "button", type: "button", "aria-keyshortcuts": "p", onclick: on.togglePause }, "Pause")
  root.querySelector(".view-header").append(h("div", { className: "toolbar" }, pauseButton,
    h("button", { className: "button", type: "button", "aria-keyshortcuts": "c", onclick: on.clear }, "Clear"),
    h("button", { className: "button", type: "button", "aria-keyshortcuts": "e", title: "Save the events that are shown, one JSON object a line", onclick: on.save }, "Export")))

  const list = new ListPane({ name: "Events", detailName: "Event", hint: example(), heads, cells }, on)
  list.element.classList.add("feed-split")
  const { rows } = list
  rows.classList.add("events")
  for (const event of ["pointermove", "pointerdown", "focusin"]) rows.addEventListener(event, on.hold)
  rows.addEventListener("pointerleave", on.release)
  rows.addEventListener("focusout", (event) => { if (!rows.contains(event.relatedTarget)) on.release() })
  root.append(h("div", { className: "view-body feed" },
    namespaceHint(app),
    h("div", { className: "feed-find" }, find, filters),
    mayTraffic && h("fieldset", { className: "chips kinds" }, h("legend", { className: "visually-hidden" }, "Events"),
      chip(all, "all"), labels),
    chosen, list.element))
  return { chips, rawChip, showAll, chosen, builder, filter, filterError, topic, topicError, find, filters, pauseButton, list }
}

const chip = (input, text) => h("label", { className: "chip" }, input, text)

/**
 * Shows the chosen values, each as a button that removes it.
 *
 * @param {HTMLElement} element
 * @param {[dimension: string, text: string, full: string][]} entries with the full text, which the button has as its tooltip
 * @param {(dimension: string) => void} remove
 */
export function showChosen(element, entries, remove) {
  // Unchanged buttons are not replaced, so that they keep the focus.
  const shown = JSON.stringify(entries)
  if (shown === element.dataset.shown) return
  element.dataset.shown = shown
  setHidden(element, entries.length === 0)
  replace(element, entries.map(([dimension, text, full]) => {
    const { title, noun } = dimensions[dimension]
    return h("li", {}, h("button", { className: "chip chosen-chip", type: "button", title: full === text ? undefined : full, "aria-label": `Remove the choice of the ${noun} ${text}`, onclick: () => remove(dimension) },
      `${title}: ${text} ×`))
  }))
}

function example() {
  return `curl ${new URL("v1/advertise", document.baseURI)} \\
  -H 'content-type: application/json' \\
  -d '{ "object": { "coreType": "CoatyObject", "objectType": "com.example.Door",
        "objectId": "5a9c1f6e-3b52-4d0a-8f6e-2f6f0a3c7d11", "name": "Front door" } }'`
}
