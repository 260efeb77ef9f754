// Single keys for buttons, links and fields. An element names its key with `aria-keyshortcuts`.

const key = "coaty-shortcuts"

/** Used if the browser does not allow storage. */
let unstored = true

/** Returns whether single-key shortcuts are on. Speech input can trigger them by accident, so users can turn them off. */
export function areShortcutsOn() {
  try {
    return localStorage.getItem(key) !== "off"
  } catch {
    return unstored
  }
}

/** Turns the shortcuts on or off, and keeps the choice. */
export function setShortcuts(isOn) {
  unstored = isOn
  try {
    if (isOn) localStorage.removeItem(key)
    else localStorage.setItem(key, "off")
  } catch { }
}

const isSeen = (element) => element.checkVisibility({ visibilityProperty: true }) && !element.closest("[inert]")

/** Returns the elements with a shortcut that can be used now, in the order of the page. */
export const shortcutElements = () => [...document.querySelectorAll("[aria-keyshortcuts]")].filter(isSeen)

const isField = (element) => element.matches("input:not([type=checkbox], [type=radio]), select, textarea, [contenteditable]")

/** Handles the keys of the page: a link or a button is clicked, a field gets the focus. */
export function listenForShortcuts() {
  document.addEventListener("keydown", (event) => {
    if (event.repeat || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return
    if (isField(event.target) || document.querySelector("dialog[open]") || !areShortcutsOn()) return
    const element = shortcutElements().find((element) => element.getAttribute("aria-keyshortcuts") === event.key)
    if (element === undefined || element.disabled) return
    event.preventDefault()
    if (isField(element)) element.focus()
    else element.click()
  })
}
