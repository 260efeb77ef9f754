/**
 * A client of a Coaty gateway, for browsers and for node: one connection on `/v1/ws` that comes back by itself.
 *
 * docs/browser.md tells by task what it does, docs/websocket.md what goes over the connection.
 *
 * @module
 */

/** The most events of a subscription that wait for their consumer. Beyond them the oldest go, and a gap says how many. */
const maximumWaitingEvents = 4096
/** The most bytes of them; one event may be larger. */
const maximumWaitingBytes = 4 * 1024 * 1024
/** The most bytes of responses to a request that wait for their consumer. Beyond them the request ends: `overflow`. */
const maximumResponseBytes = 16 * 1024 * 1024
/** The most subscriptions and requests at a time, which is the gateway's own bound. More are refused. */
const maximumStreams = 256
/** The most publications and answers that the gateway has not yet acknowledged. More are refused. */
const maximumUnacknowledged = 10_000
/** How many bytes may wait for the network before publications, answers and requests are refused. */
const maximumUnsentBytes = 8 * 1024 * 1024

/** Milliseconds: the wait before the first attempt to come back, which doubles up to the longest. */
const firstDelay = 250
const longestDelay = 10_000
/** Milliseconds between two looks at the connection. One that is not open by the first is given up. */
const watchInterval = 10_000
/** After so many looks nobody waits any more for the gateway to take what was said. */
const looksUntilUnanswered = 3
/** After so many looks without a message in between the gateway is asked whether it is there, … */
const silentLooksUntilPing = 3
/** … and after so many the connection is given up. */
const silentLooksUntilLost = 4

/** What answers a request: the event's name by that of the request. */
const responseEvents = { discover: "resolve", query: "retrieve", update: "complete", call: "return" }

/** What the gateway, or this client in its place, did not do, and why: the members of a problem (RFC 9457). */
export class GatewayError extends Error {
  /** @param {import("./client.js").Problem} problem */
  constructor({ type, title, status, detail, pointer, parameter }) {
    super(detail ?? title)
    this.name = "GatewayError"
    this.type = type
    this.title = title
    this.status = status
    this.detail = detail
    this.pointer = pointer
    this.parameter = parameter
  }
}

/**
 * Problems of the client itself. They have no status of HTTP's.
 *
 * @param {string} name
 * @param {string} title
 * @param {string} detail
 */
const ownProblem = (name, title, detail) =>
  new GatewayError({ type: `urn:coaty-client:problem:${name}`, title, status: 0, detail })

const offline = () => ownProblem("offline", "Offline", "The client is not online.")
const closed = () => ownProblem("closed", "Closed", "The client has been closed.")
const ended = () => ownProblem("ended", "Ended", "The subscription ended before it began.")
const disconnected = (/** @type {string} */ why) =>
  ownProblem("disconnected", "Disconnected", `The connection was lost (${why}) before the gateway answered. It may have acted.`)
const unanswered = () =>
  ownProblem("unanswered", "Unanswered", "The gateway did not say that it has taken this; it may have refused it as a whole.")
const busy = (/** @type {string} */ detail) => ownProblem("busy", "Busy", detail)

/**
 * A promise that somebody else settles. Nobody has to look at it.
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
 * What one subscription or request is told, between the connection and the one who iterates over it.
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
   * How many events are missing before the first that waits.
   *
   * @type {number | null}
   */
  #dropped = 0
  /**
   * Who waits for the next frame.
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
   * Told once, when it is over: whether that is the consumer's wish.
   *
   * @type {(isWish: boolean) => void}
   */
  onEnd = () => {}
  /**
   * Settled when it has begun, or can't.
   *
   * @type {Deferred<undefined>}
   */
  ready = new Deferred()

  /** @param {object} members what the frame says that begins it */
  constructor(members) {
    // A copy, which nobody changes before it is said again; what JSON can't say is told at once.
    this.members = JSON.parse(JSON.stringify(members))
  }

  get isOver() {
    return this.reason !== undefined
  }

  get waitingEvents() {
    return this.#frames.length - this.#head
  }

  get waitingBytes() {
    return this.#bytes
  }

  /** @param {any} frame */
  push(frame) {
    if (this.#taker) return this.#give({ value: frame, done: false })
    this.#frames.push(frame)
    this.#bytes += frame.size
  }

  /** Forgets the oldest that waits. */
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

  /** Ends it by the consumer's wish, who wants nothing more of it. */
  leave() {
    this.#frames = []
    this.#head = this.#bytes = this.#dropped = 0
    this.#error = undefined
    this.end(this.wish, { isWish: true })
  }

  /** The one who takes the frames. */
  consumer() {
    if (this.#hasConsumer) throw new TypeError("Somebody iterates over this already")
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
    if (this.waitingEvents > 0) return Promise.resolve({ value: this.#shift(), done: false })
    if (this.isOver) {
      const error = this.#error
      this.#error = undefined
      return error ? Promise.reject(error) : Promise.resolve({ value: undefined, done: true })
    }
    if (this.#taker) return Promise.reject(new TypeError("The one before is still awaited"))
    return new Promise((resolve, reject) => { this.#taker = { resolve, reject } })
  }

  /**
   * A loop that is left ends it.
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

  /** The reason when the consumer ends it. */
  get wish() {
    return "closed"
  }

  /** All that was told, when it is over. */
  async all() {
    this.consumer()
    await this.#over.promise
    const error = this.#error
    if (error) throw error
    return this.#frames.slice(this.#head)
  }
}

/** A gap of the client's own. */
const ownGap = (/** @type {number | null} */ dropped) => ({ op: "gap", dropped, where: "client", size: 0 })

/** A subscription: lives on over reconnects. */
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
        // What can't be resumed begins anew, and what was before may have changed unseen.
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
      this.waitingEvents > maximumWaitingEvents ||
      (this.waitingBytes > maximumWaitingBytes && this.waitingEvents > 1)
    ) this.dropOldest()
  }

  stop() {
    this.leave()
  }

  disconnected() {}
}

/** A request: ends with its connection. */
class ResponseStream extends Stream {
  /** How many looks at the connection it waits to be taken; undefined when the gateway has taken it. */
  looks = /** @type {number | undefined} */ (0)

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
        this.looks = undefined
        break
      case "response":
        this.push(frame)
        // Ended by the client itself: what waits is kept, and the gateway is told.
        if (this.waitingBytes > maximumResponseBytes) this.end("overflow")
        break
      case "done":
        return this.end(frame.reason)
      case "error":
        return this.end("error", { error: new GatewayError(frame) })
    }
  }

  /** The responses that have come are kept. */
  stop() {
    this.end(this.wish, { isWish: true })
  }

  disconnected() {
    this.end("disconnected")
  }
}

/** What {@link CoatyClient.subscribe} gives. */
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

/** What {@link CoatyClient.request} gives. */
class Responses {
  #stream

  /** @param {ResponseStream} stream */
  constructor(stream) {
    this.#stream = stream
  }

  get reason() {
    return this.#stream.reason
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
 * The address of a gateway's WebSocket.
 *
 * @param {string | URL | undefined} text
 */
function address(text) {
  // Without one it is the gateway that this file came from, also where a proxy has it below a path.
  const url = text === undefined ? new URL("v1/ws", import.meta.url) : new URL(text, globalThis.location?.href)
  url.protocol = url.protocol.replace(/^http/, "ws")
  if (!/^wss?:$/.test(url.protocol)) throw new TypeError(`There is no gateway at ${url}`)
  if (!url.pathname.endsWith("/v1/ws")) url.pathname = url.pathname.replace(/\/*$/, "/v1/ws")
  return url.href
}

/**
 * Reads what the gateway has sent.
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

/** Tells of a new state. Not every node has CustomEvent. */
class StateChangeEvent extends Event {
  /** @param {import("./client.js").StateDetail} detail */
  constructor(detail) {
    super("statechange")
    this.detail = detail
  }
}

/** A connection to a gateway; client.d.ts describes each member. */
export class CoatyClient extends EventTarget {
  #url
  #WebSocket
  /** @type {"connecting" | "online" | "closed"} */
  #state = "connecting"
  /** @type {WebSocket | undefined} */
  #socket
  /** Whether subscriptions go out on the connection that is there. */
  #isOpen = false
  #attempts = 0
  #silentLooks = 0
  #lastId = 0
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #retryTimer
  /** @type {ReturnType<typeof setInterval> | undefined} */
  #watchTimer
  /** @type {Map<string, EventStream | ResponseStream>} */
  #streams = new Map()
  /** @type {Map<string, {resolve: (frame: any) => void, reject: (error: any) => void, looks: number}>} */
  #unacknowledged = new Map()
  /**
   * The name that is wanted, and whether it was granted before.
   *
   * @type {{name: string, granted: Deferred<any>, isGranted: boolean} | undefined}
   */
  #wantedIdentity
  /** @type {any} */
  #identity
  /** @type {Deferred<undefined>} */
  #whenOnline = new Deferred()

  /**
   * @param {string | URL} [url]
   * @param {import("./client.js").ClientOptions} [options]
   */
  constructor(url, options = {}) {
    super()
    this.#url = address(url)
    this.#WebSocket = options.WebSocket ?? globalThis.WebSocket
    if (!this.#WebSocket) throw new TypeError("There is no WebSocket here: pass one as options.WebSocket")
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
    globalThis.removeEventListener?.("online", this.#networkIsBack)
    const socket = this.#abandon(closed)
    this.#isOpen = false
    for (const stream of [...this.#streams.values()]) stream.end("closed")
    this.#wantedIdentity?.granted.reject(closed())
    if (this.#state === "online") this.#whenOnline = new Deferred()
    this.#whenOnline.reject(closed())
    socket?.close(1000)
    this.#change("closed")
  }

  // What a client does

  /**
   * @param {import("./client.js").Observation} what
   * @param {import("./client.js").SubscribeOptions & {signal?: AbortSignal}} options
   */
  subscribe(what, { signal, ...options } = {}) {
    const stream = new EventStream({ ...what, ...options })
    this.#open(stream, signal, this.#state === "closed" ? closed() : undefined)
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
    if (this.#state === "closed") throw closed()
    if (this.#wantedIdentity) throw ownProblem("identified", "Identified", "The client has an identity already.")
    const granted = new Deferred()
    this.#wantedIdentity = { name, granted, isGranted: false }
    // Else it is taken as soon as there is a connection.
    if (this.#state === "online") this.#takeIdentity()
    return granted.promise
  }

  /** Why nothing can be said now. */
  #refusal() {
    if (this.#state === "closed") return closed()
    if (this.#state !== "online") return offline()
    if ((this.#socket?.bufferedAmount ?? 0) > maximumUnsentBytes) return busy("Too much waits for the network.")
  }

  /** @param {any} frame */
  async #deliver(frame) {
    const refusal = this.#refusal()
    if (refusal) throw refusal
    const { deferred } = await this.#ask(frame)
    return { deferred }
  }

  /**
   * Says something that is answered once.
   *
   * @param {any} frame
   * @returns {Promise<any>}
   */
  #ask(frame) {
    return new Promise((resolve, reject) => {
      if (this.#unacknowledged.size >= maximumUnacknowledged) throw busy("Too much is not yet acknowledged.")
      const id = this.#newId()
      this.#say({ ...frame, id })
      this.#unacknowledged.set(id, { resolve, reject, looks: 0 })
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
      // The gateway answers, also where it has ended by now; nobody waits for that.
      if (this.#isOpen && (isWish || stream.reason === "overflow")) this.#say({ ...stream.ending(), id })
    }
    this.#streams.set(id, stream)
    if (this.#isOpen) this.#say({ ...stream.beginning(), id })
  }

  #newId() {
    return String(++this.#lastId)
  }

  /** @param {any} frame */
  #say(frame) {
    this.#socket?.send(JSON.stringify(frame))
  }

  // The connection

  #connect() {
    const socket = new this.#WebSocket(this.#url, "coaty.v1")
    socket.binaryType = "arraybuffer"
    this.#socket = socket
    this.#silentLooks = 0
    const whileCurrent = (/** @type {(event: any) => void} */ act) => (/** @type {any} */ event) => {
      if (socket === this.#socket) act(event)
    }
    socket.addEventListener("open", whileCurrent(() => this.#opened()))
    socket.addEventListener("message", whileCurrent((event) => this.#received(event.data)))
    socket.addEventListener("close", whileCurrent(({ code, reason }) => this.#retry(reason || `close code ${code}`)))
    // A close follows; without a listener node ends the process.
    socket.addEventListener("error", () => {})
    this.#watchTimer = setInterval(() => this.#look(), watchInterval)
  }

  #opened() {
    // First, so that nothing is published under another identity in answer to what is observed.
    if (this.#wantedIdentity) this.#takeIdentity()
    else this.#begin()
  }

  async #takeIdentity() {
    const wanted = this.#wantedIdentity
    const socket = this.#socket
    if (!wanted) return
    try {
      const { identity } = await this.#ask({ op: "identify", name: wanted.name })
      wanted.isGranted = true
      this.#identity = identity
      wanted.granted.resolve(identity)
      this.#begin()
    } catch (error) {
      if (socket !== this.#socket) return
      if (wanted.isGranted) {
        // It was granted before: nothing is published under another one. What is observed goes on.
        this.#retryTimer = setTimeout(() => this.#takeIdentity(), this.#delay())
      } else {
        this.#wantedIdentity = undefined
        wanted.granted.reject(error)
      }
      this.#begin()
    }
  }

  /** Says all that is observed on the new connection. */
  #begin() {
    if (!this.#isOpen) {
      this.#isOpen = true
      for (const [id, stream] of this.#streams) this.#say({ ...stream.beginning(), id })
    }
    if (this.#state === "online" || (this.#wantedIdentity && !this.#identity)) return
    this.#whenOnline.resolve(undefined)
    this.#change("online")
  }

  /** @param {string | ArrayBuffer} message */
  #received(message) {
    this.#silentLooks = 0
    let frame
    try {
      frame = read(message)
    } catch {
      return
    }
    const stream = this.#streams.get(frame.id)
    if (stream) return stream.received(frame)
    const asked = this.#unacknowledged.get(frame.id)
    if (!asked) return
    this.#unacknowledged.delete(frame.id)
    if (frame.op === "error") asked.reject(new GatewayError(frame))
    else asked.resolve(frame)
  }

  /** Notices a link that is dead while nobody says so. */
  #look() {
    this.#silentLooks += 1
    const hasOpened = this.#socket?.readyState === 1
    if (!hasOpened || this.#silentLooks >= silentLooksUntilLost) return this.#giveUp("the gateway does not answer")
    if (this.#silentLooks === silentLooksUntilPing) this.#say({ op: "ping", id: this.#newId() })
    this.#giveUpWaiting()
    // What lasts for a while is no attempt any more.
    if (this.#isOpen) this.#attempts = 0
  }

  /** What the gateway can't read as a frame it refuses without an id. */
  #giveUpWaiting() {
    // It may not have gone out yet.
    if ((this.#socket?.bufferedAmount ?? 0) > 0) return
    for (const [id, asked] of [...this.#unacknowledged]) {
      if (++asked.looks <= looksUntilUnanswered) continue
      this.#unacknowledged.delete(id)
      asked.reject(unanswered())
    }
    for (const stream of [...this.#streams.values()]) {
      if (!(stream instanceof ResponseStream) || stream.looks === undefined || ++stream.looks <= looksUntilUnanswered) continue
      stream.end("error", { isWish: true, error: unanswered() })
    }
  }

  /** @param {string} reason */
  #giveUp(reason) {
    const socket = this.#socket
    this.#retry(reason)
    socket?.close()
    // node's would wait for the other side, and keep the process.
    if (socket && "terminate" in socket) /** @type {any} */ (socket).terminate()
  }

  /** @param {string} reason */
  #retry(reason) {
    this.#abandon(() => disconnected(reason))
    for (const stream of [...this.#streams.values()]) stream.disconnected()
    const delay = this.#delay()
    this.#retryTimer = setTimeout(() => this.#connect(), delay)
    if (this.#state === "online") this.#whenOnline = new Deferred()
    this.#change("connecting", { reason, delay })
  }

  /**
   * Lets go of the connection.
   *
   * @param {() => GatewayError} error what those are told who wait for an answer
   */
  #abandon(error) {
    const socket = this.#socket
    this.#socket = undefined
    this.#isOpen = false
    this.#identity = undefined
    clearTimeout(this.#retryTimer)
    clearInterval(this.#watchTimer)
    for (const { reject } of this.#unacknowledged.values()) reject(error())
    this.#unacknowledged.clear()
    return socket
  }

  /** Milliseconds until the next attempt: between half of what it has grown to, and all, so that not all come at once. */
  #delay() {
    const delay = Math.min(longestDelay, firstDelay * 2 ** Math.min(this.#attempts++, 16))
    return Math.round(delay * (1 + Math.random()) / 2)
  }

  /** The browser says that there is a network again. */
  #networkIsBack = () => {
    if (this.#state !== "connecting" || this.#isOpen) return
    const socket = this.#abandon(() => disconnected("there is another network"))
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
