// The view Access: the user's identity and grants, and a form that checks permissions.

import { AccessCheck } from "./access-check.js"
import { h, line, setHidden } from "./dom.js"
import { maximumShown, prettyJSON } from "./json-print.js"
import { accessPath } from "./rest.js"
import { tokenForm, tryToken } from "./sign-in.js"
import { token } from "./token.js"

export const openAccessText = "Everybody who reaches this gateway may do everything."

/** Returns whether a host name is a loopback address. */
export const isLoopback = (host) => /^(localhost|.*\.localhost|127(\.\d+){3}|\[::1\])$/.test(host)

export const view = {
  id: "access",
  title: "Access",
  mount(root, app) {
    const { access } = app
    // The view scrolls: without a focusable element in it, keys could not scroll it.
    root.tabIndex = 0
    const check = new AccessCheck(app, (parameters, isStep) => app.address.write(view.id, parameters, isStep))
    const changed = h("div", { className: "notice", "data-kind": "warn", role: "status", hidden: true },
      "Your access has changed. ", h("button", { className: "button", type: "button", onclick: () => location.reload() }, "Reload the page"))
    root.append(h("div", { className: "view-body access" }, changed,
      h("div", { className: "access-who" }, identityCard(app), !access.isOpen && token() === undefined && signInCard()),
      !access.isOpen && grantsCard(access),
      check.element))
    return { show: async () => setHidden(changed, !(await hasChanged(app))), go: (parameters) => check.go(parameters) }
  },
}

/** Returns whether the user's access has changed since the page was loaded. */
async function hasChanged({ access, rest }) {
  try {
    return access.differs((await rest(accessPath)).json)
  } catch {
    return false
  }
}

function identityCard({ access, signOut }) {
  const { name, roles, attributes, isOpen } = access
  const card = (...parts) => h("section", { className: "card", "aria-label": "Who am I" }, h("h2", {}, "Who am I"), parts)
  if (isOpen) return card(openAccess())
  const hasAttributes = Object.keys(attributes).length > 0
  return card(
    h("dl", { className: "facts" },
      h("dt", {}, "Name"), h("dd", {}, name ?? h("span", { className: "muted" }, "Anonymous: no token")),
      h("dt", {}, "Roles"), h("dd", {}, roles.length > 0 ? h("span", { className: "chips" }, roles.map((role) => h("span", { className: "tag" }, role))) : "None"),
      hasAttributes && [h("dt", {}, "Attributes"), h("dd", {}, h("code", {}, line(attributes)))]),
    token() !== undefined && h("div", { className: "toolbar" },
      h("button", { className: "button", type: "button", onclick: signOut }, "Sign out")))
}

function openAccess() {
  const isLocal = isLoopback(location.hostname)
  return [
    h("p", { className: "notice", "data-kind": isLocal ? undefined : "warn" }, h("strong", {}, "Open access. "), openAccessText),
    h("p", { className: "muted" }, isLocal ? "By default only programs on the same machine reach it. " : "",
      "To require a token, start the gateway with the environment variable ", h("code", {}, "COATY_GATEWAY_TOKEN"),
      ", or list tokens and roles in its configuration file, under ", h("code", {}, "access"), "."),
  ]
}

function signInCard() {
  const { form } = tokenForm(async (text) => {
    const fault = await tryToken(text)
    // The reload applies the grants of the token to all views.
    if (fault === undefined) location.reload()
    return fault
  })
  return h("section", { className: "card", "aria-label": "Sign in" }, h("h2", {}, "Sign in"), form)
}

function grantsCard({ isUnrestricted, grants }) {
  const card = (...parts) => h("section", { className: "card", "aria-label": "What I may do" }, h("h2", {}, "What I may do"), parts)
  if (isUnrestricted) return card(h("p", {}, "Everything: the role admin has no limits."))
  if (grants.length === 0) return card(h("p", {}, "Nothing: your roles have no grants."))
  const heads = ["Grant", "Verb", "Patterns", "Names", "Condition"].map((text) => h("th", { scope: "col" }, text))
  return card(
    h("div", { className: "table-scroll", tabIndex: 0, role: "group", "aria-label": "Grants" },
      h("table", { className: "table grants" }, h("thead", {}, h("tr", {}, heads)), h("tbody", {}, grants.map(grantRow)))))
}

function grantRow({ name, verb, patterns, names, where, others, retain }) {
  const flags = [others && "also of others", retain && "retained"].filter(Boolean).join(", ")
  return h("tr", {},
    h("td", { className: "mono" }, name),
    h("td", {}, verb),
    h("td", {}, h("span", { className: "chips" }, patterns.map((pattern) => h("span", { className: "tag", "data-pattern": pattern }, pattern)))),
    h("td", { className: "mono" }, names.map((entry) => h("div", {}, line(entry))), flags && h("div", { className: "muted" }, flags)),
    h("td", { className: "mono" }, where === undefined ? "" : prettyJSON(where, { maximum: maximumShown })))
}
