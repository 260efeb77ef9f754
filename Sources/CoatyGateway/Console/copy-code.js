// Buttons that copy a curl command and client.js code.

import { copyButton } from "./dom.js"

/** Returns both buttons. @param {() => import("./code-of.js").Code} getCode called when one of them is pressed */
export const copyCodeButtons = (getCode) => [
  copyButton(() => getCode().curl(), "Copy as curl"),
  copyButton(() => getCode().client(), "Copy as client.js"),
]
