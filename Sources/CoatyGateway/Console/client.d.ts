/**
 * A client of a Coaty gateway, for browsers and node: one connection to `/v1/ws`, which reconnects automatically.
 *
 * ```js
 * import { CoatyClient } from "http://127.0.0.1:8080/client.js"
 * const client = new CoatyClient()
 * for await (const frame of client.subscribe({ event: "advertise", coreType: "Task" })) console.log(frame)
 * ```
 */

/** An object as agents exchange it. Other members depend on its object type. */
export interface CoatyObject {
  coreType: string
  objectType: string
  /** A UUID. */
  objectId: string
  name: string
  [member: string]: unknown
}

/** A property of objects: a dotted path, or an array of names. */
export type Property = string | string[]

/** The value of another property, in place of a value. */
export interface OtherProperty {
  property: Property
}

/** An operator with its operands. In place of its name, an operator can have its number on the wire, 0 to 14. */
export type Expression =
  | [operator: "LessThan" | "LessThanOrEqual" | "GreaterThan" | "GreaterThanOrEqual", operand: number | string | OtherProperty]
  | [operator: "Between" | "NotBetween", from: number | string | OtherProperty, to: number | string | OtherProperty]
  /** In the pattern `%` stands for any characters, and `_` for one. */
  | [operator: "Like", pattern: string | OtherProperty]
  | [operator: "Equals" | "NotEquals" | "Contains" | "NotContains", operand: unknown]
  | [operator: "In" | "NotIn", values: readonly unknown[] | OtherProperty]
  | [operator: "Exists" | "NotExists"]
  | [operator: number, ...operands: unknown[]]

/** `["status", ["Equals", "on"]]`, nested by `and`, `or` and `not`. */
export type Condition =
  | [property: Property, expression: Expression]
  | { and: Condition[] }
  | { or: Condition[] }
  | { not: Condition }

/** Octets in an event. */
export type Octets =
  | { encoding: "base64"; value: string }
  /** With the option `encoding: "binary"`. */
  | { encoding: "binary"; octets: Uint8Array }

/** The events that are requests. */
export type RequestEventName = "discover" | "query" | "update" | "call"
/** The events that respond to requests. */
export type ResponseEventName = "resolve" | "retrieve" | "complete" | "return"
/** The events that `traffic` delivers. */
export type TrafficEventName =
  | "advertise" | "deadvertise" | "channel" | "associate" | "iovalue" | RequestEventName | ResponseEventName

/** A selection of events to observe. */
export type Observation =
  | { event: "advertise"; coreType: string; snapshot?: boolean }
  | { event: "advertise"; objectType: string; snapshot?: boolean }
  | { event: "advertise"; snapshot: true }
  | { event: "deadvertise" | "discover" | "query" }
  | { event: "channel"; channelId: string }
  | { event: "update"; coreType: string }
  | { event: "update"; objectType: string }
  | { event: "call"; operation: string }
  | { event: "associate"; contextName: string }
  /** `topic` is an MQTT topic filter outside of `coaty/` and `coaty.`. */
  | { event: "raw"; topic: string }
  /** An IO actor that is registered at the gateway. */
  | { event: "iovalue"; ioActorId: string }
  /** An IO source or actor that is registered at the gateway. */
  | { event: "iostate"; ioPointId: string }
  | { event: "routing"; contextId: string }
  /** All events of all agents in the network; `events` selects some. */
  | { event: "traffic"; events?: TrafficEventName[] }

/** `2s`, `500ms` or a number of milliseconds. */
export type Duration = number | `${number}s` | `${number}ms`

/** See docs/websocket.md, "Options of a subscription". */
export interface SubscribeOptions {
  filter?: Condition
  fields?: Property[]
  /** The time in which at most one event of an object is delivered. */
  throttle?: Duration
  /** Maximum number of events that the gateway queues for this subscription: 256 by default, at most 4096. */
  buffer?: number
  overflow?: "dropOldest" | "latest" | "close"
  /** The cursor to resume after. The client resumes automatically after a reconnect. */
  since?: string
  /** For `channel` and `iovalue`: begin with the last event of each object or IO source. */
  latest?: boolean
  encoding?: "base64" | "binary"
}

/** Options of a subscription or request that can be aborted. */
export interface Abortable {
  signal?: AbortSignal
}

/** An observed event, as the gateway delivers it. */
export interface EventFrame {
  op: "event"
  event: TrafficEventName | "raw" | "iostate" | "routing"
  /** The publisher: the object id of an agent's identity. Absent if the topic has none. */
  sourceId?: string
  /** Set for requests and responses. */
  correlationId?: string
  channelId?: string
  operation?: string
  contextName?: string
  topic?: string
  ioSourceId?: string
  ioPointId?: string
  contextId?: string
  /** With `snapshot`: how the object changed. */
  change?: "added" | "changed" | "removed"
  /** With `snapshot`: when the object was added, and when it changed, in milliseconds since 1970. */
  since?: number
  changed?: number
  /** With `latest`: the event is the last one of its object or IO source before the subscription. */
  latest?: true
  /** The broker had kept the raw message, and sent it because of a new subscription. */
  retained?: true
  /** The cursor to resume after this event. */
  cursor?: string
  /** The payload. */
  data: any
  /** Approximate size of the frame in bytes. */
  size: number
}

/** A gap: events were dropped at this place. */
export interface GapFrame {
  op: "gap"
  /** The number of dropped events; null if unknown. A state or a `snapshot` is sent again after such a gap. */
  dropped: number | null
  /** Whether the gateway or this client dropped them. */
  where: "gateway" | "client"
  /**
   * `filter-steps`: an event was left out, because the subscription's filter is too expensive for it. `invalid`: events could not be
   * read, because they are not valid JSON or do not match their pattern.
   */
  reason?: "filter-steps" | "invalid"
  cursor?: string
  size: number
}

/**
 * A subscription: events and gaps for one `for await` loop. Leaving the loop ends the subscription.
 *
 * It survives reconnects, and resumes where it was. At most 4096 events or 4 MiB are queued for the loop; beyond that the
 * oldest are dropped, and a gap is delivered in their place.
 */
export interface Subscription extends AsyncIterable<EventFrame | GapFrame> {
  /**
   * Resolves when the broker has acknowledged the subscription; from then on no event is missed. Rejects with a
   * `GatewayError` if the subscription is refused, or ends before.
   */
  readonly ready: Promise<void>
  /**
   * Why it ended: `withdrawn` and `overflow` by the gateway, `closed` by this client, `error` if the loop throws. Undefined
   * until then.
   */
  readonly reason: "closed" | "withdrawn" | "overflow" | "error" | undefined
  /** Ends the subscription and its loop. */
  close(): void
  /** @throws TypeError if a loop iterates over it already */
  [Symbol.asyncIterator](): AsyncIterableIterator<EventFrame | GapFrame>
}

/** A request to the agents. */
export type Request =
  | { event: "discover" | "query" | "update"; data: object }
  | { event: "call"; operation: string; data: object }

export interface RequestOptions {
  /** How long to wait for responses, and for the connection if the client is not online: 2 s by default. */
  timeout?: Duration
  /** Number of responses to wait for: 1 by default, 0 for all until the timeout. */
  limit?: number
  /** Ends the request at the first response for which this condition holds. */
  until?: Condition
}

/** A response to a request. */
export interface ResponseFrame {
  op: "response"
  event: ResponseEventName
  /** The responder: the object id of an agent's identity. */
  sourceId: string
  /** Milliseconds since the request was published. */
  ms: number
  data: any
  /** Approximate size of the frame in bytes. */
  size: number
}

/**
 * Why a request ended.
 *
 * `offline`: the gateway lost its broker connection. `disconnected`: this client lost its connection to the gateway; further
 * responses are unknown. `overflow`: more than 16 MiB of responses were queued. `closed`: the client was closed.
 */
export type EndReason =
  | "limit" | "timeout" | "until" | "cancelled" | "offline" | "overflow" | "disconnected" | "closed" | "error"

/** The responses to a request: one by one in a `for await` loop, or all at the end. Leaving the loop cancels the request. */
export interface Responses extends AsyncIterable<ResponseFrame> {
  /** Undefined until the request ends; `error` if the loop throws. */
  readonly reason: EndReason | undefined
  /** Whether the gateway withheld responses that the client may not read. Known when the request ends with `done`. */
  readonly filtered: boolean
  /** Ends the request. Responses that are queued by then are still delivered. */
  cancel(): void
  /**
   * Waits for the end of the request and returns all responses.
   *
   * @throws GatewayError if the request was refused, or could not be sent
   */
  all(): Promise<{ responses: ResponseFrame[]; reason: EndReason }>
  /** @throws TypeError if a loop iterates over it already */
  [Symbol.asyncIterator](): AsyncIterableIterator<ResponseFrame>
}

/** An event to publish. */
export type Publication =
  /** `lifetime`: seconds, or until this connection closes. Without it, the object stays until it is deadvertised. */
  | { event: "advertise"; lifetime?: number | "connection"; data: object }
  | { event: "deadvertise"; data: object }
  | { event: "channel"; channelId: string; data: object }
  | { event: "raw"; topic: string; retain?: boolean; data: { encoding: "base64" | "utf8"; value: string } }

/** Whether the gateway has queued the event because it is not connected to its broker. */
export interface Delivery {
  deferred: boolean
  /** False if there is no room to advertise the object again after a reconnect. */
  kept?: false
}

/** The request to respond to: the observed frame, or a correlation id with the name of the request or of the response. */
export interface RespondTo {
  event: RequestEventName | ResponseEventName | EventFrame["event"]
  correlationId?: string
}

/** A client identity in the network. */
export interface Identity extends CoatyObject {
  coreType: "Identity"
}

/** A problem (RFC 9457). */
export interface Problem {
  /** `urn:coaty-gateway:problem:…`, as openapi.yaml lists them; or `urn:coaty-client:problem:…` with
   * `offline`, `disconnected`, `unanswered`, `refused`, `closed`, `ended`, `busy`, `identified`, `timeout`, `no-stream` or
   * `too-large`. */
  type: string
  title: string
  /** The HTTP status; 0 for problems of the client itself. */
  status: number
  detail?: string
  /** The JSON pointer to the invalid value in the frame that was sent. */
  pointer?: string
  parameter?: string
  /** With the status 403: YAML of the grant that would allow it. */
  missing?: string
  /**
   * The milliseconds after which to try again: with the status 429, if the gateway has a rate for it; with `token-not-yet-valid`; and
   * of a refused event stream, also from the header field `Retry-After`.
   */
  retryAfter?: number
}

/** A refusal of the gateway or of the client. */
export class GatewayError extends Error implements Problem {
  constructor(problem: Problem)
  type: string
  title: string
  status: number
  detail: string | undefined
  pointer: string | undefined
  parameter: string | undefined
  missing: string | undefined
  retryAfter: number | undefined
}

export type ClientState = "connecting" | "online" | "closed"

/** The detail of a `statechange` event. */
export interface StateDetail {
  state: ClientState
  /** Why the connection ended. */
  reason?: string
  /** Milliseconds until the next attempt. */
  delay?: number
  /** The problem with which the gateway has refused the client, and with which `online` rejects. The client is then `closed`. */
  problem?: GatewayError
}

/**
 * A token, or a function that returns the current one. The function is called for each connection, and may renew the token. If it
 * returns undefined, the client connects without a token. If the token expires, the function is called again after 80 % of the remaining
 * time, and at least five seconds before the end; the client then authenticates the open connection with the new token.
 *
 * A function that does not settle within `attemptTimeout` counts as failed, and is called again later.
 */
export type Token = string | (() => string | undefined | Promise<string | undefined>)

export interface ClientOptions {
  /**
   * The token that authenticates the client. It is sent as the first frame of each connection. If the gateway refuses it, the client is
   * closed. If the function throws, or if the token is not valid yet (`token-not-yet-valid`), the client tries again later, and calls
   * the function again; the reason is in `statechange`.
   */
  token?: Token
  /**
   * Whether integers that a number can't represent exactly, beyond ±(2⁵³ − 1), arrive as `bigint`. By default they are rounded. A
   * `bigint` in what the client sends is always written as an exact integer.
   */
  exactIntegers?: boolean
  /**
   * Milliseconds without a message after which the connection is given up: 40,000 by default. After three quarters of this time the
   * client sends a ping.
   */
  silenceTimeout?: number
  /**
   * Milliseconds for each step of an attempt to connect, the token function and the opening of the connection: 10,000 by default. A
   * function that asks a user needs more.
   */
  attemptTimeout?: number
  /** The WebSocket class to use if there is no global one, such as that of the package `ws` for node. */
  WebSocket?: new (url: string, protocols: string) => any
}

/**
 * A connection to a gateway.
 *
 * It reconnects automatically: after a quarter of a second at first, then with growing delays of up to ten seconds, and at once
 * when the browser reports that the network is back. If no message arrives for 20 to 30 seconds, the client sends a ping, and
 * reconnects if there is no reply within 10 seconds. When the browser reports that the network is back, or shows the page again, and
 * after the process was suspended, it sends a ping at once, and reconnects if nothing arrives within 5 seconds. Subscriptions resume
 * where they were. Publications are not sent again.
 *
 * It does not reconnect after a close code from 4500 to 4999, or if its token is refused. Then it is closed, and subscriptions, requests and `online` fail with
 * a `GatewayError` of the type `refused`.
 *
 * In a browser, the gateway may refuse the page: its origin is not allowed, or the host name of the gateway. A failed handshake does
 * not show that. If an attempt fails before the connection opens, the client therefore sends one GET without a token to `/v1/access`. If
 * the response is the problem `origin-not-allowed` or `host-not-allowed`, the client is closed in the same way, with this problem.
 */
export class CoatyClient extends EventTarget {
  /**
   * Starts to connect.
   *
   * @param url the gateway, `http(s)://…` or `ws(s)://…`, with or without `/v1/ws`; by default the gateway that served this
   *   module
   * @throws TypeError if the address is invalid, or if there is no `WebSocket`
   */
  constructor(url?: string | URL, options?: ClientOptions)

  /** `online` while the client is connected and, if it asked for an identity, has one. */
  readonly state: ClientState
  /** The client identity, if the client asked for one, while it is connected. */
  readonly identity: Identity | undefined

  /** Resolves when the client is online; rejects with a `GatewayError` when the client or the gateway has closed it. */
  online(): Promise<void>

  /** Subscribes to events. The client does not need to be online, and the subscription survives reconnects. */
  subscribe(what: Observation, options?: SubscribeOptions & Abortable): Subscription

  /**
   * Sends a request, now or when the client is online. The time limit includes this wait; if it ends first, the loop and `all` throw
   * `offline`. A request ends with the connection on which it was sent.
   */
  request(what: Request, options?: RequestOptions & Abortable): Responses

  /**
   * Publishes an event.
   *
   * @throws GatewayError if it is refused; `offline` if the client is not online, and `disconnected` if the connection was
   *   lost before the gateway replied
   */
  publish(what: Publication): Promise<Delivery>

  /**
   * Responds to an observed request.
   *
   * @throws GatewayError as `publish`; with the status 404 if the gateway does not know the request any more
   */
  respond(to: RespondTo, data: object): Promise<Delivery>

  /**
   * Asks for a client identity, now or when the client is connected, and again after each reconnect. The identity then has the
   * same id, unless the gateway was restarted and is in no cluster.
   *
   * @returns the first identity
   * @throws GatewayError if it is refused, or if the client has one already
   */
  identify(name: string): Promise<Identity>

  /**
   * Authenticates the open connection again, before its token expires. The token must be of the same subject. Subscriptions and
   * requests continue, as far as the token allows them. Later connections use this token. While the client is not online, it
   * reconnects with this token.
   *
   * @throws GatewayError if the token is refused; an open connection then keeps the former token
   */
  authenticate(token: Token): Promise<void>

  /** Ends all subscriptions and requests, and the connection. */
  close(): void

  addEventListener(
    type: "statechange",
    listener: (event: CustomEvent<StateDetail>) => void,
    options?: boolean | AddEventListenerOptions,
  ): void
  addEventListener(
    type: string,
    listener: EventListenerOrEventListenerObject | null,
    options?: boolean | AddEventListenerOptions,
  ): void
  removeEventListener(
    type: "statechange",
    listener: (event: CustomEvent<StateDetail>) => void,
    options?: boolean | EventListenerOptions,
  ): void
  removeEventListener(
    type: string,
    listener: EventListenerOrEventListenerObject | null,
    options?: boolean | EventListenerOptions,
  ): void
}

/**
 * Returns the address of `/v1/sse/{event}` or `/v1/ws/{event}` with a ticket, which stands for the token. A ticket is valid for one
 * connection of a page of the same origin, and for 30 seconds: get another one for each connection.
 *
 * @param stream the address, with its parameters; relative to the page
 * @returns the address itself if there is no token
 * @throws GatewayError if the token is refused
 * @throws TypeError if the address is not one of a stream, or if the gateway does not answer
 */
export function ticketUrl(stream: string | URL, token?: Token): Promise<string>

export interface EventSourceOptions {
  /** Sent as `Authorization: Bearer …`. */
  token?: Token
  /**
   * Milliseconds without any byte after which the connection is given up: 40,000 by default. The gateway sends a heartbeat every 15
   * seconds.
   */
  silenceTimeout?: number
  /** Milliseconds for each step of an attempt to connect, the token function and the response: 10,000 by default. */
  attemptTimeout?: number
}

/** The status line and the header fields of a response. */
export interface StreamResponse {
  status: number
  /** Empty with HTTP/2. */
  statusText: string
  headers: Headers
}

/** The event `error` of an event stream. */
export interface StreamErrorEvent extends Event {
  /** The problem of the gateway or of the client; or what the token function has thrown. */
  readonly error: GatewayError
  /** Milliseconds until the next attempt; undefined if the stream is closed. */
  readonly delay: number | undefined
}

/**
 * An EventSource that survives restarts of gateways and proxies, can send a token, and reports why a connection ended. A browser's own
 * EventSource can do none of that.
 *
 * It resumes after the last event. It dispatches `open`; the frames `ok`, `event`, `gap`, `done`, `notice` and `problem`, as the
 * `MessageEvent`s of an EventSource; and `error` when a connection or an attempt ends. If a stream without a cursor starts again, it
 * dispatches a `gap` with `"where":"client"`.
 *
 * It connects again with growing delays of up to ten seconds, or when the gateway or a proxy asks for it, after a loss of the
 * connection, 40 seconds of silence, a status from 500, 408, 425 and 429. It is closed, with a last `error`, after another status from
 * 400: the gateway would refuse the stream again. After 401 it calls the token function once more, and after `token-not-yet-valid` as
 * often as needed.
 */
export class CoatyEventSource extends EventTarget {
  /**
   * Starts to connect.
   *
   * @param url the address of `/v1/sse/{event}`, with its parameters; relative to the page
   * @throws TypeError if the address is not one of a stream
   */
  constructor(url: string | URL, options?: EventSourceOptions)

  readonly url: string
  /** 0 while it connects, 1 while it is open, 2 when it is closed. */
  readonly readyState: 0 | 1 | 2
  /** The latest response; undefined before the first one. */
  readonly response: StreamResponse | undefined

  /** Ends the stream. */
  close(): void

  addEventListener(
    type: "error",
    listener: (event: StreamErrorEvent) => void,
    options?: boolean | AddEventListenerOptions,
  ): void
  addEventListener(
    type: string,
    listener: (event: MessageEvent<string>) => void,
    options?: boolean | AddEventListenerOptions,
  ): void
  addEventListener(
    type: string,
    listener: EventListenerOrEventListenerObject | null,
    options?: boolean | AddEventListenerOptions,
  ): void
}

/**
 * Parses JSON as `JSON.parse` does, but returns integers beyond ±(2⁵³ − 1) as `bigint` instead of rounding them. Fractions and numbers
 * with an exponent are still rounded.
 *
 * @throws SyntaxError if the text is not JSON
 */
export function parseExact(text: string): any

/**
 * Returns a value as JSON, as `JSON.stringify` does, with each `bigint` as an integer.
 *
 * @throws an error if the value contains itself
 */
export function stringifyExact(value: unknown): string
