// The token of this tab: kept until the tab is closed or the user signs out.

const key = "coaty-token"
const prefix = "#token="

/** Used if the browser does not allow storage. */
let unstored

/** Returns the token; undefined if there is none. */
export function token() {
  try {
    return sessionStorage.getItem(key) ?? undefined
  } catch {
    return unstored
  }
}

/** Keeps a token for this tab. */
export function keepToken(text) {
  try {
    sessionStorage.setItem(key, text)
  } catch {
    unstored = text
  }
}

/** Forgets the token. */
export function forgetToken() {
  try {
    sessionStorage.removeItem(key)
  } catch {
    unstored = undefined
  }
}

/**
 * Keeps the token of a link, `#token=…`, and removes it from the address bar and the history.
 *
 * @returns whether the address had one
 */
export function takeTokenFromAddress() {
  const { hash, pathname, search } = location
  if (!hash.startsWith(prefix)) return false
  history.replaceState(null, "", pathname + search)
  const text = decoded(hash.slice(prefix.length)).trim()
  if (text !== "") keepToken(text)
  return true
}

function decoded(text) {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** Returns an error text for a malformed token; undefined if it is well-formed. */
export function tokenFault(text) {
  if (text === "") return "Enter a token."
  return /^[\x21-\x7e]+$/.test(text) ? undefined : "A token has only letters, digits and punctuation, without spaces. Copy it again."
}
