// JSON merge patches (RFC 7396). Members that were not edited are not sent, so a number that JavaScript can't represent exactly
// is preserved.

/** Maximum nesting depth that is compared; the gateway accepts 512. */
const maximumDepth = 1000

/**
 * Returns the patch that turns one object into another.
 *
 * @returns undefined if no patch expresses the change: in a patch, null removes a property; or if it is nested too deeply
 */
export function mergePatch(before, after, depth = 0) {
  if (depth === maximumDepth) return undefined
  const patch = {}
  for (const name of Object.keys(before)) if (!Object.hasOwn(after, name)) put(patch, name, null)
  for (const [name, value] of Object.entries(after)) {
    const old = Object.hasOwn(before, name) ? before[name] : undefined
    if (isEqual(old, value, depth)) continue
    const change = isObject(value) ? mergePatch(isObject(old) ? old : {}, value, depth + 1) : value
    if (change === undefined || change === null) return undefined
    put(patch, name, change)
  }
  return patch
}

/** Sets a member. An assignment to `__proto__` would set the prototype instead. */
function put(object, name, value) {
  Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true })
}

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value)

function isEqual(one, other, depth) {
  if (one === other) return true
  if (depth === maximumDepth) return false
  if (Array.isArray(one) && Array.isArray(other)) {
    return one.length === other.length && one.every((value, index) => isEqual(value, other[index], depth + 1))
  }
  if (!isObject(one) || !isObject(other)) return false
  const names = Object.keys(one)
  return (
    names.length === Object.keys(other).length &&
    names.every((name) => Object.hasOwn(other, name) && isEqual(one[name], other[name], depth + 1))
  )
}
