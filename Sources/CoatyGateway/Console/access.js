// The user's grants, from the gateway's answer to `GET v1/access`.

import { stringifyExact } from "../client.js"

/** Returns whether the access configuration denies an operation, so that a retry is useless. */
export const isForbidden = (error) => error?.type === "urn:coaty-gateway:problem:forbidden"

/** The keys of a grant that list names. */
const dimensions = ["types", "channels", "operations", "topics", "contexts"]

const types = { name: "type", label: "Object type or core type" }
const channel = { name: "channel", label: "Channel" }
const operation = { name: "operation", label: "Operation" }
const topic = { name: "topic", label: "Topic", isNeeded: true }
const topicFilter = { name: "topic", label: "Topic filter", isNeeded: true }
const context = { name: "context", label: "Context name" }

/**
 * The fields of an access check for a pattern of a verb: a name, the JSON that conditions test, and whether the target can belong
 * to others or be retained.
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
    this.#answer = stringifyExact(answer)
    this.name = name ?? undefined
    this.roles = roles
    this.attributes = attributes
    this.isUnrestricted = unrestricted
    const counts = new Map()
    /** Grants, each with the name that the gateway reports, such as `viewer#1`. */
    this.grants = grants.map(({ role, ...grant }) => {
      const number = (counts.get(role) ?? 0) + 1
      counts.set(role, number)
      return { name: `${role}#${number}`, role, ...described(grant) }
    })
  }

  /** Returns whether a later answer differs. */
  differs(answer) {
    return stringifyExact(answer) !== this.#answer
  }

  /** Whether the gateway has open access: everybody may do everything. */
  get isOpen() {
    return this.isUnrestricted && this.name === undefined
  }

  /** Returns whether a grant is for one of these patterns, regardless of its names and condition. */
  may(verb, ...patterns) {
    return this.isUnrestricted || this.grants.some((grant) => grant.verb === verb && grant.patterns.some((pattern) => patterns.includes(pattern)))
  }

  /** Returns whether a grant allows changing contexts with this name. */
  mayRoute(name) {
    return this.isUnrestricted || this.grants.some(({ verb, names }) => verb === "route" && names.some((entry) => covers(entry, name)))
  }

  /** Whether a grant allows publishing raw messages that the broker retains. */
  get mayRetain() {
    return this.isUnrestricted || this.grants.some(({ verb, retain }) => verb === "publish" && retain)
  }
}

/** Returns the parts of a grant. A grant to route lists names of contexts instead of patterns. */
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

/** Returns whether an entry of a grant covers a name: it is the name, or a prefix of the name followed by `*`. */
export function covers(entry, name) {
  const end = entry.match(/\\*\*$/)
  const isPrefix = end !== null && end[0].length % 2 === 1
  const literal = (isPrefix ? entry.slice(0, -1) : entry).replace(/\\([\\*])/g, "$1")
  return isPrefix ? name.startsWith(literal) : name === literal
}
