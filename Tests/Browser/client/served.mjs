// Resolves the modules of the console as the gateway serves them: client.js is in the folder above.

import { register } from "node:module"

const console = new URL("../../../Sources/CoatyGateway/Console/", import.meta.url).href
const resolve = `export const resolve = (name, context, next) =>
  next(name === "../client.js" && context.parentURL?.startsWith("${console}") ? "./client.js" : name, context)`
register(`data:text/javascript,${encodeURIComponent(resolve)}`)
