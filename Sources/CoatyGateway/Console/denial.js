// What a role would need, where the gateway denies something.

import { copyButton, h } from "./dom.js"

/** Returns a grant's YAML with a button to copy it; undefined if there is none. */
export function missingGrant(yaml, intro = "This grant of a role would allow it:") {
  if (!yaml) return undefined
  return h("div", { className: "missing" },
    h("div", { className: "card-header" }, h("p", {}, intro), copyButton(() => yaml, "Copy grant")),
    h("pre", { className: "json", tabIndex: 0, "aria-label": "Missing grant" }, yaml.trimEnd()))
}

/** Returns the text of an error, and the grant that is missing. */
export function problemContent(error) {
  return [h("p", {}, error.detail ?? error.message), missingGrant(error.missing)]
}
