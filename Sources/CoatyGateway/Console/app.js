// The shell: sign-in, the connection, the navigation, and the services of all views.

import { CoatyClient } from "../client.js"
import { Address } from "./address.js"
import { Away } from "./away.js"
import { KnownOperations } from "./known-operations.js"
import { showNamespace } from "./namespaces.js"
import { Names } from "./names.js"
import { Status } from "./status.js"
import { h, setHidden, setText } from "./dom.js"
import { showFullTexts } from "./full-texts.js"
import { addHelp } from "./help.js"
import { accessPath, onUnauthorized, rest } from "./rest.js"
import { listenForShortcuts } from "./shortcuts.js"
import { signIn } from "./sign-in.js"
import { forgetToken, takeTokenFromAddress, token } from "./token.js"
import { view as feed } from "./feed.js"
import { view as alive } from "./alive.js"
import { view as send } from "./send.js"
import { view as routing } from "./routing.js"
import { view as gateway } from "./gateway.js"
import { isLoopback, openAccessText, view as accessView } from "./access-page.js"

takeTokenFromAddress()
// A link that is opened in this tab signs in again.
window.addEventListener("hashchange", () => { if (takeTokenFromAddress()) location.reload() })

const allViews = [feed, alive, send, routing, gateway, accessView]
const toastTime = 4000
const maximumToasts = 3

const main = document.getElementById("main")
const navigation = document.querySelector(".side nav")
const connection = document.getElementById("connection")

addHelp(document.getElementById("help"))
listenForShortcuts()
showFullTexts()

// MARK: Signing in

const access = await signIn(main, () => {
  setHidden(navigation, true)
  connection.dataset.state = "signed-out"
  setText(connection, "Signed out")
})
const views = allViews.filter(({ isPermitted }) => isPermitted?.(access) ?? true)
for (const { id } of allViews.filter((view) => !views.includes(view))) navigation.querySelector(`a[href="#${id}"]`).remove()
setHidden(navigation, false)
showUser()

const client = new CoatyClient(undefined, { token, exactIntegers: true })
// A browser may keep a page that the user has left, to show it again. Its connection would stay open with all its
// subscriptions, which count for the client.
window.addEventListener("pagehide", ({ persisted }) => { if (persisted) client.close() })
window.addEventListener("pageshow", ({ persisted }) => { if (persisted) location.reload() })

// Not before the form of the sign-in, which replaces everything in the element.
const banner = h("p", { id: "banner", className: "banner", role: "status", hidden: true })
main.prepend(banner)

const address = new Address()
const status = new Status(client, rest, access.may("read", "status"))

/** The services of all views. */
const app = {
  client,
  access,
  /** The address, to which views write their parameters. `go` of a view shows the parameters of an address. */
  address,
  /** Names of agents, IO sources and IO actors by their ids. */
  names: new Names(client, access.may("observe", "advertise")),
  /** Known operations: views note the operations that they see. */
  operations: new KnownOperations(),
  /** The latest `GET v1/status`. */
  status,
  /** Until when values are known while the gateway or its broker is away. */
  away: new Away(client, status, main, banner),
  rest,
  signOut,
  announce,
  toast,
}

/** Shows the principal, or that access is open. */
function showUser() {
  const user = document.getElementById("user")
  setText(user, access.isOpen ? "Open access" : access.name ?? "Anonymous")
  user.title = access.isOpen ? openAccessText : "What you may do"
  if (access.isOpen && !isLoopback(location.hostname)) user.dataset.kind = "warn"
  setHidden(user, false)
}

/** Forgets the token, and reloads the page, so that nothing stays that was shown with it. */
function signOut() {
  forgetToken()
  location.reload()
}

let isChecking = false

/** Asks for another token if the gateway no longer accepts this one. */
async function checkAccess() {
  if (isChecking) return
  isChecking = true
  try {
    await rest(accessPath)
  } catch (error) {
    // The reload removes everything that was read with the former token.
    if (error.status === 401) location.reload()
  } finally {
    isChecking = false
  }
}

onUnauthorized(checkAccess)

/** Announces a text to screen readers. */
function announce(text) {
  document.getElementById("announcer").textContent = text
}

/** Shows a message for a few seconds. */
function toast(text) {
  const toasts = document.getElementById("toasts")
  const toast = h("p", {}, text)
  toasts.append(toast)
  while (toasts.children.length > maximumToasts) toasts.firstChild.remove()
  setTimeout(() => toast.remove(), toastTime)
}

// MARK: Navigation

const mounted = new Map()
let current

function mount(view) {
  const header = h("header", { className: "view-header" }, h("h1", {}, view.title))
  const root = h("section", { className: `view view-${view.id}`, "aria-label": view.title }, header)
  main.append(root)
  const handle = view.mount(root, app) ?? {}
  mounted.set(view.id, { root, handle })
  return mounted.get(view.id)
}

function navigate() {
  const named = address.take((id) => views.some((view) => view.id === id))
  if (named === undefined && current) return
  const view = views.find(({ id }) => id === named?.id) ?? views[0]
  if (view === undefined) return
  if (named === undefined) address.begin(view.id)
  if (view !== current) show(view)
  if (named?.parameters) mounted.get(view.id).handle.go?.(named.parameters)
}

function show(view) {
  if (current) {
    const { root, handle } = mounted.get(current.id)
    root.hidden = true
    handle.hide?.()
  }
  const isFirst = !current
  const { root, handle } = mounted.get(view.id) ?? mount(view)
  current = view
  root.hidden = false
  handle.show?.()
  document.title = `${view.title} – Coaty gateway`
  for (const link of document.querySelectorAll(".side nav a")) {
    if (link.getAttribute("href") === `#${view.id}`) link.setAttribute("aria-current", "page")
    else link.removeAttribute("aria-current")
  }
  // After navigation the focus moves into the view; after loading it stays at the top of the page.
  if (!isFirst) main.focus({ preventScroll: true })
}

// MARK: The connection

/** ": connection refused", from `broker.error` of the status; empty if no attempt to connect has failed. */
const brokerFault = ({ error }) => error ? `: ${error.reason.replaceAll("-", " ").replace("tls", "TLS")}` : ""

function showConnection() {
  const broker = app.status.latest?.broker
  const [state, text, title] =
    client.state !== "online" ? [client.state, client.state === "closed" ? "Closed" : "Connecting…"]
    : broker && broker.state !== "online" ? ["broker-away", `Broker offline${brokerFault(broker)}`, broker.error?.message]
    : ["online", "Online"]
  connection.dataset.state = state
  connection.title = title ?? ""
  setText(connection, text)
}

client.addEventListener("statechange", () => { if (client.state === "closed") checkAccess() })

client.addEventListener("statechange", showConnection)
app.status.addEventListener("change", showConnection)
showConnection()

showNamespace(document.getElementById("namespace"), app)

window.addEventListener("hashchange", navigate)
navigate()
