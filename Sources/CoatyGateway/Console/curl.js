// curl commands for requests.

/** Quotes a text as a word of a POSIX shell. */
export function quote(text) {
  return `'${text.replaceAll("'", "'\\''")}'`
}

/** Maximum bytes of an argument on Linux. */
const maximumArgument = 128 * 1024 - 1

/**
 * Returns the curl command for a request.
 *
 * @param {{ path: string, query?: Record<string, string | number | boolean | string[]>, method?: string, body?: string,
 *   isJSON?: boolean, type?: string, isStream?: boolean }} request its path is relative to the gateway's address; `type` is the
 *   media type of the body, JSON by default; the output of a stream is not buffered
 * @param {string} base the gateway's address
 * @param {boolean} needsToken whether the gateway needs a token; the command reads it from a variable
 */
export function curlCommand(request, base, needsToken = false) {
  const { path, query = {}, method = "POST", body, isJSON = true, isStream = false } = request
  const { type = isJSON ? "application/json" : "application/octet-stream" } = request
  if (body?.includes("\0")) return "# No shell reads a text with NUL in it."
  const url = new URL(path, base)
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
  const token = needsToken ? ` -H "authorization: Bearer $COATY_GATEWAY_TOKEN"` : ""
  const command = `curl ${isStream ? "-sSN" : "-sS"}${body === undefined || method === "POST" ? "" : ` -X ${method}`} ${quote(url.href)}`
  if (body === undefined) return command + (token && ` \\\n ${token}`)
  const whole = `${command} \\\n  -H ${quote(`content-type: ${type}`)}${token} \\\n `
  // The shell's builtin printf has no limit on arguments, and unlike a here-document adds no newline.
  if (new TextEncoder().encode(body).length > maximumArgument) return `printf %s ${quote(body)} | ${whole} --data-binary @-`
  // `--data-raw`, because `--data` reads a file if the text begins with @.
  return `${whole} --data-raw ${quote(body)}`
}
