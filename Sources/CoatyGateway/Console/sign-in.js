// Signing in: the console asks for a token if the gateway needs one.

import { Access } from "./access.js"
import { h, replace, setHidden, setText } from "./dom.js"
import { showFault } from "./fault.js"
import { pause, forever } from "./observe.js"
import { accessPath, rest } from "./rest.js"
import { forgetToken, keepToken, token, tokenFault } from "./token.js"

/** Milliseconds between two attempts to reach the gateway. */
const retryTime = 1000
/** Statuses after which the form is shown, because another token may help. */
const refusals = [401, 403, 421, 429]

/** Builds a form for a token. `submit` returns an error text, or undefined if the token is accepted. */
export function tokenForm(submit, label = "Sign in") {
  const error = h("p", { className: "error", id: "token-error", role: "alert", hidden: true })
  const input = h("input", {
    id: "token", type: "password", spellcheck: false, autocomplete: "off", autocapitalize: "off", "aria-describedby": "token-error",
    oninput: () => showFault(input, error),
  })
  const button = h("button", { className: "button primary", type: "submit" }, label)
  const refuse = (text) => {
    showFault(input, error, text)
    input.focus()
  }
  const form = h("form", {
    className: "form token-form", noValidate: true,
    onsubmit: async (event) => {
      event.preventDefault()
      if (button.disabled) return
      const text = input.value.trim()
      button.disabled = true
      const fault = tokenFault(text) ?? await submit(text)
      button.disabled = false
      if (fault !== undefined) refuse(fault)
    },
  }, h("div", { className: "field" }, h("label", { for: "token" }, "Token"), input, error), h("div", { className: "toolbar" }, button))
  return { form, input, refuse }
}

/** Keeps a token if the gateway accepts it. @returns an error text; undefined if it is accepted */
export async function tryToken(text) {
  const before = token()
  keepToken(text)
  try {
    await rest(accessPath)
    return undefined
  } catch (error) {
    if (before === undefined) forgetToken()
    else keepToken(before)
    return error.status === 401 ? "The gateway does not know this token, or it was removed." : error.detail ?? error.message
  }
}

/**
 * Waits until the gateway accepts the user, and asks for a token if it needs one.
 *
 * @param {HTMLElement} main the element that contains the form
 * @param {() => void} onAsk called when the form is shown
 * @returns {Promise<Access>} what the user may do
 */
export async function signIn(main, onAsk) {
  const notice = h("p", { className: "notice", "data-kind": "warn", role: "status" })
  try {
    for (;;) {
      try {
        return new Access((await rest(accessPath)).json)
      } catch (error) {
        if (refusals.includes(error.status)) {
          notice.remove()
          onAsk()
          await ask(main, error)
          continue
        }
        setText(notice, `The gateway did not return your access: ${error.detail ?? error.message} The page keeps trying.`)
        if (!notice.isConnected) main.append(notice)
      }
      await pause(retryTime, forever)
    }
  } finally {
    notice.remove()
  }
}

/** Shows the form until a token is accepted. */
async function ask(main, error) {
  const isRemoved = token() !== undefined && error.status === 401
  if (error.status === 401) forgetToken()
  const mayContinue = isRemoved && await isAnonymousAccepted()
  await new Promise((resolve) => {
    const { form, input, refuse } = tokenForm(async (text) => {
      const fault = await tryToken(text)
      if (fault === undefined) resolve()
      return fault
    })
    const anonymous = h("button", { className: "button quiet", type: "button", onclick: resolve }, "Continue without a token")
    setHidden(anonymous, !mayContinue)
    form.querySelector(".toolbar").append(anonymous)
    replace(main, h("section", { className: "sign-in", "aria-labelledby": "sign-in-title" },
      h("h1", { id: "sign-in-title" }, "Sign in"),
      h("p", {}, "This gateway needs a token. Open the link that it printed at its start, or paste a token here."),
      form,
      h("p", { className: "muted" }, "The token is kept in this tab, until you close it or sign out. ",
        h("code", {}, "coaty-gateway token create"), " makes one.")))
    document.title = "Sign in – Coaty gateway"
    if (isRemoved) refuse("The gateway does not know this token, or it was removed.")
    else if (error.status !== 401) refuse(error.detail ?? error.message)
    else input.focus()
  })
  replace(main)
}

async function isAnonymousAccepted() {
  try {
    await rest(accessPath)
    return true
  } catch {
    return false
  }
}
