/**
 * A client of a Coaty gateway, for browsers and for node: one connection on `/v1/ws` that comes back by itself.
 *
 * ```js
 * import { CoatyClient } from "http://127.0.0.1:8080/client.js"
 * const client = new CoatyClient()
 * for await (const frame of client.subscribe({ event: "advertise", coreType: "Task" })) console.log(frame)
 * ```
 */

/** An object as agents exchange it. All beyond these members is its type's own. */
export interface CoatyObject {
  coreType: string
  objectType: string
  /** A UUID. */
  objectId: string
  name: string
  [member: string]: unknown
}

/** A property of objects: a dotted path, or the names one by one. */
export type Property = string | string[]

/** `["status", ["Equals", "on"]]`, nested by `and`, `or` and `not`. */
export type Condition =
  | [property: Property, expression: [operator: string | number, ...operands: unknown[]]]
  | { and: Condition[] }
  | { or: Condition[] }
  | { not: Condition }

/** Octets in an event. */
export type Octets =
  | { encoding: "base64"; value: string }
  /** As asked for by the option `encoding`. */
  | { encoding: "binary"; octets: Uint8Array }

/** The events that are requests. */
export type RequestEventName = "discover" | "query" | "update" | "call"
/** The events that answer them. */
export type ResponseEventName = "resolve" | "retrieve" | "complete" | "return"
/** The events of a network that `traffic` tells of. */
export type TrafficEventName =
  | "advertise" | "deadvertise" | "channel" | "associate" | "iovalue" | RequestEventName | ResponseEventName

/** What can be observed. */
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
  /** All events of the network, of all agents; without `events` of every kind. */
  | { event: "traffic"; events?: TrafficEventName[] }

/** See docs/websocket.md, "Options of a subscription". */
export interface SubscribeOptions {
  filter?: Condition
  fields?: Property[]
  /** Milliseconds. */
  throttle?: number
  /** How many events wait at the gateway when this client is behind: 256 unless it says otherwise, at most 4096. */
  buffer?: number
  overflow?: "dropOldest" | "latest" | "close"
  /** The cursor to resume behind; reconnects look after themselves. */
  since?: string
  encoding?: "base64" | "binary"
}

/** Ends what it is given to. */
export interface Abortable {
  signal?: AbortSignal
}

/** An event that was observed, as the gateway tells it. */
export interface EventFrame {
  op: "event"
  event: TrafficEventName | "raw" | "iostate" | "routing"
  /** Who published it: the object id of an agent's identity. Absent where the topic has none. */
  sourceId?: string
  /** Requests and responses have one. */
  correlationId?: string
  channelId?: string
  operation?: string
  contextName?: string
  topic?: string
  ioSourceId?: string
  ioPointId?: string
  contextId?: string
  /** What happened to the object of a `snapshot`. */
  change?: "added" | "changed" | "removed"
  /** Of a `snapshot`: when the object came, and changed, in milliseconds since 1970. */
  since?: number
  changed?: number
  /** Where to resume, behind this event. */
  cursor?: string
  /** The payload. */
  data: any
  /** About how many bytes the frame had. */
  size: number
}

/** Events are missing at this place. */
export interface GapFrame {
  op: "gap"
  /** The number of dropped events; null if unknown. A state or a `snapshot` is sent again after such a gap. */
  dropped: number | null
  /** Whether the gateway or this client dropped them. */
  where: "gateway" | "client"
  cursor?: string
  size: number
}

/**
 * What is observed: events and gaps for one `for await` loop. Leaving the loop ends the subscription.
 *
 * It lives on when the connection comes back, and resumes where it was. What waits for the loop is bounded (4096 events,
 * 4 MiB): beyond that the oldest go, and a gap stands in their place.
 */
export interface Subscription extends AsyncIterable<EventFrame | GapFrame> {
  /**
   * Resolves when the broker has acknowledged: from then on nothing is missed. Rejects with a `GatewayError` where that is
   * refused, or where it is ended before.
   */
  readonly ready: Promise<void>
  /**
   * Why it is over: `withdrawn` and `overflow` are the gateway's reasons, `closed` is by this client, `error` where the loop
   * throws. Undefined while it is not.
   */
  readonly reason: "closed" | "withdrawn" | "overflow" | "error" | undefined
  /** Ends it, and the loop. */
  close(): void
  /** @throws TypeError where somebody iterates already */
  [Symbol.asyncIterator](): AsyncIterableIterator<EventFrame | GapFrame>
}

/** What can be asked. */
export type Request =
  | { event: "discover" | "query" | "update"; data: object }
  | { event: "call"; operation: string; data: object }

export interface RequestOptions {
  /** Milliseconds that responses are awaited: 2000 unless it says otherwise. */
  timeout?: number
  /** How many responses are awaited: 1 unless it says otherwise, 0 for all that come in time. */
  limit?: number
  /** Ends with a response of which this holds. */
  until?: Condition
}

/** A response to a request. */
export interface ResponseFrame {
  op: "response"
  event: ResponseEventName
  /** Who responds: the object id of an agent's identity. */
  sourceId: string
  /** Milliseconds since the request was published. */
  ms: number
  data: any
  /** About how many bytes the frame had. */
  size: number
}

/**
 * Why no more responses come.
 *
 * `offline`: the gateway lost its broker. `disconnected`: this client lost the gateway, nobody knows what was answered.
 * `overflow`: more responses came than are kept (16 MiB). `closed`: the client was closed.
 */
export type EndReason =
  | "limit" | "timeout" | "until" | "cancelled" | "offline" | "overflow" | "disconnected" | "closed" | "error"

/** The responses to a request, as they come, for one `for await` loop; or all at the end. Leaving the loop cancels it. */
export interface Responses extends AsyncIterable<ResponseFrame> {
  /** Undefined while responses are awaited; `error` where the loop throws. */
  readonly reason: EndReason | undefined
  /** Ends it. The responses that have come by then are still told. */
  cancel(): void
  /**
   * Waits for the end.
   *
   * @throws GatewayError where the request was refused, or could not be sent
   */
  all(): Promise<{ responses: ResponseFrame[]; reason: EndReason }>
  /** @throws TypeError where somebody iterates already */
  [Symbol.asyncIterator](): AsyncIterableIterator<ResponseFrame>
}

/** What can be published. */
export type Publication =
  | { event: "advertise" | "deadvertise"; data: object }
  | { event: "channel"; channelId: string; data: object }
  | { event: "raw"; topic: string; retain?: boolean; data: { encoding: "base64" | "utf8"; value: string } }

/** Whether the event waits at the gateway, because the broker is away. */
export interface Delivery {
  deferred: boolean
}

/** The request to respond to, as it was observed; or its correlation id with the name of the request or of the response. */
export interface RespondTo {
  event: RequestEventName | ResponseEventName | EventFrame["event"]
  correlationId?: string
}

/** Who the client is in the network. */
export interface Identity extends CoatyObject {
  coreType: "Identity"
}

/** What an error says (RFC 9457). */
export interface Problem {
  /** `urn:coaty-gateway:problem:…`, as openapi.yaml lists them; or `urn:coaty-client:problem:…` with
   * `offline`, `disconnected`, `closed`, `ended`, `busy` or `identified`. */
  type: string
  title: string
  /** Of HTTP; 0 where the problem is the client's own. */
  status: number
  detail?: string
  /** The JSON pointer to the value at fault, in the frame that was sent. */
  pointer?: string
  parameter?: string
}

/** What the gateway, or the client in its place, did not do, and why. */
export class GatewayError extends Error implements Problem {
  constructor(problem: Problem)
  type: string
  title: string
  status: number
  detail: string | undefined
  pointer: string | undefined
  parameter: string | undefined
}

export type ClientState = "connecting" | "online" | "closed"

/** What a `statechange` tells. */
export interface StateDetail {
  state: ClientState
  /** Why the connection ended. */
  reason?: string
  /** Milliseconds until the next attempt. */
  delay?: number
}

export interface ClientOptions {
  /** The class to connect with where there is no global one: that of the package `ws` under node. */
  WebSocket?: new (url: string, protocols: string) => any
}

/**
 * A connection to a gateway.
 *
 * It comes back by itself when it is lost: after a quarter of a second, and then more and more seldom, up to ten seconds; at
 * once when the browser says that there is a network again. A link that is silent for 20 to 30 seconds is asked for a sign of
 * life, and given up without one in 10 seconds. Subscriptions go on where they were. What was published is not said again.
 */
export class CoatyClient extends EventTarget {
  /**
   * Begins to connect.
   *
   * @param url the gateway, `http(s)://…` or `ws(s)://…`, with or without `/v1/ws`; without it the one that this module was
   *   loaded from
   * @throws TypeError where that is none, or where there is no `WebSocket`
   */
  constructor(url?: string | URL, options?: ClientOptions)

  /** `online` when the gateway is there, and knows the client by its identity, where it has one. */
  readonly state: ClientState
  /** Its own identity while it is connected, if it has asked for one. */
  readonly identity: Identity | undefined

  /** Resolves when the client is online, at once where it is; rejects with a `GatewayError` when it is closed. */
  online(): Promise<void>

  /** Observes, from now on and also over reconnects. It may be called before the client is online. */
  subscribe(what: Observation, options?: SubscribeOptions & Abortable): Subscription

  /** Asks. It ends with the connection; while the client is not online it is refused. */
  request(what: Request, options?: RequestOptions & Abortable): Responses

  /**
   * Publishes an event.
   *
   * @throws GatewayError where it is refused; `offline` while the client is not online, and `disconnected` where the
   *   connection was lost before the gateway said whether it has done so
   */
  publish(what: Publication): Promise<Delivery>

  /**
   * Answers a request that was observed.
   *
   * @throws GatewayError as `publish`; with the status 404 where the gateway does not know the request any more
   */
  respond(to: RespondTo, data: object): Promise<Delivery>

  /**
   * Takes an identity of its own, as soon as the client is online, and again after each reconnect, each time with a new id.
   *
   * @returns the first one
   * @throws GatewayError where it is refused, or where the client has one already
   */
  identify(name: string): Promise<Identity>

  /** Ends all, and the connection. */
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
