// The color scheme that the user has chosen. It is applied before the page is drawn, if the browser supports `blocking="render"`.

const key = "coaty-scheme"

/** The choices with their names. `system` follows the operating system. */
export const schemes = { system: "System", light: "Light", dark: "Dark" }

/** Used if the browser does not allow storage. */
let unstored = "system"

/** Returns the chosen scheme. */
export function scheme() {
  let name = unstored
  try {
    name = localStorage.getItem(key) ?? "system"
  } catch { }
  return name in schemes ? name : "system"
}

/** Applies a scheme, and keeps the choice for all tabs. */
export function chooseScheme(name) {
  unstored = name
  try {
    if (name === "system") localStorage.removeItem(key)
    else localStorage.setItem(key, name)
  } catch { }
  apply()
}

function apply() {
  const name = scheme()
  if (name === "system") delete document.documentElement.dataset.scheme
  else document.documentElement.dataset.scheme = name
}

apply()
window.addEventListener("storage", (event) => { if (event.key === key || event.key === null) apply() })
