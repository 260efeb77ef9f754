// The command line that does the same.

/** A word of a POSIX shell. */
export function quote(text) {
  return `'${text.replaceAll("'", "'\\''")}'`
}

/**
 * The curl command that sends what the form would.
 *
 * @param {{ path: string, query?: Record<string, string | number | boolean>, body: string, isJSON?: boolean }} request
 *   its path below the gateway's address
 * @param {string} base the address
 */
export function curlCommand({ path, query = {}, body, isJSON = true }, base) {
  const url = new URL(path, base)
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
  const type = isJSON ? "application/json" : "application/octet-stream"
  // Raw, so that a text which begins with @ names no file.
  return `curl -sS ${quote(url.href)} \\\n  -H ${quote(`content-type: ${type}`)} \\\n  --data-raw ${quote(body)}`
}
