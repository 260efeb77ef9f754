// Requests to the gateway's REST API, with the token.

import { GatewayError, parseExact, stringifyExact } from "../client.js"
import { token } from "./token.js"

/** Path of the resource with the user's principal and grants. */
export const accessPath = "v1/access"

let reportUnauthorized = () => {}

/** Sets a callback for status 401: the gateway refuses the token, or a request without one. */
export function onUnauthorized(callback) {
  reportUnauthorized = callback
}

/**
 * Sends a request: `await rest("v1/objects")`.
 *
 * @returns the status, the body if it is JSON, and the header fields
 * @throws GatewayError the gateway's problem, or status 0 if the gateway does not answer
 */
export async function rest(path, { method = "GET", body, headers = {} } = {}) {
  const json = body === undefined ? {} : { "content-type": "application/json" }
  const text = body === undefined || typeof body === "string" ? body : stringifyExact(body)
  const secret = token()
  const authorization = secret === undefined ? {} : { authorization: `Bearer ${secret}` }
  let response
  try {
    const fields = { ...json, ...authorization, ...headers }
    response = await fetch(new URL(path, document.baseURI), { method, body: text, headers: fields })
  } catch {
    throw new GatewayError({ title: "The gateway is away", status: 0, detail: "It does not answer." })
  }
  const isJSON = /\bjson\b/.test(response.headers.get("content-type") ?? "")
  const answer = isJSON ? parseExact(await response.text()) : undefined
  if (response.status === 401 && path !== accessPath) reportUnauthorized()
  if (!response.ok) throw new GatewayError(answer ?? { title: response.statusText, status: response.status })
  return { status: response.status, json: answer, headers: response.headers }
}
