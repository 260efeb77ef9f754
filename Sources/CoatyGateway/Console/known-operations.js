// Known names of remote operations: called, answered, observed, or described by agents.

import { stringifyExact } from "../client.js"
import { line } from "./dom.js"
import { observe } from "./observe.js"

/** Maximum number of names. Beyond it the one that was noted least recently is removed. */
export const maximumOperations = 200
const maximumName = 200
/** Maximum number of operations that are taken from one object. */
const maximumDescribed = 50
/** Maximum number of characters of an example as JSON. A longer one is left out. */
export const maximumExample = 4096

/** The origins of names, most informative first. */
const origins = ["described", "answered", "called", "observed"]

/**
 * The known operations. Dispatches `change` when one is new or its description has changed.
 *
 * An agent describes its operations in a property `operations` of an object that it advertises, such as its identity: an array
 * of names, or of objects with `name`, `description`, and `example`, the parameters of a call.
 */
export class KnownOperations extends EventTarget {
  /** Operations by name, `{ name, origin, text, example }`, the one noted last at the end. */
  #operations = new Map()

  /** Observes calls and descriptions until the signal aborts, as far as the user has grants. */
  follow(client, access, signal, nameOf) {
    if (access.may("observe", "traffic")) {
      observe(client, { event: "traffic", events: ["call"], fields: ["name"] }, signal, (frame) => {
        if (frame.op === "event") this.note(frame.operation, "observed")
      })
    }
    if (access.may("observe", "advertise")) {
      const what = { event: "advertise", snapshot: true, filter: ["operations", ["Exists"]], fields: ["name", "operations"] }
      observe(client, what, signal, (frame) => {
        if (frame.op === "event" && frame.change !== "removed") this.describe(frame.data?.object, nameOf(frame.sourceId))
      })
    }
  }

  /**
   * Notes the name of an operation.
   *
   * @param {"described" | "answered" | "called" | "observed"} origin
   * @param {string} text a description, or the name of an agent
   * @param {string} [example] parameters of a call, as JSON
   */
  note(name, origin, text = "", example) {
    if (typeof name !== "string" || name.trim() === "" || name.length > maximumName) return
    const known = this.#operations.get(name)
    const isBetter = known === undefined || origins.indexOf(origin) <= origins.indexOf(known.origin)
    const operation = isBetter ? { name, origin, text: text || known?.text || "", example: example ?? known?.example } : known
    this.#operations.delete(name)
    this.#operations.set(name, operation)
    if (this.#operations.size > maximumOperations) this.#operations.delete(this.#operations.keys().next().value)
    if (known === undefined || operation.origin !== known.origin || operation.text !== known.text || operation.example !== known.example) this.dispatchEvent(new Event("change"))
  }

  /** Notes the operations that an advertised object describes. @param agent the agent's name, used without a description */
  describe(object, agent) {
    if (!Array.isArray(object?.operations)) return
    for (const operation of object.operations.slice(0, maximumDescribed)) {
      if (typeof operation === "string") this.note(operation, "described", agent)
      else this.note(operation?.name, "described", line(operation?.description ?? agent, maximumName), exampleOf(operation))
    }
  }

  /** Returns an example of the parameters of an operation as JSON; undefined if there is none. */
  example(name) {
    return this.#operations.get(name)?.example
  }

  /** The operations: those described by agents first, each group latest first. */
  get all() {
    const latest = [...this.#operations.values()].reverse()
    const rank = ({ origin }) => (origin === "described" ? 0 : 1)
    return latest.sort((one, other) => rank(one) - rank(other))
  }
}

/** Returns the example of a described operation as JSON; undefined if there is none, or if it is too long. */
function exampleOf(operation) {
  const example = operation?.example === undefined ? undefined : stringifyExact(operation.example)
  return example === undefined || example.length > maximumExample ? undefined : example
}

/** Returns the text next to the name of an operation. */
export function originText({ origin, text }) {
  switch (origin) {
    case "described": return text
    case "answered": return text === "" ? "answered" : `answered by ${text}`
    case "called": return "called from this page"
    default: return "observed"
  }
}
