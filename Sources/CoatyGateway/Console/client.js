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
/** Maximum bytes queued for the network. Beyond it publications, answers and requests are refused. */
const maximumUnsentBytes = 8 * 1024 * 1024

/** Milliseconds before the first attempt to reconnect; the delay doubles up to the longest one. */
const firstDelay = 250
const longestDelay = 10_000
/** The longest delay that a gateway can ask for. */
const longestRequestedDelay = 60_000
/** Milliseconds between two checks of the connection. A connection that is not open at the first check is given up. */
const watchInterval = 10_000
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

/** Whether a new connection would end in the same way. */
const isFinal = (/** @type {number} */ code) => code >= 4500 && code <= 4999
/** Whether a problem, or a frame with one, asks the client to come later. */
const isTooEarly = (/** @type {any} */ problem) =>
  problem.type === "urn:coaty-gateway:problem:rate-limited" && problem.retryAfter > 0
/** Whether the gateway would refuse a token again. */
const isRefusal = (/** @type {any} */ error) =>
  error instanceof GatewayError && error.status >= 400 && error.status < 500 && !isTooEarly(error)

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

const offline = () => ownProblem("offline", "Offline", "The client is not online.")
const closed = () => ownProblem("closed", "Closed", "The client has been closed.")
const refused = (/** @type {string} */ why) =>
  ownProblem("refused", "Refused", `The gateway has closed the connection (${why}). A new connection would end in the same way.`)
const ended = () => ownProblem("ended", "Ended", "The subscription ended before it began.")
const disconnected = (/** @type {string} */ why) =>
  ownProblem("disconnected", "Disconnected", `The connection was lost (${why}) before the gateway answered. It may have acted.`)
const unanswered = () =>
  ownProblem("unanswered", "Unanswered", "The gateway did not answer. It refuses frames that it cannot read without naming their id.")
const busy = (/** @type {string} */ detail) => ownProblem("busy", "Busy", detail)

/**
 * Returns the current token.
 *
 * @param {import("./client.js").Token | undefined} token
 * @returns {Promise<string | undefined>}
 */
async function current(token) {
  const value = typeof token === "function" ? await token() : token
  if (value === undefined || typeof value === "string") return value
  throw new TypeError("A token is a string")
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
    // A copy, because it is sent again after a reconnect; values that JSON cannot represent throw here.
    this.members = JSON.parse(JSON.stringify(members))
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

/** A request. It ends with its connection. */
class ResponseStream extends Stream {
  /** Number of checks since it was sent; undefined once the gateway has acknowledged it. */
  checks = /** @type {number | undefined} */ (0)
  /** Whether the gateway withheld responses. */
  isFiltered = false

  beginning() {
    return { ...this.members, op: "request" }
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
    this.end("disconnected")
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
 */
function read(message) {
  if (typeof message === "string") {
    const frame = JSON.parse(message)
    frame.size = message.length
    return frame
  }
  const bytes = new Uint8Array(message)
  const end = bytes.indexOf(10)
  const frame = JSON.parse(new TextDecoder().decode(bytes.subarray(0, end)))
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
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #retryTimer
  /** @type {ReturnType<typeof setInterval> | undefined} */
  #watchTimer
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
    this.#connect()
    globalThis.addEventListener?.("online", this.#networkIsBack)
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
    this.#open(stream, signal, this.#refusal())
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
    const value = await current(token)
    if (value === undefined) throw new TypeError("There is no token")
    if (connection !== this.#connections || !this.#isOpen) throw offline()
    const reply = await this.#ask({ op: "authenticate", token: value })
    this.#token = token
    if (connection === this.#connections) this.#planRenewal(reply)
  }

  /** Returns why nothing can be sent now; undefined if it can. */
  #refusal() {
    if (this.#state === "closed") return this.#whyClosed()
    if (this.#state !== "online") return offline()
    if ((this.#socket?.bufferedAmount ?? 0) > maximumUnsentBytes) return busy("Too many bytes are queued for the network.")
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
      if (this.#isOpen && (isWish || stream.reason === "overflow")) this.#send({ ...stream.ending(), id })
    }
    this.#streams.set(id, stream)
    if (this.#isOpen) this.#send({ ...stream.beginning(), id })
  }

  #newId() {
    return String(++this.#lastId)
  }

  /** @param {any} frame */
  #send(frame) {
    this.#socket?.send(JSON.stringify(frame))
  }

  // The connection

  #connect() {
    this.#connections += 1
    if (typeof this.#token === "function") this.#connectWithToken(this.#connections)
    else this.#openSocket(this.#token)
  }

  /** @param {number} connection */
  async #connectWithToken(connection) {
    // Before the connection opens: the gateway waits only 10 seconds for the token.
    try {
      const token = await current(this.#token)
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
    const whileCurrent = (/** @type {(event: any) => void} */ act) => (/** @type {any} */ event) => {
      if (socket === this.#socket) act(event)
    }
    socket.addEventListener("open", whileCurrent(() => this.#opened(token)))
    socket.addEventListener("message", whileCurrent((event) => this.#received(event.data)))
    socket.addEventListener("close", whileCurrent(({ code, reason }) => {
      const why = reason || `close code ${code}`
      if (isFinal(code)) this.#refused(why)
      else this.#retry(why, requestedDelay(reason))
    }))
    // A close follows; without a listener node ends the process.
    socket.addEventListener("error", () => {})
    this.#watchTimer = setInterval(() => this.#check(), watchInterval)
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
      if (isRefusal(error)) {
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
      const token = await current(this.#token)
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

  /** Sends all subscriptions on the new connection. */
  #begin() {
    if (!this.#isOpen) {
      this.#isOpen = true
      for (const [id, stream] of this.#streams) this.#send({ ...stream.beginning(), id })
    }
    if (this.#state === "online" || (this.#wantedIdentity && !this.#identity)) return
    this.#whenOnline.resolve(undefined)
    this.#change("online")
  }

  /** @param {string | ArrayBuffer} message */
  #received(message) {
    this.#silentChecks = 0
    let frame
    try {
      frame = read(message)
    } catch {
      return
    }
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

  /** Detects a dead connection that was not closed. */
  #check() {
    this.#silentChecks += 1
    const hasOpened = this.#socket?.readyState === 1
    if (!hasOpened || this.#silentChecks >= silentChecksUntilLost) return this.#giveUp("the gateway does not answer")
    if (this.#silentChecks === silentChecksUntilPing) this.#send({ op: "ping", id: this.#newId() })
    this.#expireUnanswered()
    // A connection that lasts resets the delay.
    if (this.#isOpen) this.#attempts = 0
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

  /** @param {string} reason */
  #giveUp(reason) {
    const socket = this.#socket
    this.#retry(reason)
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
   * Ends the client, because the gateway refuses it.
   *
   * @param {string} reason
   */
  #refused(reason) {
    this.#whyClosed = () => refused(reason)
    this.#abandon(() => disconnected(reason))
    for (const stream of [...this.#streams.values()]) stream.end("error", { error: this.#whyClosed() })
    this.#end(reason)
  }

  /** @param {string} [reason] */
  #end(reason) {
    globalThis.removeEventListener?.("online", this.#networkIsBack)
    this.#wantedIdentity?.granted.reject(this.#whyClosed())
    if (this.#state === "online") this.#whenOnline = new Deferred()
    this.#whenOnline.reject(this.#whyClosed())
    this.#change("closed", reason === undefined ? {} : { reason })
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
    clearInterval(this.#watchTimer)
    for (const { reject } of this.#unacknowledged.values()) reject(error())
    this.#unacknowledged.clear()
    return socket
  }

  #delay() {
    return retryDelay(this.#attempts++)
  }

  /** The browser reports that the network is back. */
  #networkIsBack = () => {
    if (this.#state === "connecting" && !this.#isOpen) this.#restart("the network has changed")
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
   * @param {{reason?: string, delay?: number}} [why]
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
  const response = await fetch(tickets, { method: "POST", headers, credentials: "omit" })
  const answer = await response.json().catch(() => ({}))
  if (!response.ok) {
    const { status, statusText } = response
    throw new GatewayError({ type: "about:blank", title: statusText || "Refused", ...answer, status })
  }
  url.searchParams.set("ticket", answer.ticket)
  return url.href
}

/** An event source that gets a ticket for each connection; client.d.ts documents each member. */
export class CoatyEventSource extends EventTarget {
  #url
  #token
  #EventSource
  /** @type {EventSource | undefined} */
  #source
  #isClosed = false
  #attempts = 0
  // When the gateway has asked the client to connect again: because it stops, or because the client came too early.
  /** @type {number | undefined} */
  #requestedDelay
  #lastEventId = ""
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #retryTimer

  /**
   * @param {string | URL} url
   * @param {import("./client.js").EventSourceOptions} [options]
   */
  constructor(url, options = {}) {
    super()
    this.#url = new URL(url, globalThis.location?.href)
    ticketsUrl(this.#url)
    this.#token = options.token
    this.#EventSource = options.EventSource ?? globalThis.EventSource
    if (!this.#EventSource) throw new TypeError("There is no EventSource here: pass one as options.EventSource")
    this.#connect()
  }

  get url() {
    return this.#url.href
  }

  /** @returns {0 | 1 | 2} */
  get readyState() {
    return this.#isClosed ? 2 : this.#source?.readyState === 1 ? 1 : 0
  }

  close() {
    this.#isClosed = true
    clearTimeout(this.#retryTimer)
    this.#source?.close()
  }

  async #connect() {
    let url
    try {
      const stream = new URL(this.#url)
      if (this.#lastEventId) stream.searchParams.set("since", this.#lastEventId)
      url = await ticketUrl(stream, this.#token)
    } catch (error) {
      if (isTooEarly(error)) this.#requestedDelay = Math.min(/** @type {any} */ (error).retryAfter, longestTimer)
      return this.#failed(error, isRefusal(error))
    }
    if (this.#isClosed) return
    const source = new this.#EventSource(url)
    this.#source = source
    source.addEventListener("open", () => {
      this.#attempts = 0
      this.dispatchEvent(new Event("open"))
    })
    for (const op of ["ok", "event", "gap", "done", "notice", "problem"]) {
      source.addEventListener(op, (/** @type {any} */ { data, lastEventId }) => {
        if (this.#isClosed) return
        if (lastEventId) this.#lastEventId = lastEventId
        if (op === "notice") this.#requestedDelay = requestedDelay(`retry-after=${read(data).retryAfter}`)
        this.dispatchEvent(new MessageEvent(op, { data, lastEventId, origin: this.#url.origin }))
      })
    }
    source.addEventListener("error", () => {
      // It would connect again with the ticket, which is used up.
      const isRefused = source.readyState === 2
      source.close()
      this.#failed(ownProblem("disconnected", "Disconnected", "The event stream has ended."), isRefused)
    })
  }

  /**
   * @param {any} error
   * @param {boolean} isFinal
   */
  #failed(error, isFinal) {
    if (this.#isClosed) return
    this.#source = undefined
    if (isFinal) this.#isClosed = true
    else this.#retryTimer = setTimeout(() => this.#connect(), this.#requestedDelay ?? retryDelay(this.#attempts++))
    this.#requestedDelay = undefined
    const event = new Event("error")
    this.dispatchEvent(Object.assign(event, { error }))
  }
}
