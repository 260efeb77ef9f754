// The parts of the gateway with their states, and buttons to pause, resume and reload it.

import { h, replace, setHidden } from "./dom.js"
import { problemContent } from "./denial.js"
import { needsGrant } from "./gateway-clients.js"

/** Milliseconds between two requests for the parts. */
const interval = 5000

const stateKind = { active: "ok", paused: "warn", inactive: "bad" }

/** Returns the tree as rows with their depth, parents before their children. */
export function rows(node, depth = 0) {
  return [{ name: node.name, state: node.state, depth }, ...node.children.flatMap((child) => rows(child, depth + 1))]
}

/** Returns a sentence with the settings that a reload has changed. */
export function reloadText(changed) {
  return changed.length === 0 ? "Reloaded: no setting has changed." : `Reloaded: ${changed.join(", ")} changed.`
}

export class Parts {
  element
  #app
  #list = h("ul", { className: "gateway-parts", "aria-label": "Parts" })
  #problem = h("div", { className: "notice", "data-kind": "bad", role: "alert", hidden: true })
  #question
  #pause = this.#button("Pause", () => this.#ask(true))
  #resume = this.#button("Resume", () => this.#set(false))
  #reload = this.#button("Reload", () => this.#reloadSettings())
  #timer
  #isShown = false
  #drawn

  constructor(app) {
    this.#app = app
    const isPermitted = app.access.may("administer", "gateway")
    const confirm = this.#button("Pause the gateway", () => this.#set(true))
    this.#question = h("div", { className: "notice", "data-kind": "warn", hidden: true },
      h("p", {}, "A paused gateway refuses new work, and is not ready: load balancers send their clients elsewhere. Pending requests and open subscriptions continue."),
      h("div", { className: "toolbar" }, confirm, this.#button("Cancel", () => this.#ask(false))))
    setHidden(this.#resume, true)
    this.element = h("section", { className: "card", "aria-label": "Parts of the gateway" },
      h("div", { className: "card-header" }, h("h2", {}, "Parts"),
        isPermitted && h("div", { className: "toolbar" }, this.#reload, this.#pause, this.#resume)),
      isPermitted ? [this.#question, this.#problem, this.#list]
        : needsGrant("To see the parts of the gateway, and to pause or reload it,", "administer: [gateway]"))
    if (!isPermitted) this.#app = undefined
  }

  show() {
    this.#isShown = true
    this.#look()
  }

  hide() {
    this.#isShown = false
    clearTimeout(this.#timer)
  }

  #button(title, onclick) {
    return h("button", { className: "button", type: "button", onclick }, title)
  }

  #ask(isAsking) {
    setHidden(this.#question, !isAsking)
  }

  async #look() {
    clearTimeout(this.#timer)
    if (this.#app === undefined) return
    if (!document.hidden) {
      try {
        this.#draw((await this.#app.rest("v1/admin/tree")).json)
      } catch (error) {
        // Status 0: the view shows already that the gateway does not answer.
        if (error.status !== 0) this.#fail(error)
      }
    }
    if (this.#isShown) this.#timer = setTimeout(() => this.#look(), interval)
  }

  #draw(tree) {
    const isPaused = tree.state === "paused"
    setHidden(this.#pause, isPaused)
    setHidden(this.#resume, !isPaused)
    const text = JSON.stringify(tree)
    if (text === this.#drawn) return
    this.#drawn = text
    replace(this.#list, rows(tree).map(({ name, state, depth }) =>
      h("li", { "data-depth": Math.min(depth, 3) }, h("span", {}, name), h("span", { className: "tag", "data-kind": stateKind[state] }, state))))
  }

  async #set(isPaused) {
    this.#ask(false)
    await this.#do(isPaused ? "pause" : "resume", () => (isPaused ? "The gateway is paused." : "The gateway is active."))
    this.#look()
  }

  #reloadSettings() {
    return this.#do("reload", ({ changed }) => reloadText(changed))
  }

  /** Posts an action, and shows its result. */
  async #do(action, text) {
    const buttons = [this.#pause, this.#resume, this.#reload]
    for (const button of buttons) button.disabled = true
    setHidden(this.#problem, true)
    try {
      this.#app.toast(text((await this.#app.rest(`v1/admin/${action}`, { method: "POST" })).json))
    } catch (error) {
      this.#fail(error)
    } finally {
      for (const button of buttons) button.disabled = false
    }
  }

  #fail(error) {
    replace(this.#problem, problemContent(error))
    setHidden(this.#problem, false)
  }
}
