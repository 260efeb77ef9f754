// What the user may do, by the gateway's answer to `GET v1/access`.

/** Whether the access configuration denies something: another attempt would only repeat it. */
export const isForbidden = (error) => error?.type === "urn:coaty-gateway:problem:forbidden"

/** The keys of a grant with names. */
const dimensions = ["types", "channels", "operations", "topics", "contexts"]

const types = { name: "type", label: "Object type or core type" }
const channel = { name: "channel", label: "Channel" }
const operation = { name: "operation", label: "Operation" }
const topic = { name: "topic", label: "Topic", isNeeded: true }
const topicFilter = { name: "topic", label: "Topic filter", isNeeded: true }
const context = { name: "context", label: "Context name" }

/**
 * What a question about a pattern of a verb can have: the name that the pattern touches, the JSON that conditions test, and
 * whether it can be about something of others, or retained.
 *
 * @typedef {{ field?: any, root?: "object" | "request", others?: boolean, retain?: boolean }} Question
 */

const object = (field, more) => ({ field, root: "object", ...more })
const request = (field) => ({ field, root: "request" })
const others = true

/** @type {Record<string, Record<string, Question>>} the patterns of each verb */
export const questions = {
  publish: {
    advertise: object(types, { others }), deadvertise: object(types, { others }), channel: object(channel),
    raw: { field: topic, retain: true }, iovalue: { field: context, others },
  },
  request: { discover: object(types), query: object(types), update: object(types, { others }), call: request(operation) },
  observe: {
    advertise: object(types), deadvertise: object(types), update: object(types), channel: object(channel),
    discover: request(types), query: request(types), call: request(operation),
    associate: { field: context }, routing: { field: context },
    iovalue: { field: context, others }, iostate: { field: context, others },
    raw: { field: topicFilter }, traffic: {},
  },
  answer: { discover: object(types), query: object(types), update: object(types), call: request(operation) },
  read: {
    objects: object(types), agents: object(), nodes: object(context, { others }), contexts: object(context), status: {}, info: {},
  },
  route: { contexts: object(context) },
  register: { nodes: object(context, { others }), identity: {} },
  administer: { clients: {}, gateway: {} },
}

export class Access {
  #answer

  /** @param answer `{name, roles, attributes, unrestricted, grants}` */
  constructor(answer) {
    const { name, roles = [], attributes = {}, unrestricted = false, grants = [] } = answer
    this.#answer = JSON.stringify(answer)
    this.name = name ?? undefined
    this.roles = roles
    this.attributes = attributes
    this.isUnrestricted = unrestricted
    const counts = new Map()
    /** Each with its name as the gateway reports it, such as `viewer#1`. */
    this.grants = grants.map(({ role, ...grant }) => {
      const number = (counts.get(role) ?? 0) + 1
      counts.set(role, number)
      return { name: `${role}#${number}`, role, ...described(grant) }
    })
  }

  /** Whether a later answer says something else. */
  differs(answer) {
    return JSON.stringify(answer) !== this.#answer
  }

  /** Whether everybody may do everything. */
  get isOpen() {
    return this.isUnrestricted && this.name === undefined
  }

  /** Whether some grant is for one of these patterns, whatever its names and its condition. */
  may(verb, ...patterns) {
    return this.isUnrestricted || this.grants.some((grant) => grant.verb === verb && grant.patterns.some((pattern) => patterns.includes(pattern)))
  }

  /** Whether some grant allows to change the routing of a context of this name. */
  mayRoute(name) {
    return this.isUnrestricted || this.grants.some(({ verb, names }) => verb === "route" && names.some((entry) => covers(entry, name)))
  }

  /** Whether some grant allows to publish raw messages that the broker retains. */
  get mayRetain() {
    return this.isUnrestricted || this.grants.some(({ verb, retain }) => verb === "publish" && retain)
  }
}

/** The parts of a grant. The list of a grant to route has the names of contexts. */
function described(grant) {
  const verb = Object.keys(questions).find((verb) => Object.hasOwn(grant, verb)) ?? ""
  const list = Array.isArray(grant[verb]) ? grant[verb] : [grant[verb]]
  const isRoute = verb === "route"
  return {
    verb,
    patterns: isRoute ? [] : list,
    names: isRoute ? list : dimensions.flatMap((key) => grant[key] ?? []),
    where: grant.where,
    others: grant.others === true,
    retain: grant.retain === true,
  }
}

/** Whether an entry of a grant, a name or a prefix that ends in `*`, covers a name. */
export function covers(entry, name) {
  const end = entry.match(/\\*\*$/)
  const isPrefix = end !== null && end[0].length % 2 === 1
  const literal = (isPrefix ? entry.slice(0, -1) : entry).replace(/\\([\\*])/g, "$1")
  return isPrefix ? name.startsWith(literal) : name === literal
}
