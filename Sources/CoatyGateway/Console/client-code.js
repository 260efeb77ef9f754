// Code for client.js that publishes, requests or subscribes. Pure.

import { prettyJSON } from "./json-print.js"

/** Returns a value as a JavaScript literal. */
function literal(value) {
  // In an object literal, `__proto__` would set the prototype. In a string, its quotation marks would be escaped.
  return prettyJSON(value, { isCode: true }).replaceAll('"__proto__":', '["__proto__"]:')
}

/**
 * Returns the code of a module that uses a client.
 *
 * @param {string} base the gateway's address
 * @param {boolean} needsToken whether the gateway needs a token; the code then has a placeholder
 * @param {string[]} lines the code that uses `client`
 */
function moduleCode(base, needsToken, ...lines) {
  const url = new URL(".", base).href
  const options = needsToken ? `, { token: "your token" }` : ""
  return [
    `import { CoatyClient } from ${JSON.stringify(new URL("client.js", url).href)}`, "",
    `const client = new CoatyClient(${JSON.stringify(url)}${options})`, ...lines, "",
  ].join("\n")
}

/** Returns code that publishes an event. @param {any} what as `publish` of client.js takes it */
export const publishCode = (what, base, needsToken = false) =>
  moduleCode(base, needsToken, "await client.online()", `await client.publish(${literal(what)})`)

/** Returns code that sends a request. @param {any} what, options as `request` of client.js takes them */
export const requestCode = (what, options, base, needsToken = false) =>
  moduleCode(base, needsToken, "await client.online()",
    `for await (const response of client.request(${literal(what)}, ${literal(options)})) {`, "  console.log(response.event, response.data)", "}")

/** Returns code that subscribes. @param {any} what, options as `subscribe` of client.js takes them */
export const subscribeCode = (what, options, base, needsToken = false) =>
  moduleCode(base, needsToken,
    `for await (const frame of client.subscribe(${[what, options].filter((value) => value !== undefined).map(literal).join(", ")})) {`,
    "  console.log(frame)", "}")
