// The shell: the one connection, the navigation, and what all views share.

import { CoatyClient, GatewayError } from "../client.js"
import { Names } from "./names.js"
import { Status } from "./status.js"
import { h, setText } from "./dom.js"
import { view as feed } from "./feed.js"
import { view as alive } from "./alive.js"
import { view as send } from "./send.js"
import { view as routing } from "./routing.js"
import { view as gateway } from "./gateway.js"

const views = [feed, alive, send, routing, gateway]
const toastTime = 4000
const maximumToasts = 3

const main = document.getElementById("main")
const client = new CoatyClient()

/** What views share. */
const app = {
  client,
  /** Names of agents, IO sources and IO actors by their ids. */
  names: new Names(client),
  /** The latest `GET v1/status`. */
  status: new Status(client, rest),
  rest,
  announce,
  toast,
}

/**
 * Asks the gateway: `await app.rest("v1/objects")`.
 *
 * @returns the status, the body where it is JSON, and the header fields.
 * @throws GatewayError the gateway's problem, or that it does not answer.
 */
async function rest(path, { method = "GET", body, headers = {} } = {}) {
  const json = body === undefined ? {} : { "content-type": "application/json" }
  const text = body === undefined || typeof body === "string" ? body : JSON.stringify(body)
  let response
  try {
    response = await fetch(new URL(path, document.baseURI), { method, body: text, headers: { ...json, ...headers } })
  } catch {
    throw new GatewayError({ title: "The gateway is away", status: 0, detail: "It does not answer." })
  }
  const isJSON = /\bjson\b/.test(response.headers.get("content-type") ?? "")
  const answer = isJSON ? await response.json() : undefined
  if (!response.ok) throw new GatewayError(answer ?? { title: response.statusText, status: response.status })
  return { status: response.status, json: answer, headers: response.headers }
}

/** Announces a text to screen readers. */
function announce(text) {
  document.getElementById("announcer").textContent = text
}

/** Shows what happened for a while. */
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
  const view = views.find((view) => `#${view.id}` === location.hash) ?? (current ? undefined : views[0])
  if (!view || view === current) return
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
  // Who navigates goes on in the view; who loads the page begins at its top.
  if (!isFirst) main.focus({ preventScroll: true })
}

// MARK: The connection

const connection = document.getElementById("connection")

function showConnection() {
  const isBrokerAway = app.status.latest && app.status.latest.broker.state !== "online"
  const [state, text] =
    client.state !== "online" ? [client.state, client.state === "closed" ? "Closed" : "Connecting…"]
    : isBrokerAway ? ["broker-away", "Broker offline"]
    : ["online", "Online"]
  connection.dataset.state = state
  setText(connection, text)
}

client.addEventListener("statechange", showConnection)
app.status.addEventListener("change", showConnection)
showConnection()

window.addEventListener("hashchange", navigate)
navigate()
