// Validation errors of inputs.

import { setHidden, setText } from "./dom.js"

/** Shows the error of an input; without a text, marks the input as valid. */
export function showFault(input, element, text) {
  setHidden(element, text === undefined)
  setText(element, text ?? "")
  if (text === undefined) input.removeAttribute("aria-invalid")
  else input.setAttribute("aria-invalid", "true")
}
