// What is wrong with what was typed.

import { setHidden, setText } from "./dom.js"

/** Shows at an input what is wrong with it; without a text, that nothing is. */
export function showFault(input, element, text) {
  setHidden(element, text === undefined)
  setText(element, text ?? "")
  if (text === undefined) input.removeAttribute("aria-invalid")
  else input.setAttribute("aria-invalid", "true")
}
