// What the live feed consists of.

import { h } from "./dom.js"
import { ListPane } from "./list-pane.js"
import { namespaceHint } from "./namespaces.js"
import { trafficEvents } from "./summary.js"

/** Of a row: when, what, about what, of which type, from whom. */
const cells = ["num muted", "tag", "clip", "clip muted", "clip"]

/**
 * Builds the page.
 *
 * @param {HTMLElement} root
 * @param {any} app
 * @param {Record<"choose" | "find" | "togglePause" | "clear" | "hold" | "release", () => void>} on with what a `ListPane` asks for
 */
export function feedPage(root, app, on) {
  const { access } = app
  const mayTraffic = access.may("observe", "traffic")
  const message = (id) => h("p", { className: "error", id, role: "alert" })
  const field = (label, input, error) => h("div", { className: "field" }, h("label", { for: input.id }, label), input, error)

  const chips = trafficEvents.map((event) => h("input", { type: "checkbox", value: event, onchange: () => choose() }))
  const all = h("input", { type: "checkbox", checked: true, onchange: () => { for (const chip of chips) chip.checked = false; choose() } })
  function choose() {
    all.checked = chips.every((chip) => !chip.checked)
    on.choose()
  }

  const filterError = message("feed-filter-error")
  const filter = h("input", { id: "feed-filter", className: "mono", placeholder: '["name", ["Like", "%door%"]]', spellcheck: false, autocomplete: "off", "aria-describedby": "feed-filter-error" })
  const topicError = message("feed-topic-error")
  const topic = h("input", { id: "feed-topic", className: "mono", placeholder: "sensors/#", spellcheck: false, autocomplete: "off", "aria-describedby": "feed-topic-error" })
  const find = h("input", { id: "feed-find", type: "search", placeholder: "name, type, sender …", oninput: on.find })
  const form = h("form", { className: "form-row", onsubmit: (event) => { event.preventDefault(); on.choose() } },
    field("Find in what is kept", find),
    mayTraffic && field("Filter", filter, filterError),
    access.may("observe", "raw") && field("Raw topics", topic, topicError),
    h("button", { className: "button", type: "submit" }, "Apply"))
  const filters = h("details", { className: "filters", open: !mayTraffic }, h("summary", {}, "Filters"), form)

  const pauseButton = h("button", { className: "button", type: "button", onclick: on.togglePause }, "Pause")
  root.querySelector(".view-header").append(h("div", { className: "toolbar" }, pauseButton,
    h("button", { className: "button", type: "button", onclick: on.clear }, "Clear")))

  const list = new ListPane({ name: "Events", detailName: "Event", hint: example(), cells }, on)
  const { rows } = list
  rows.classList.add("events")
  for (const event of ["pointermove", "pointerdown", "focusin"]) rows.addEventListener(event, on.hold)
  rows.addEventListener("pointerleave", on.release)
  rows.addEventListener("focusout", (event) => { if (!rows.contains(event.relatedTarget)) on.release() })
  root.append(h("div", { className: "view-body feed" },
    namespaceHint(app),
    mayTraffic && h("fieldset", { className: "chips" }, h("legend", { className: "visually-hidden" }, "Events"),
      chip(all, "all"), chips.map((input) => chip(input, input.value))),
    filters, list.element))
  return { chips, filter, filterError, topic, topicError, find, filters, pauseButton, list }
}

const chip = (input, text) => h("label", { className: "chip" }, input, text)

function example() {
  return `curl ${new URL("v1/advertise", document.baseURI)} \\
  -H 'content-type: application/json' \\
  -d '{ "object": { "coreType": "CoatyObject", "objectType": "com.example.Door",
        "objectId": "5a9c1f6e-3b52-4d0a-8f6e-2f6f0a3c7d11", "name": "Front door" } }'`
}
