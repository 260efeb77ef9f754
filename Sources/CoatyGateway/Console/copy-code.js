// Buttons that copy a curl command and client.js code.

import { copyButton } from "./dom.js"

/**
 * Returns both buttons.
 *
 * @param {() => import("./code-of.js").Code} getCode called when one of them is pressed
 * @param {string} [what] what the code is for, with a space after it, if the page has other such buttons
 */
export const copyCodeButtons = (getCode, what = "") => [
  copyButton(() => getCode().curl(), `Copy ${what}as curl`),
  copyButton(() => getCode().client(), `Copy ${what}as client.js`),
]
