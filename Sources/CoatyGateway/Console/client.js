/**
 * A client of a Coaty gateway, for browsers and node: one connection to `/v1/ws`, which reconnects by itself.
 *
 * docs/browser.md describes it by task, docs/websocket.md describes the protocol.
 *
 * @module
 */

/** Maximum number of events queued for a subscription's consumer. Beyond it the oldest are dropped, and a gap reports it. */
const maximumQueuedEvents = 4096
/** Maximum bytes of these events; a single event may be larger. */
const maximumQueuedBytes = 4 * 1024 * 1024
/** Maximum bytes of responses queued for a request's consumer. Beyond it the request ends with the reason `overflow`. */
const maximumResponseBytes = 16 * 1024 * 1024
/** Maximum number of subscriptions and requests at a time, which is also the gateway's bound. More are refused. */
const maximumStreams = 256
/** Maximum number of publications and answers that the gateway has not acknowledged yet. More are refused. */
const maximumUnacknowledged = 10_000
/** Maximum bytes queued for the network. Beyond it publications, answers and requests are refused, also requests that wait. */
const maximumUnsentBytes = 8 * 1024 * 1024

/** Milliseconds before the first attempt to reconnect; the delay doubles up to the longest one. */
const firstDelay = 250
const longestDelay = 10_000
/** The longest delay that a gateway can ask for when it stops. */
const longestRequestedDelay = 60_000
/** The longest delay that a refusal of an event stream can ask for. */
const longestRetryAfter = 600_000
/** Milliseconds without a message after which a connection is given up, by default. The connection is checked four times in it. */
const usualSilence = 40_000
/** Milliseconds for each step of an attempt to connect, by default: the token, the ticket, and the opening of the connection. */
const usualAttempt = 10_000
/** The longest time to wait for the reply to a ping, when the network or the page is back. */
const longestProbe = 5_000
/** The time between two heartbeats of an event stream, and how much later one may arrive. */
const heartbeatInterval = 15_000
const heartbeatDelay = 5_000
/** A timer that fires this many milliseconds too late leaves what has arrived in the meantime … */
const lateness = 1_000
/** … this much time to be read. */
const readingTime = 1_000
/** An event stream that was open for this long resets the delay. */
const steadyTime = 10_000
/** Maximum number of characters of one event of an event stream. */
const maximumEventLength = 64 * 1024 * 1024
/** Number of checks after which a frame without a reply counts as unanswered. */
const checksUntilUnanswered = 3
/** Number of checks without a message in between after which the client sends a ping, … */
const silentChecksUntilPing = 3
/** … and after which it gives the connection up. */
const silentChecksUntilLost = 4

/** The share of a token's remaining time after which the client asks for the next one, … */
const renewalShare = 0.8
/** … at least this many milliseconds before the end, … */
const renewalMargin = 5_000
/** … and at least this many after the last time. */
const shortestRenewal = 2_000
/** The longest time that a timer can have. */
const longestTimer = 2 ** 31 - 1
/** The gateway's time limit of a request without `timeout`, in milliseconds. */
const usualTimeout = 2_000

/** Whether a new connection would end in the same way. */
const isFinal = (/** @type {number} */ code) => code >= 4500 && code <= 4999
/** Whether a problem, or a frame with one, asks the client to come later. */
const isTooEarly = (/** @type {any} */ problem) =>
  problem.type === "urn:coaty-gateway:problem:rate-limited" && problem.retryAfter > 0
/** Whether the gateway will accept the same token later: its clock is behind that of the identity provider. */
const isNotYetValid = (/** @type {any} */ problem) => problem.type === "urn:coaty-gateway:problem:token-not-yet-valid"
/** Whether the gateway would refuse a token again. */
const isRefusal = (/** @type {any} */ error) =>
  error instanceof GatewayError && error.status >= 400 && error.status < 500 && !isTooEarly(error)
/** The status of a refusal of an event stream that passes, although it is one of the client's errors. */
const passing = [401, 408, 425, 429]
/** The problems with which the gateway refuses a page, whatever it requests; the second one only if the client has no token. */
const pageRefusals = ["urn:coaty-gateway:problem:origin-not-allowed", "urn:coaty-gateway:problem:host-not-allowed"]
/** Whether the gateway would refuse an event stream again. With 204, a server asks not to connect again (HTML Standard, 9.2). */
const isLasting = (/** @type {any} */ error) =>
  error instanceof GatewayError && (error.status === 204 || error.status >= 400 && error.status < 500 && !passing.includes(error.status))

/** The name of the response event by the name of the request. */
const responseEvents = { discover: "resolve", query: "retrieve", update: "complete", call: "return" }

/** A refusal of the gateway or of this client, with the members of a problem (RFC 9457). */
export class GatewayError extends Error {
  /** @param {import("./client.js").Problem} problem */
  constructor({ type, title, status, detail, pointer, parameter, missing, retryAfter }) {
    super(detail ?? title)
    this.name = "GatewayError"
    this.type = type
    this.title = title
    this.status = status
    this.detail = detail
    this.pointer = pointer
    this.parameter = parameter
    this.missing = missing
    this.retryAfter = retryAfter
  }
}

/**
 * Returns a problem of the client itself. Its status is 0.
 *
 * @param {string} name
 * @param {string} title
 * @param {string} detail
 */
const ownProblem = (name, title, detail) =>
  new GatewayError({ type: `urn:coaty-client:problem:${name}`, title, status: 0, detail })

const offline = (detail = "The client is not online.") => ownProblem("offline", "Offline", detail)
const closed = () => ownProblem("closed", "Closed", "The client has been closed.")
const refused = (/** @type {string} */ why) =>
  ownProblem("refused", "Refused", `The gateway has closed the connection (${why}). A new connection would end in the same way.`)
const ended = () => ownProblem("ended", "Ended", "The subscription ended before it began.")
const disconnected = (/** @type {string} */ why) =>
  ownProblem("disconnected", "Disconnected", `The connection was lost (${why}) before the gateway answered. It may have acted.`)
const unanswered = () =>
  ownProblem("unanswered", "Unanswered", "The gateway did not answer. It refuses frames that it cannot read without naming their id.")
const busy = (/** @type {string} */ detail) => ownProblem("busy", "Busy", detail)
const late = (/** @type {string} */ who, /** @type {number} */ timeout) =>
  ownProblem("timeout", "Timeout", `${who} did not answer within ${timeout} ms.`)

/**
 * A timer. After a suspend, timers are due before the first message is read: a timer that is much too late fires a little later,
 * so that it finds what has arrived in the meantime.
 */
class Timer {
  /** @type {ReturnType<typeof setTimeout>} */
  #timer

  /**
   * @param {(wasLate: boolean) => void} act
   * @param {number} delay in milliseconds
   */
  constructor(act, delay) {
    const due = performance.now() + delay
    this.#timer = setTimeout(() => {
      if (performance.now() - due <= lateness) act(false)
      else this.#timer = setTimeout(act, readingTime, true)
    }, delay)
  }

  cancel() {
    clearTimeout(this.#timer)
  }
}

/**
 * Returns what a promise resolves to, unless that takes too long.
 *
 * @template T
 * @param {Promise<T>} promise
 * @param {number} timeout in milliseconds
 * @param {string} who does not answer then
 * @param {AbortSignal} [signal] ends the wait
 * @returns {Promise<T>}
 */
function within(promise, timeout, who, signal) {
  return new Promise((resolve, reject) => {
    const end = () => {
      timer.cancel()
      signal?.removeEventListener("abort", abort)
    }
    const fail = (/** @type {any} */ error) => {
      end()
      reject(error)
    }
    const abort = () => fail(closed())
    const timer = new Timer(() => fail(late(who, timeout)), timeout)
    signal?.addEventListener("abort", abort)
    promise.then((value) => {
      end()
      resolve(value)
    }, fail)
  })
}

/**
 * Returns the current token.
 *
 * @param {import("./client.js").Token | undefined} token
 * @param {number} [timeout] of a function, in milliseconds
 * @param {AbortSignal} [signal] ends the wait for a function
 * @returns {Promise<string | undefined>}
 */
async function current(token, timeout = usualAttempt, signal) {
  const value = typeof token === "function" ? await within((async () => token())(), timeout, "The token function", signal) : token
  if (value === undefined || typeof value === "string") return value
  throw new TypeError("A token is a string")
}

/**
 * Returns the time limit of a request in milliseconds; undefined if it is not one, which the gateway refuses.
 *
 * @param {import("./client.js").Duration | undefined} timeout
 */
function timeLimit(timeout = usualTimeout) {
  const [, digits, unit] = /^(\d+)(m?s)$/.exec(String(timeout)) ?? []
  const limit = typeof timeout === "number" ? timeout : Number(digits) * (unit === "s" ? 1000 : 1)
  return limit >= 1 && limit <= longestTimer ? limit : undefined
}

/** Returns the milliseconds until the next attempt to connect: random between half of the current delay and all of it. */
function retryDelay(/** @type {number} */ attempts) {
  const delay = Math.min(longestDelay, firstDelay * 2 ** Math.min(attempts, 16))
  return Math.round(delay * (1 + Math.random()) / 2)
}

/** Returns when a gateway that stops asks a client to connect again, in milliseconds; undefined if it does not. */
function requestedDelay(/** @type {string} */ reason) {
  const delay = /^retry-after=([0-9]{1,9})$/.exec(reason)?.[1]
  return delay === undefined ? undefined : Math.min(Number(delay), longestRequestedDelay)
}

/**
 * Returns an option that is a time.
 *
 * @param {number | undefined} value
 * @param {number} usual
 */
function time(value, usual) {
  if (value === undefined) return usual
  if (value > 0 && value <= longestTimer) return value
  throw new TypeError("A timeout is a number of milliseconds")
}

/**
 * Calls a function when an open connection may be dead: the browser reports that the network is back, or the page is shown again.
 *
 * @param {(isNetworkBack: boolean) => void} act
 * @returns {() => void} a function that ends this
 */
function onWake(act) {
  const page = globalThis.document
  const back = () => act(true)
  const shown = () => {
    if (page?.visibilityState !== "hidden") act(false)
  }
  globalThis.addEventListener?.("online", back)
  globalThis.addEventListener?.("pageshow", shown)
  page?.addEventListener("visibilitychange", shown)
  return () => {
    globalThis.removeEventListener?.("online", back)
    globalThis.removeEventListener?.("pageshow", shown)
    page?.removeEventListener("visibilitychange", shown)
  }
}

// Exact integers. Not every browser lets a reviver of JSON.parse see the text of a number.

/** Matches the strings and numbers of JSON. The second group matches the colon after the name of a member. */
const scalars = /("[^"\\]*(?:\\.[^"\\]*)*"|-?\d[\d.eE+-]*)(\s*:)?/g
const integer = /^-?(?:0|[1-9]\d*)$/

/**
 * Parses JSON; client.d.ts documents it. Large integers are marked as strings with a tilde, and strings that begin with a tilde get
 * another one.
 *
 * @param {string} text
 */
export function parseExact(text) {
  // No integer of fewer digits is large.
  if (!/\d{16}/.test(text)) return JSON.parse(text)
  const marked = text.replace(scalars, (match, part, colon) => {
    if (colon) return match
    if (part[0] === '"') return /^"(?:~|\\u007e)/i.test(part) ? `"~${part.slice(1)}` : part
    return integer.test(part) && !Number.isSafeInteger(Number(part)) ? `"~${part}"` : part
  })
  return JSON.parse(marked, (_, value) => {
    if (typeof value !== "string" || value[0] !== "~") return value
    return value[1] === "~" ? value.slice(1) : BigInt(value.slice(1))
  })
}

/**
 * Returns a value as JSON; client.d.ts documents it.
 *
 * @param {any} value
 * @returns {string}
 */
export function stringifyExact(value) {
  // A page may have given BigInt this method, which would write a string.
  if ("toJSON" in BigInt.prototype) return /** @type {any} */ (written(value))
  try {
    return JSON.stringify(value)
  } catch (error) {
    // It contains a BigInt, or itself.
    try {
      return /** @type {any} */ (written(value))
    } catch {
      throw error
    }
  }
}

/**
 * @param {any} value
 * @returns {string | undefined} undefined for what JSON leaves out
 */
function written(value) {
  if (typeof value === "bigint") return String(value)
  if (typeof value?.toJSON === "function") return written(value.toJSON())
  if (typeof value !== "object" || value === null) return JSON.stringify(value)
  if (Array.isArray(value)) return `[${Array.from(value, (item) => written(item) ?? "null").join(",")}]`
  const members = Object.entries(value).flatMap(([name, member]) => {
    const text = written(member)
    return text === undefined ? [] : [`${JSON.stringify(name)}:${text}`]
  })
  return `{${members.join(",")}}`
}

/**
 * A promise that other code settles. Its rejection may stay unhandled.
 *
 * @template T
 */
class Deferred {
  constructor() {
    /** @type {Promise<T>} */
    this.promise = new Promise((resolve, reject) => {
      /** @type {(value: T) => void} */
      this.resolve = resolve
      /** @type {(error: any) => void} */
      this.reject = reject
    })
    this.promise.catch(() => {})
  }
}

/** Returns the sum of two numbers of dropped events; null if one is unknown. */
const sum = (/** @type {number | null} */ a, /** @type {number | null} */ b) =>
  a === null || b === null ? null : a + b

/**
 * The queue of one subscription or request, between the connection and the consumer that iterates over it.
 *
 * @implements {AsyncIterator<any, undefined>}
 */
class Stream {
  /** @type {any[]} */
  #frames = []
  /** The frames before this index are taken. */
  #head = 0
  #bytes = 0
  /**
   * Number of dropped events before the first queued one; null if unknown.
   *
   * @type {number | null}
   */
  #dropped = 0
  /**
   * The consumer's pending call of `next`.
   *
   * @type {{resolve: (result: any) => void, reject: (error: any) => void} | undefined}
   */
  #taker
  #hasConsumer = false
  /** @type {Deferred<undefined>} */
  #over = new Deferred()
  /** @type {any} */
  #error

  /**
   * Why it is over.
   *
   * @type {any}
   */
  reason
  /**
   * Called once when it ends, with whether the consumer ended it.
   *
   * @type {(isWish: boolean) => void}
   */
  onEnd = () => {}
  /**
   * Settled when it has begun, or when it is refused.
   *
   * @type {Deferred<undefined>}
   */
  ready = new Deferred()

  /** @param {object} members the members of the frame that begins it */
  constructor(members) {
    // A copy, because it is sent later, or again after a reconnect; values that JSON cannot represent throw here.
    const text = stringifyExact(members)
    this.members = parseExact(text)
    /** Approximate bytes of the frame that begins it. */
    this.size = text.length
  }

  get isOver() {
    return this.reason !== undefined
  }

  get queuedEvents() {
    return this.#frames.length - this.#head
  }

  get queuedBytes() {
    return this.#bytes
  }

  /** @param {any} frame */
  push(frame) {
    if (this.#taker) return this.#give({ value: frame, done: false })
    this.#frames.push(frame)
    this.#bytes += frame.size
  }

  /** Drops the oldest queued frame. */
  dropOldest() {
    const frame = this.#shift()
    this.#dropped = sum(this.#dropped, frame.op === "gap" ? frame.dropped : 1)
  }

  #shift() {
    const frame = this.#frames[this.#head]
    this.#frames[this.#head++] = undefined
    this.#bytes -= frame.size
    // Moved seldom enough to cost nothing, and often enough to keep nothing.
    if (this.#head * 2 > this.#frames.length) {
      this.#frames.splice(0, this.#head)
      this.#head = 0
    }
    return frame
  }

  /** @param {any} result */
  #give(result) {
    const taker = this.#taker
    this.#taker = undefined
    taker?.resolve(result)
  }

  /**
   * @param {string} reason
   * @param {{isWish?: boolean, error?: any}} how
   */
  end(reason, { isWish = false, error } = {}) {
    if (this.isOver) return
    this.reason = reason
    this.ready.reject(error ?? ended())
    const taker = this.#taker
    this.#taker = undefined
    if (!error) taker?.resolve({ value: undefined, done: true })
    else if (taker) taker.reject(error)
    else this.#error = error
    this.#over.resolve(undefined)
    this.onEnd(isWish)
  }

  /** Ends it for the consumer, and discards what is queued. */
  leave() {
    this.#frames = []
    this.#head = this.#bytes = this.#dropped = 0
    this.#error = undefined
    this.end(this.wish, { isWish: true })
  }

  /** Returns the iterator, once. */
  consumer() {
    if (this.#hasConsumer) throw new TypeError("Only one loop can iterate over this")
    this.#hasConsumer = true
    return this
  }

  /** @returns {Promise<IteratorResult<any, undefined>>} */
  next() {
    if (this.#dropped !== 0) {
      const value = ownGap(this.#dropped)
      this.#dropped = 0
      return Promise.resolve({ value, done: false })
    }
    if (this.queuedEvents > 0) return Promise.resolve({ value: this.#shift(), done: false })
    if (this.isOver) {
      const error = this.#error
      this.#error = undefined
      return error ? Promise.reject(error) : Promise.resolve({ value: undefined, done: true })
    }
    if (this.#taker) return Promise.reject(new TypeError("The previous call of next is still pending"))
    return new Promise((resolve, reject) => { this.#taker = { resolve, reject } })
  }

  /**
   * Ends it when the consumer leaves its loop.
   *
   * @returns {Promise<IteratorResult<any, undefined>>}
   */
  return() {
    this.leave()
    return Promise.resolve({ value: undefined, done: true })
  }

  [Symbol.asyncIterator]() {
    return this
  }

  /** The reason if the consumer ends it. */
  get wish() {
    return "closed"
  }

  /** Waits for the end and returns all queued frames. */
  async all() {
    this.consumer()
    await this.#over.promise
    const error = this.#error
    if (error) throw error
    return this.#frames.slice(this.#head)
  }
}

/** Returns a gap for events that the client itself dropped. */
const ownGap = (/** @type {number | null} */ dropped) => ({ op: "gap", dropped, where: "client", size: 0 })

/** A subscription. It survives reconnects. */
class EventStream extends Stream {
  #hasBegun = false

  beginning() {
    return { ...this.members, op: "subscribe" }
  }

  ending() {
    return { op: "unsubscribe" }
  }

  /** @param {any} frame */
  received(frame) {
    switch (frame.op) {
      case "ok":
        // A subscription without a cursor starts again, and changes in between are unknown.
        if (this.#hasBegun && this.members.since === undefined) this.#keep(ownGap(null))
        this.#hasBegun = true
        this.ready.resolve(undefined)
        break
      case "event":
        this.#keep(frame)
        break
      case "gap":
        frame.where = "gateway"
        this.#keep(frame)
        break
      case "done":
        return this.end(frame.reason)
      case "error":
        return this.end("error", { error: new GatewayError(frame) })
    }
    if (frame.cursor !== undefined) this.members.since = frame.cursor
  }

  /** @param {any} frame */
  #keep(frame) {
    this.push(frame)
    while (
      this.queuedEvents > maximumQueuedEvents ||
      (this.queuedBytes > maximumQueuedBytes && this.queuedEvents > 1)
    ) this.dropOldest()
  }

  stop() {
    this.leave()
  }

  disconnected() {}
}

/** A request. It waits until the client is online, as long as its time limit, and ends with the connection on which it was sent. */
class ResponseStream extends Stream {
  /** Number of checks since it was sent; undefined before, and once the gateway has acknowledged it. */
  checks = /** @type {number | undefined} */ (undefined)
  /** Whether the gateway withheld responses. */
  isFiltered = false
  isSent = false
  /** @type {Timer | undefined} */
  #waitTimer
  #began = performance.now()

  /** Ends it if it is not sent within its time limit. */
  wait() {
    const limit = timeLimit(this.members.timeout) ?? usualTimeout
    const detail = `The client was not online within the ${limit} ms of the request, which was not sent.`
    this.#waitTimer = new Timer(() => this.end("error", { error: offline(detail) }), limit)
  }

  beginning() {
    this.isSent = true
    this.checks = 0
    const limit = this.#waitTimer && timeLimit(this.members.timeout)
    this.#waitTimer?.cancel()
    // The rest of its time.
    const timeout = limit && Math.max(1, Math.round(limit - (performance.now() - this.#began)))
    return { ...this.members, ...(timeout && { timeout }), op: "request" }
  }

  /**
   * @param {string} reason
   * @param {{isWish?: boolean, error?: any}} [how]
   */
  end(reason, how) {
    this.#waitTimer?.cancel()
    super.end(reason, how)
  }

  ending() {
    return { op: "cancel" }
  }

  get wish() {
    return "cancelled"
  }

  /** @param {any} frame */
  received(frame) {
    switch (frame.op) {
      case "ok":
        this.checks = undefined
        break
      case "response":
        this.push(frame)
        // The client ends it, keeps the queued responses, and cancels it at the gateway.
        if (this.queuedBytes > maximumResponseBytes) this.end("overflow")
        break
      case "done":
        this.isFiltered = frame.filtered === true
        return this.end(frame.reason)
      case "error":
        return this.end("error", { error: new GatewayError(frame) })
    }
  }

  /** Ends it and keeps the queued responses. */
  stop() {
    this.end(this.wish, { isWish: true })
  }

  disconnected() {
    if (this.isSent) this.end("disconnected")
  }
}

/** The result of {@link CoatyClient.subscribe}. */
class Subscription {
  #stream

  /** @param {EventStream} stream */
  constructor(stream) {
    this.#stream = stream
  }

  get ready() {
    return this.#stream.ready.promise
  }

  get reason() {
    return this.#stream.reason
  }

  close() {
    this.#stream.stop()
  }

  [Symbol.asyncIterator]() {
    return this.#stream.consumer()
  }
}

/** The result of {@link CoatyClient.request}. */
class Responses {
  #stream

  /** @param {ResponseStream} stream */
  constructor(stream) {
    this.#stream = stream
  }

  get reason() {
    return this.#stream.reason
  }

  get filtered() {
    return this.#stream.isFiltered
  }

  cancel() {
    this.#stream.stop()
  }

  async all() {
    const responses = await this.#stream.all()
    return { responses, reason: this.#stream.reason }
  }

  [Symbol.asyncIterator]() {
    return this.#stream.consumer()
  }
}

/**
 * Returns the address of a gateway's WebSocket.
 *
 * @param {string | URL | undefined} text
 */
function address(text) {
  // Without an address: the gateway that served this file, also behind a proxy that adds a path.
  const url = text === undefined ? new URL("v1/ws", import.meta.url) : new URL(text, globalThis.location?.href)
  url.protocol = url.protocol.replace(/^http/, "ws")
  if (!/^wss?:$/.test(url.protocol)) throw new TypeError(`There is no gateway at ${url}`)
  if (!url.pathname.endsWith("/v1/ws")) url.pathname = url.pathname.replace(/\/*$/, "/v1/ws")
  return url.href
}

/**
 * Parses a message of the gateway.
 *
 * @param {string | ArrayBuffer} message
 * @param {(text: string) => any} parse
 */
function read(message, parse) {
  if (typeof message === "string") {
    const frame = parse(message)
    frame.size = message.length
    return frame
  }
  const bytes = new Uint8Array(message)
  const end = bytes.indexOf(10)
  const frame = parse(new TextDecoder().decode(bytes.subarray(0, end)))
  frame.data.octets = bytes.subarray(end + 1)
  frame.size = bytes.length
  return frame
}

/** The event of a changed state. Not every node has CustomEvent. */
class StateChangeEvent extends Event {
  /** @param {import("./client.js").StateDetail} detail */
  constructor(detail) {
    super("statechange")
    this.detail = detail
  }
}

/** A connection to a gateway; client.d.ts documents each member. */
export class CoatyClient extends EventTarget {
  #url
  #WebSocket
  /** @type {import("./client.js").Token | undefined} */
  #token
  /** @type {"connecting" | "online" | "closed"} */
  #state = "connecting"
  /** @type {WebSocket | undefined} */
  #socket
  /** Number of connections that were begun. */
  #connections = 0
  /** Whether subscriptions are sent on the current connection. */
  #isOpen = false
  #attempts = 0
  #silentChecks = 0
  #lastId = 0
  /** @type {(text: string) => any} */
  #parse
  /** Milliseconds between two checks of the connection. */
  #watchInterval
  #attemptTimeout
  /** Ends the waits for the token function, and for the reason why an attempt failed. */
  #attempt = new AbortController()
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #retryTimer
  /** @type {Timer | undefined} */
  #watchTimer
  /**
   * The id of the ping that must be replied to soon.
   *
   * @type {string | undefined}
   */
  #probe
  /** @type {Timer | undefined} */
  #probeTimer
  /** Whether a message has arrived since the timer was started. */
  #hasHeard = false
  #stopWaking
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #renewalTimer
  /** @type {Map<string, EventStream | ResponseStream>} */
  #streams = new Map()
  /** @type {Map<string, {resolve: (frame: any) => void, reject: (error: any) => void, checks: number}>} */
  #unacknowledged = new Map()
  /**
   * The ids of the subscriptions that the gateway has refused because they came too early, in their order.
   *
   * @type {string[]}
   */
  #early = []
  /** Whether the first of them is sent again and has no reply yet. */
  #isEarlySent = false
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #earlyTimer
  /**
   * The requested name, whether it was granted before, and the token to resume the identity.
   *
   * @type {{name: string, granted: Deferred<any>, isGranted: boolean, resume?: string} | undefined}
   */
  #wantedIdentity
  /** @type {any} */
  #identity
  /** @type {Deferred<undefined>} */
  #whenOnline = new Deferred()
  /** Why the client is closed. */
  #whyClosed = closed

  /**
   * @param {string | URL} [url]
   * @param {import("./client.js").ClientOptions} [options]
   */
  constructor(url, options = {}) {
    super()
    this.#url = address(url)
    this.#WebSocket = options.WebSocket ?? globalThis.WebSocket
    if (!this.#WebSocket) throw new TypeError("There is no WebSocket here: pass one as options.WebSocket")
    this.#token = options.token
    this.#parse = options.exactIntegers ? parseExact : JSON.parse
    this.#watchInterval = time(options.silenceTimeout, usualSilence) / silentChecksUntilLost
    this.#attemptTimeout = time(options.attemptTimeout, usualAttempt)
    this.#connect()
    this.#stopWaking = onWake((isNetworkBack) => this.#wake(isNetworkBack))
  }

  get state() {
    return this.#state
  }

  get identity() {
    return this.#identity
  }

  online() {
    return this.#whenOnline.promise
  }

  close() {
    if (this.#state === "closed") return
    const socket = this.#abandon(closed)
    for (const stream of [...this.#streams.values()]) stream.end("closed")
    socket?.close(1000)
    this.#end()
  }

  // Operations

  /**
   * @param {import("./client.js").Observation} what
   * @param {import("./client.js").SubscribeOptions & {signal?: AbortSignal}} options
   */
  subscribe(what, { signal, ...options } = {}) {
    const stream = new EventStream({ ...what, ...options })
    this.#open(stream, signal, this.#state === "closed" ? this.#whyClosed() : undefined)
    return new Subscription(stream)
  }

  /**
   * @param {import("./client.js").Request} what
   * @param {import("./client.js").RequestOptions & {signal?: AbortSignal}} options
   */
  request(what, { signal, ...options } = {}) {
    const stream = new ResponseStream({ ...what, ...options })
    this.#open(stream, signal, this.#state === "closed" ? this.#whyClosed() : this.#excess(stream.size))
    return new Responses(stream)
  }

  /** @param {import("./client.js").Publication} what */
  async publish(what) {
    return this.#deliver({ ...what, op: "publish" })
  }

  /**
   * @param {import("./client.js").RespondTo} to
   * @param {object} data
   */
  async respond({ event, correlationId }, data) {
    const name = /** @type {Record<string, string>} */ (responseEvents)[event] ?? event
    return this.#deliver({ op: "respond", event: name, correlationId, data })
  }

  /** @param {string} name */
  async identify(name) {
    if (this.#state === "closed") throw this.#whyClosed()
    if (this.#wantedIdentity) throw ownProblem("identified", "Identified", "The client has an identity already.")
    const granted = new Deferred()
    this.#wantedIdentity = { name, granted, isGranted: false }
    // Otherwise when the client is connected.
    if (this.#state === "online") this.#takeIdentity()
    return granted.promise
  }

  /** @param {import("./client.js").Token} token */
  async authenticate(token) {
    if (this.#state === "closed") throw this.#whyClosed()
    if (!this.#isOpen) {
      this.#token = token
      this.#restart("the token has changed")
      return this.online()
    }
    const connection = this.#connections
    const value = await current(token, this.#attemptTimeout, this.#attempt.signal)
    if (value === undefined) throw new TypeError("There is no token")
    if (connection !== this.#connections || !this.#isOpen) throw offline()
    const reply = await this.#ask({ op: "authenticate", token: value })
    this.#token = token
    if (connection === this.#connections) this.#planRenewal(reply)
  }

  /** Returns why nothing can be sent now; undefined if it can. */
  #refusal() {
    if (this.#state === "closed") return this.#whyClosed()
    return this.#state === "online" ? this.#excess() : offline()
  }

  /**
   * Returns a refusal if too many bytes are queued for the network.
   *
   * @param {number} [size] bytes of a request, which waits if the client is not online
   */
  #excess(size = 0) {
    let queued = this.#socket?.bufferedAmount ?? 0
    if (this.#state !== "online") {
      queued += size
      for (const stream of this.#streams.values()) if (stream instanceof ResponseStream && !stream.isSent) queued += stream.size
    }
    if (queued > maximumUnsentBytes) return busy("Too many bytes are queued for the network.")
  }

  /** @param {any} frame */
  async #deliver(frame) {
    const refusal = this.#refusal()
    if (refusal) throw refusal
    const { deferred } = await this.#ask(frame)
    return { deferred }
  }

  /**
   * Sends a frame that gets one reply.
   *
   * @param {any} frame
   * @returns {Promise<any>}
   */
  #ask(frame) {
    return new Promise((resolve, reject) => {
      if (this.#unacknowledged.size >= maximumUnacknowledged) throw busy("Too many frames are not acknowledged yet.")
      const id = this.#newId()
      this.#send({ ...frame, id })
      this.#unacknowledged.set(id, { resolve, reject, checks: 0 })
    })
  }

  /**
   * @param {EventStream | ResponseStream} stream
   * @param {AbortSignal | undefined} signal
   * @param {GatewayError | undefined} refusal
   */
  #open(stream, signal, refusal) {
    if (signal?.aborted) return stream.stop()
    if (this.#streams.size >= maximumStreams) {
      refusal ??= busy(`A connection has at most ${maximumStreams} subscriptions and requests.`)
    }
    if (refusal) return stream.end("error", { error: refusal })
    const id = this.#newId()
    const abort = () => stream.stop()
    signal?.addEventListener("abort", abort)
    stream.onEnd = (isWish) => {
      signal?.removeEventListener("abort", abort)
      this.#streams.delete(id)
      // The gateway replies to this too; the reply is ignored.
      const isSent = stream instanceof ResponseStream ? stream.isSent : this.#isOpen
      if (isSent && (isWish || stream.reason === "overflow")) this.#send({ ...stream.ending(), id })
    }
    this.#streams.set(id, stream)
    // A request waits for the identity, too.
    if (stream instanceof ResponseStream ? this.#state === "online" : this.#isOpen) this.#send({ ...stream.beginning(), id })
    else if (stream instanceof ResponseStream) stream.wait()
  }

  #newId() {
    return String(++this.#lastId)
  }

  /** @param {any} frame */
  #send(frame) {
    this.#socket?.send(stringifyExact(frame))
  }

  // The connection

  #connect() {
    this.#connections += 1
    this.#attempt.abort()
    this.#attempt = new AbortController()
    if (typeof this.#token === "function") this.#connectWithToken(this.#connections)
    else this.#openSocket(this.#token)
  }

  /** @param {number} connection */
  async #connectWithToken(connection) {
    // Before the connection opens: the gateway waits only 10 seconds for the token.
    try {
      const token = await current(this.#token, this.#attemptTimeout, this.#attempt.signal)
      if (connection === this.#connections) this.#openSocket(token)
    } catch (error) {
      if (connection === this.#connections) this.#retry(`there is no token: ${/** @type {any} */ (error)?.message ?? error}`)
    }
  }

  /** @param {string | undefined} token */
  #openSocket(token) {
    const socket = new this.#WebSocket(this.#url, "coaty.v1")
    socket.binaryType = "arraybuffer"
    this.#socket = socket
    this.#silentChecks = 0
    let hasOpened = false
    const whileCurrent = (/** @type {(event: any) => void} */ act) => (/** @type {any} */ event) => {
      if (socket === this.#socket) act(event)
    }
    socket.addEventListener("open", whileCurrent(() => {
      hasOpened = true
      this.#watch()
      this.#opened(token)
    }))
    socket.addEventListener("message", whileCurrent((event) => this.#received(event.data)))
    socket.addEventListener("close", whileCurrent(({ code, reason }) => {
      const why = reason || `close code ${code}`
      if (isFinal(code)) return this.#refused(why)
      this.#retry(why, requestedDelay(reason))
      if (!hasOpened) this.#askWhy()
    }))
    // A close follows; without a listener node ends the process.
    socket.addEventListener("error", () => {})
    this.#watchTimer = new Timer(() => this.#giveUp("the gateway does not answer"), this.#attemptTimeout)
  }

  /** @param {string | undefined} token */
  async #opened(token) {
    if (token !== undefined && !(await this.#isAuthenticated(token))) return
    // The identity comes first, so that no answer to an observed event is published under another one.
    if (this.#wantedIdentity) this.#takeIdentity()
    else this.#begin()
  }

  /**
   * Authenticates the new connection.
   *
   * @param {string} token
   * @returns {Promise<boolean>} false if the connection is over
   */
  async #isAuthenticated(token) {
    const socket = this.#socket
    try {
      const reply = await this.#ask({ op: "authenticate", token })
      if (socket === this.#socket) this.#planRenewal(reply)
      return socket === this.#socket
    } catch (error) {
      if (socket !== this.#socket) return false
      const { message } = /** @type {Error} */ (error)
      if (isNotYetValid(error)) {
        // It asks for a token again before that, because there may be another one.
        this.#giveUp(message, Math.min(/** @type {any} */ (error).retryAfter ?? longestDelay, longestDelay))
      } else if (isRefusal(error)) {
        this.#refused(message)
        socket?.close()
      } else {
        this.#giveUp(message)
      }
      return false
    }
  }

  /**
   * Renews the token before it expires, if it does and the client can get another one.
   *
   * @param {{validFor?: number}} reply of the gateway to the token
   */
  #planRenewal({ validFor }) {
    clearTimeout(this.#renewalTimer)
    if (validFor === undefined || typeof this.#token !== "function") return
    // By the time that is left: the clocks of the client and the gateway may differ.
    const delay = Math.max(shortestRenewal, Math.min(validFor * renewalShare, validFor - renewalMargin))
    this.#renewalTimer = setTimeout(() => this.#renew(0), Math.min(delay, longestTimer))
  }

  /** @param {number} failures */
  async #renew(failures) {
    const connection = this.#connections
    try {
      const token = await current(this.#token, this.#attemptTimeout, this.#attempt.signal)
      if (connection !== this.#connections || token === undefined) return
      const reply = await this.#ask({ op: "authenticate", token })
      if (connection === this.#connections) this.#planRenewal(reply)
    } catch {
      // The connection keeps the former token. When that has expired, the gateway closes it, and the client connects with a new one.
      if (connection !== this.#connections) return
      this.#renewalTimer = setTimeout(() => this.#renew(failures + 1), Math.max(shortestRenewal, retryDelay(failures)))
    }
  }

  /** @returns {Promise<void>} */
  async #takeIdentity() {
    const wanted = this.#wantedIdentity
    const socket = this.#socket
    if (!wanted) return
    try {
      const { identity, resume } = await this.#ask({ op: "identify", name: wanted.name, resume: wanted.resume })
      wanted.isGranted = true
      wanted.resume = resume
      this.#identity = identity
      wanted.granted.resolve(identity)
      this.#begin()
    } catch (error) {
      if (socket !== this.#socket) return
      if (wanted.resume && [400, 404].includes(/** @type {any} */ (error).status)) {
        // The gateway was restarted, or has an older version.
        wanted.resume = undefined
        return this.#takeIdentity()
      }
      if (wanted.isGranted) {
        // It was granted before: nothing is published under another identity. Subscriptions continue.
        this.#retryTimer = setTimeout(() => this.#takeIdentity(), this.#delay())
      } else {
        this.#wantedIdentity = undefined
        wanted.granted.reject(error)
      }
      this.#begin()
    }
  }

  /** Sends all subscriptions on the new connection, and with the identity the requests that wait. */
  #begin() {
    const send = (/** @type {boolean} */ areRequests) => {
      for (const [id, stream] of this.#streams) {
        if (stream instanceof ResponseStream === areRequests) this.#send({ ...stream.beginning(), id })
      }
    }
    if (!this.#isOpen) {
      this.#isOpen = true
      send(false)
    }
    if (this.#state === "online" || (this.#wantedIdentity && !this.#identity)) return
    send(true)
    this.#whenOnline.resolve(undefined)
    this.#change("online")
  }

  /** @param {string | ArrayBuffer} message */
  #received(message) {
    this.#silentChecks = 0
    this.#hasHeard = true
    let frame
    try {
      frame = read(message, this.#parse)
    } catch {
      return
    }
    if (this.#probe !== undefined && frame.id === this.#probe) return this.#endProbe()
    const stream = this.#streams.get(frame.id)
    if (frame.op === "error" && isTooEarly(frame) && stream instanceof EventStream) return this.#postpone(frame)
    if (frame.id === this.#early[0] && (frame.op === "ok" || frame.op === "error")) {
      this.#early.shift()
      this.#isEarlySent = false
      this.#sendEarly()
    }
    if (stream) return stream.received(frame)
    const asked = this.#unacknowledged.get(frame.id)
    if (!asked) return
    this.#unacknowledged.delete(frame.id)
    if (frame.op === "error") asked.reject(new GatewayError(frame))
    else asked.resolve(frame)
  }

  /**
   * Sends a subscription again when the gateway allows it.
   *
   * @param {{id: string, retryAfter: number}} refusal
   */
  #postpone({ id, retryAfter }) {
    if (id === this.#early[0]) this.#isEarlySent = false
    if (!this.#early.includes(id)) this.#early.push(id)
    this.#earlyTimer ??= setTimeout(() => {
      this.#earlyTimer = undefined
      this.#sendEarly()
    }, Math.min(retryAfter, longestTimer))
  }

  /** Sends the first of the subscriptions that came too early. The others follow one by one: the gateway would refuse most of them. */
  #sendEarly() {
    if (this.#isEarlySent || this.#earlyTimer !== undefined) return
    for (; this.#early.length > 0; this.#early.shift()) {
      const id = this.#early[0]
      const stream = this.#streams.get(id)
      if (!stream) continue
      this.#isEarlySent = true
      return this.#send({ ...stream.beginning(), id })
    }
  }

  #watch() {
    this.#watchTimer?.cancel()
    this.#watchTimer = new Timer((wasLate) => this.#check(wasLate), this.#watchInterval)
  }

  /**
   * Detects a dead connection that was not closed.
   *
   * @param {boolean} wasLate whether the process or the page was suspended
   */
  #check(wasLate) {
    this.#silentChecks += 1
    const hasOpened = this.#socket?.readyState === 1
    if (!hasOpened || this.#silentChecks >= silentChecksUntilLost) return this.#giveUp("the gateway does not answer")
    if (this.#silentChecks === silentChecksUntilPing) this.#send({ op: "ping", id: this.#newId() })
    this.#expireUnanswered()
    if (wasLate) this.#sendProbe()
    // A connection that lasts resets the delay.
    if (this.#isOpen) this.#attempts = 0
    this.#watch()
  }

  /** Sends a ping, and gives the connection up if nothing arrives soon. */
  #sendProbe() {
    if (this.#probe !== undefined) return
    this.#probe = this.#newId()
    this.#send({ op: "ping", id: this.#probe })
    this.#awaitReply()
  }

  #awaitReply() {
    this.#hasHeard = false
    this.#probeTimer = new Timer(() => {
      // The reply comes after what was queued before it.
      if (this.#hasHeard) this.#awaitReply()
      else this.#giveUp("the gateway does not answer")
    }, Math.min(longestProbe, this.#watchInterval))
  }

  #endProbe() {
    this.#probe = undefined
    this.#probeTimer?.cancel()
  }

  /** Ends what has had no reply for too long: the gateway refuses frames that it cannot read without an id. */
  #expireUnanswered() {
    // They may not have been sent yet.
    if ((this.#socket?.bufferedAmount ?? 0) > 0) return
    for (const [id, asked] of [...this.#unacknowledged]) {
      if (++asked.checks <= checksUntilUnanswered) continue
      this.#unacknowledged.delete(id)
      asked.reject(unanswered())
    }
    for (const stream of [...this.#streams.values()]) {
      if (!(stream instanceof ResponseStream) || stream.checks === undefined || ++stream.checks <= checksUntilUnanswered) continue
      stream.end("error", { isWish: true, error: unanswered() })
    }
  }

  /**
   * @param {string} reason
   * @param {number} [requested] when to connect again, in milliseconds
   */
  #giveUp(reason, requested) {
    const socket = this.#socket
    this.#retry(reason, requested)
    socket?.close()
    // The WebSocket of node would wait for the other side, and keep the process alive.
    if (socket && "terminate" in socket) /** @type {any} */ (socket).terminate()
  }

  /**
   * @param {string} reason
   * @param {number} [requested] when the gateway asks the client to connect again, in milliseconds
   */
  #retry(reason, requested) {
    this.#abandon(() => disconnected(reason))
    for (const stream of [...this.#streams.values()]) stream.disconnected()
    const delay = requested ?? this.#delay()
    this.#retryTimer = setTimeout(() => this.#connect(), delay)
    if (this.#state === "online") this.#whenOnline = new Deferred()
    this.#change("connecting", { reason, delay })
  }

  /**
   * Ends the client if the gateway refuses the page. A browser hides from a page why a handshake failed, but lets it read the same
   * refusal of another request. The client meanwhile waits for the next attempt, which ends the question.
   */
  async #askWhy() {
    // Only pages have an origin.
    if (!globalThis.location || globalThis.navigator?.onLine === false) return
    const connection = this.#connections
    const attempt = this.#attempt = new AbortController()
    const url = new URL(this.#url.replace(/^ws/, "http"))
    url.pathname = url.pathname.replace(/ws$/, "access")
    url.search = url.hash = ""
    try {
      const request = fetch(url, { credentials: "omit", cache: "no-store", signal: attempt.signal })
      const response = await within(request, this.#attemptTimeout, "The gateway", attempt.signal)
      if (response.status !== 403 && response.status !== 421) return
      const problem = await refusal(response, attempt.signal)
      if (connection !== this.#connections || !pageRefusals.includes(problem.type)) return
      // The gateway checks the host of requests without a token only.
      if (problem.status === 421 && this.#token !== undefined) return
      this.#refused(problem.message, problem)
    } catch {
      // The next attempt may show more.
    } finally {
      attempt.abort()
    }
  }

  /**
   * Ends the client, because the gateway refuses it.
   *
   * @param {string} reason
   * @param {GatewayError} [problem] the refusal of the page
   */
  #refused(reason, problem) {
    this.#whyClosed = () => problem ? new GatewayError(problem) : refused(reason)
    this.#abandon(() => disconnected(reason))
    for (const stream of [...this.#streams.values()]) stream.end("error", { error: this.#whyClosed() })
    this.#end({ reason, problem: this.#whyClosed() })
  }

  /** @param {{reason?: string, problem?: GatewayError}} [why] */
  #end(why) {
    this.#stopWaking()
    this.#wantedIdentity?.granted.reject(this.#whyClosed())
    if (this.#state === "online") this.#whenOnline = new Deferred()
    this.#whenOnline.reject(this.#whyClosed())
    this.#change("closed", why)
  }

  /**
   * Abandons the connection.
   *
   * @param {() => GatewayError} error rejects what has no reply yet
   */
  #abandon(error) {
    const socket = this.#socket
    this.#socket = undefined
    this.#connections += 1
    this.#isOpen = false
    this.#identity = undefined
    clearTimeout(this.#retryTimer)
    clearTimeout(this.#renewalTimer)
    clearTimeout(this.#earlyTimer)
    this.#earlyTimer = undefined
    this.#early = []
    this.#isEarlySent = false
    this.#watchTimer?.cancel()
    this.#endProbe()
    this.#attempt.abort()
    for (const { reject } of this.#unacknowledged.values()) reject(error())
    this.#unacknowledged.clear()
    return socket
  }

  #delay() {
    return retryDelay(this.#attempts++)
  }

  /** @param {boolean} isNetworkBack */
  #wake(isNetworkBack) {
    if (this.#isOpen) this.#sendProbe()
    else if (isNetworkBack) this.#restart("the network has changed")
  }

  /**
   * Connects at once.
   *
   * @param {string} reason
   */
  #restart(reason) {
    const socket = this.#abandon(() => disconnected(reason))
    this.#attempts = 0
    this.#connect()
    socket?.close()
  }

  /**
   * @param {"connecting" | "online" | "closed"} state
   * @param {{reason?: string, delay?: number, problem?: GatewayError}} [why]
   */
  #change(state, why = {}) {
    this.#state = state
    this.dispatchEvent(new StateChangeEvent({ state, ...why }))
  }
}

/**
 * Returns where a gateway issues tickets for a stream.
 *
 * @param {URL} stream
 */
function ticketsUrl(stream) {
  const url = new URL(stream)
  url.protocol = stream.protocol.replace(/^ws/, "http")
  url.pathname = stream.pathname.replace(/\/v1\/(?:sse|ws)(?:\/[^/]*)?$/, "/v1/tickets")
  url.search = url.hash = ""
  if (url.pathname === stream.pathname) throw new TypeError(`There is no stream of a gateway at ${stream}`)
  return url
}

/**
 * Returns the address of a stream with a ticket; client.d.ts documents it.
 *
 * @param {string | URL} stream
 * @param {import("./client.js").Token} [token]
 */
export async function ticketUrl(stream, token) {
  const url = new URL(stream, globalThis.location?.href)
  const tickets = ticketsUrl(url)
  const value = await current(token)
  if (value === undefined) return url.href
  const headers = { "content-type": "application/json", authorization: `Bearer ${value}` }
  const attempt = new AbortController()
  try {
    const request = fetch(tickets, { method: "POST", headers, credentials: "omit", signal: attempt.signal })
    const response = await within(request, usualAttempt, "The gateway")
    if (!response.ok) throw await refusal(response)
    const { ticket } = await within(response.json(), usualAttempt, "The gateway")
    url.searchParams.set("ticket", ticket)
    return url.href
  } catch (error) {
    attempt.abort()
    throw error
  }
}

/**
 * Returns a refused request's problem, which may be one of a proxy.
 *
 * @param {Response} response
 * @param {AbortSignal} [signal] ends the wait for the body
 * @returns {Promise<GatewayError>}
 */
async function refusal(response, signal) {
  const { status, statusText, headers } = response
  const isJSON = /\bjson\b/.test(headers.get("content-type") ?? "")
  const answer = isJSON ? await within(response.json(), usualAttempt, "The gateway", signal).catch(() => ({})) : {}
  const retryAfter = answer?.retryAfter ?? waitOf(headers.get("retry-after"))
  return new GatewayError({ type: "about:blank", title: statusText || `Status ${status}`, ...answer, status, retryAfter })
}

/** Returns the milliseconds of a header field `Retry-After`, which has seconds or a date; undefined without one. */
function waitOf(/** @type {string | null} */ field) {
  if (field === null) return undefined
  const wait = /^\d+$/.test(field) ? Number(field) * 1000 : Date.parse(field) - Date.now()
  return Number.isNaN(wait) ? undefined : Math.max(0, wait)
}

/** Parses text/event-stream (HTML Standard, 9.2.6). */
class EventStreamParser {
  #line = ""
  #endsWithCR = false
  #type = ""
  /** @type {string[]} */
  #data = []
  #length = 0
  #id
  #handlers

  /**
   * @param {string} id the last event's id
   * @param {{event: (type: string, data: string, id: string) => void, retry: (delay: number) => void}} handlers
   */
  constructor(id, handlers) {
    this.#id = id
    this.#handlers = handlers
  }

  /**
   * @param {string} text the next part of the stream
   * @throws GatewayError if an event is too long
   */
  push(text) {
    if (text === "") return
    const lines = text.slice(this.#endsWithCR && text[0] === "\n" ? 1 : 0).split(/\r\n|\n|\r/)
    this.#endsWithCR = text.endsWith("\r")
    lines[0] = this.#line + lines[0]
    this.#line = lines.pop() ?? ""
    for (const line of lines) this.#take(line)
    if (this.#length + this.#line.length > maximumEventLength) {
      throw ownProblem("too-large", "Too large", `An event has more than ${maximumEventLength} characters.`)
    }
  }

  /** @param {string} line */
  #take(line) {
    if (line === "") return this.#end()
    const colon = line.indexOf(":")
    const field = colon < 0 ? line : line.slice(0, colon)
    const value = colon < 0 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1)
    // A comment, such as a heartbeat, has no field.
    switch (field) {
      case "event":
        this.#type = value
        break
      case "data":
        this.#data.push(value)
        this.#length += value.length
        break
      case "id":
        if (!value.includes("\0")) this.#id = value
        break
      case "retry":
        if (/^\d+$/.test(value)) this.#handlers.retry(Number(value))
        break
    }
  }

  #end() {
    const type = this.#type || "message"
    const data = this.#data
    this.#type = ""
    this.#data = []
    this.#length = 0
    if (data.length > 0) this.#handlers.event(type, data.join("\n"), this.#id)
  }
}

/** An event stream that reconnects; client.d.ts documents each member. */
export class CoatyEventSource extends EventTarget {
  #url
  #token
  #silenceTimeout
  #attemptTimeout
  /** @type {0 | 1 | 2} */
  #readyState = 0
  /** @type {import("./client.js").StreamResponse | undefined} */
  #response
  /**
   * Aborts the current connection; undefined between two attempts.
   *
   * @type {AbortController | undefined}
   */
  #connection
  #attempts = 0
  /** When the current connection was opened, and when something has arrived last, in milliseconds. */
  #opened = 0
  #lastSign = 0
  /**
   * When the gateway that stops asks the client to connect again, in milliseconds.
   *
   * @type {number | undefined}
   */
  #requestedDelay
  #isDelayRequested = false
  #lastEventId = ""
  /** Whether a connection has begun before. */
  #hasBegun = false
  /** Whether the latest token was refused. */
  #isTokenRefused = false
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #retryTimer
  /** @type {Timer | undefined} */
  #watchTimer
  #stopWaking

  /**
   * @param {string | URL} url
   * @param {import("./client.js").EventSourceOptions} [options]
   */
  constructor(url, options = {}) {
    super()
    this.#url = new URL(url, globalThis.location?.href)
    ticketsUrl(this.#url)
    this.#token = options.token
    this.#silenceTimeout = time(options.silenceTimeout, usualSilence)
    this.#attemptTimeout = time(options.attemptTimeout, usualAttempt)
    this.#stopWaking = onWake((isNetworkBack) => this.#wake(isNetworkBack))
    this.#connect()
  }

  get url() {
    return this.#url.href
  }

  get readyState() {
    return this.#readyState
  }

  get response() {
    return this.#response
  }

  close() {
    this.#readyState = 2
    this.#stopWaking()
    this.#abandon()
  }

  #abandon() {
    const connection = this.#connection
    this.#connection = undefined
    clearTimeout(this.#retryTimer)
    this.#watchTimer?.cancel()
    connection?.abort()
  }

  async #connect() {
    const connection = new AbortController()
    this.#connection = connection
    this.#opened = 0
    let failure
    try {
      const token = await current(this.#token, this.#attemptTimeout, connection.signal)
      failure = await this.#receive(connection, await this.#request(token, connection.signal))
    } catch (error) {
      failure = error
    }
    if (connection === this.#connection) this.#failed(failure)
  }

  /**
   * @param {string | undefined} token
   * @param {AbortSignal} signal
   */
  async #request(token, signal) {
    /** @type {Record<string, string>} */
    const headers = { accept: "text/event-stream" }
    if (token !== undefined) headers.authorization = `Bearer ${token}`
    if (this.#lastEventId) headers["last-event-id"] = this.#lastEventId
    try {
      return await within(fetch(this.#url, { headers, cache: "no-store", signal }), this.#attemptTimeout, "The gateway", signal)
    } catch (error) {
      if (error instanceof GatewayError) throw error
      // A browser does not tell why; it may be an answer of a proxy without the fields that let a page of another origin read it.
      const { message, cause } = /** @type {any} */ (error)
      throw ownProblem("disconnected", "Disconnected", `The gateway can't be reached (${cause?.message || message}).`)
    }
  }

  /**
   * Dispatches what arrives, until the stream ends.
   *
   * @param {AbortController} connection
   * @param {Response} response
   * @returns {Promise<GatewayError>} why it ended
   */
  async #receive(connection, response) {
    const { status, statusText, headers, body } = response
    this.#response = { status, statusText, headers }
    if (status !== 200) return refusal(response, connection.signal)
    if (!body || !/^text\/event-stream\b/i.test(headers.get("content-type") ?? "")) {
      return ownProblem("no-stream", "No stream", "The answer is not an event stream. A proxy or a login page may have sent it.")
    }
    this.#readyState = 1
    this.#isTokenRefused = false
    this.#opened = this.#lastSign = performance.now()
    this.#watch(this.#silenceTimeout)
    const canResume = this.#lastEventId !== "" || this.#url.searchParams.has("since")
    /** @type {GatewayError | undefined} */
    let problem
    const parser = new EventStreamParser(this.#lastEventId, {
      retry: (delay) => { this.#requestedDelay = Math.min(delay, longestRequestedDelay) },
      event: (type, data, id) => {
        // A listener may have closed it.
        if (connection !== this.#connection) return
        this.#lastEventId = id
        if (type === "problem") problem = problemOf(data)
        this.#dispatch(type, data)
        if (type !== "ok" || connection !== this.#connection) return
        // Without a cursor the stream starts again, and changes in between are unknown.
        if (this.#hasBegun && !canResume) this.#dispatch("gap", '{"op":"gap","dropped":null,"where":"client"}')
        this.#hasBegun = true
      },
    })
    this.dispatchEvent(new Event("open"))
    const decoder = new TextDecoder()
    const reader = body.getReader()
    try {
      while (connection === this.#connection) {
        const { value, done } = await reader.read()
        if (done) break
        this.#lastSign = performance.now()
        parser.push(decoder.decode(value, { stream: true }))
      }
    } catch (error) {
      if (error instanceof GatewayError) throw error
    }
    return problem ?? ownProblem("disconnected", "Disconnected", "The event stream has ended.")
  }

  /**
   * @param {string} type
   * @param {string} data
   */
  #dispatch(type, data) {
    this.dispatchEvent(new MessageEvent(type, { data, lastEventId: this.#lastEventId, origin: this.#url.origin }))
  }

  /**
   * Gives the connection up if nothing arrives.
   *
   * @param {number} limit milliseconds after the last arrival; the gateway sends heartbeats
   */
  #watch(limit) {
    this.#watchTimer?.cancel()
    const sign = this.#lastSign
    const rest = sign + limit - performance.now()
    this.#watchTimer = new Timer(() => {
      if (this.#lastSign !== sign) this.#watch(this.#silenceTimeout)
      else this.#failed(ownProblem("disconnected", "Disconnected", "The gateway has sent no heartbeat."))
    }, Math.max(rest, readingTime))
  }

  /** @param {boolean} isNetworkBack */
  #wake(isNetworkBack) {
    if (this.#readyState === 1) return this.#watch(Math.min(this.#silenceTimeout, heartbeatInterval + heartbeatDelay))
    if (!isNetworkBack || this.#isDelayRequested) return
    this.#abandon()
    this.#attempts = 0
    this.#connect()
  }

  /** @param {any} error */
  #failed(error) {
    const wasTokenRefused = this.#isTokenRefused
    this.#isTokenRefused = error instanceof GatewayError && error.status === 401 && !isNotYetValid(error)
    // A function may return another token.
    const isTokenUseless = this.#isTokenRefused && (wasTokenRefused || typeof this.#token !== "function")
    /** @type {number | undefined} */
    let delay
    if (isLasting(error) || isTokenUseless || error?.type === "urn:coaty-client:problem:too-large") {
      this.close()
    } else {
      this.#abandon()
      this.#readyState = 0
      if (this.#opened > 0 && performance.now() - this.#opened >= steadyTime) this.#attempts = 0
      const limit = isNotYetValid(error) ? longestDelay : longestRetryAfter
      const wait = error?.retryAfter > 0 ? Math.min(error.retryAfter, limit) : this.#requestedDelay
      this.#isDelayRequested = wait !== undefined
      delay = Math.max(wait ?? 0, retryDelay(this.#attempts++))
      this.#requestedDelay = undefined
      this.#retryTimer = setTimeout(() => {
        this.#isDelayRequested = false
        this.#connect()
      }, delay)
    }
    this.dispatchEvent(Object.assign(new Event("error"), { error, delay }))
  }
}

/** Returns the problem of a frame `problem`; undefined if it can't be read. */
function problemOf(/** @type {string} */ data) {
  try {
    return new GatewayError(JSON.parse(data))
  } catch {
    return undefined
  }
}
