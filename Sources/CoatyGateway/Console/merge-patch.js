// JSON merge patches (RFC 7396), so that what was not edited goes back as it is: a number that JavaScript can't hold stays
// what it was.

/** Deeper than anything that the gateway takes. */
const maximumDepth = 1000

/**
 * The patch that makes one object of another.
 *
 * @returns undefined where no patch can say it: a patch takes null for the removal of a property, and nothing
 *   is compared that is nested too deep
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

/** Not by assignment, which would set the prototype where the name is `__proto__`. */
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
