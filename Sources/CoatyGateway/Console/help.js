// The dialog behind `?`: the keys and the color scheme.

import { h, replace } from "./dom.js"
import { chooseScheme, scheme, schemes } from "./scheme.js"
import { areShortcutsOn, setShortcuts, shortcutElements } from "./shortcuts.js"

/** Keys that are not shortcuts of an element. */
const generalKeys = [
  ["Tab", "Go to the next control; with Shift, to the one before"],
  ["↑ ↓", "Go to the row above or below"],
  ["Home End", "Go to the first or the last row"],
  ["Enter", "Open the row, or press the button"],
  ["Ctrl+Enter ⌘+Enter", "Send the event while you edit its body"],
  ["Esc", "Close what is open"],
]

/** Adds the dialog to the page. @param button the button that opens it */
export function addHelp(button) {
  const keys = h("dl", { className: "keys" })
  const choices = Object.entries(schemes).map(([name, text]) =>
    h("button", { type: "button", "data-scheme": name, onclick: () => choose(name) }, text))
  const toggle = h("input", { type: "checkbox", onchange: () => { setShortcuts(toggle.checked); showKeys() } })
  const dialog = h("dialog", { className: "help", "aria-label": "Keys and appearance" },
    h("div", { className: "detail-header" }, h("h2", {}, "Keys and appearance"),
      h("button", { className: "button quiet", type: "button", onclick: () => dialog.close() }, "Close")),
    h("section", { className: "form" }, h("h3", {}, "Appearance"),
      h("div", { className: "segments", role: "group", "aria-label": "Appearance" }, choices)),
    h("section", { className: "form" }, h("h3", {}, "Keys"), keys,
      h("label", {}, toggle, " Single-key shortcuts")))
  document.body.append(dialog)

  function choose(name) {
    chooseScheme(name)
    showScheme()
  }
  function showScheme() {
    for (const choice of choices) choice.setAttribute("aria-pressed", choice.dataset.scheme === scheme())
  }
  /** Lists the keys that the current view supports. */
  function showKeys() {
    const elements = areShortcutsOn() ? shortcutElements() : []
    const shortcuts = elements.map((element) => [element.getAttribute("aria-keyshortcuts"), nameOf(element)])
    replace(keys, [...shortcuts, ...generalKeys].map(([key, text]) => [
      h("dt", {}, key.split(" ").map((part) => h("kbd", {}, part))), h("dd", {}, text)]))
  }
  button.addEventListener("click", () => {
    showScheme()
    toggle.checked = areShortcutsOn()
    showKeys()
    dialog.showModal()
  })
  // A click on the backdrop.
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close() })
}

const nameOf = (element) => element.getAttribute("aria-label") ?? element.textContent.trim().replace(/^./, (first) => first.toUpperCase())
