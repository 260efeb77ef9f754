// The command line that does the same.

/** A word of a POSIX shell. */
export function quote(text) {
  return `'${text.replaceAll("'", "'\\''")}'`
}

/** Linux gives no program an argument of more bytes. */
const maximumArgument = 128 * 1024 - 1

/**
 * The curl command that sends what the form would.
 *
 * @param {{ path: string, query?: Record<string, string | number | boolean>, body: string, isJSON?: boolean }} request
 *   its path below the gateway's address
 * @param {string} base the address
 * @param {boolean} needsToken whether the gateway needs a token; the command reads it from a variable
 */
export function curlCommand({ path, query = {}, body, isJSON = true }, base, needsToken = false) {
  if (body.includes("\0")) return "# No shell reads a text with NUL in it."
  const url = new URL(path, base)
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
  const type = isJSON ? "application/json" : "application/octet-stream"
  const command = `curl -sS ${quote(url.href)} \\\n  -H ${quote(`content-type: ${type}`)}${needsToken ? ` -H "authorization: Bearer $COATY_TOKEN"` : ""} \\\n `
  // A shell's own printf takes what it can't give to a program, and adds no line's end as a here-document would.
  if (new TextEncoder().encode(body).length > maximumArgument) return `printf %s ${quote(body)} | ${command} --data-binary @-`
  // Raw, so that a text which begins with @ names no file.
  return `${command} --data-raw ${quote(body)}`
}
