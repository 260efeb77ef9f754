// Errors of the gateway, with the grant that would allow a denied operation.

import { copyButton, h } from "./dom.js"

/** Returns an element with a grant's YAML and a copy button; undefined without YAML. */
export function missingGrant(yaml, intro = "This grant of a role would allow it:") {
  if (!yaml) return undefined
  return h("div", { className: "missing" },
    h("div", { className: "card-header" }, h("p", {}, intro), copyButton(() => yaml, "Copy grant")),
    h("pre", { className: "json", tabIndex: 0, "aria-label": "Missing grant" }, yaml.trimEnd()))
}

/** Returns the text of an error, and the missing grant if there is one. */
export function problemContent(error) {
  return [h("p", {}, error.detail ?? error.message), missingGrant(error.missing)]
}
