// Uses every declaration of client.d.ts as a caller would. It only has to compile.
import {
  type Abortable, type ClientOptions, type ClientState, CoatyClient, CoatyEventSource, type CoatyObject, type Condition,
  type Delivery, type EndReason, type EventFrame, type EventSourceOptions, type Expression, type GapFrame, GatewayError, type Identity,
  type Observation, type Octets, type OtherProperty, parseExact, type Problem, type Property, type Publication, type Request, type RequestEventName,
  type RequestOptions, type RespondTo, type ResponseEventName, type ResponseFrame, type Responses, type StateDetail,
  type StreamErrorEvent, type StreamResponse, stringifyExact, type SubscribeOptions, type Subscription, ticketUrl, type Token,
  type TrafficEventName,
} from "./client.js"

const token: Token = async () => "coaty_secret"
const options: ClientOptions = { WebSocket, token, exactIntegers: true, silenceTimeout: 20_000, attemptTimeout: 5_000 }
const written: string = stringifyExact({ count: 2n ** 53n, text: parseExact("[1]") })
const client = new CoatyClient(new URL("http://127.0.0.1:8080"), options)
new CoatyClient().close()
const state: ClientState = client.state
const changed = ({ detail }: CustomEvent<StateDetail>) => console.log(detail.state, detail.reason, detail.delay, state, written)
client.addEventListener("statechange", changed, { once: true })
client.removeEventListener("statechange", changed)
client.addEventListener("other", (event: Event) => event.type)
client.removeEventListener("other", null)

const property: Property = ["address", "city"]
const other: OtherProperty = { property }
const condition: Condition = {
  and: [["status", ["Equals", "on"]], { not: [property, [2, 25]] }, { or: [["a.b", ["Exists"]]] }],
}
const expressions: Expression[] = [
  ["LessThan", 2], ["Between", 1, "z"], ["Like", "green%"], ["NotEquals", { a: [null] }], ["Contains", [1]], ["NotIn", ["a", 1]],
  ["NotExists"], ["In", { property: "allowed" }], ["GreaterThanOrEqual", other], [13, ["a"]],
]
// @ts-expect-error the operator is misspelled
const misspelled: Expression = ["Equal", 1]
// @ts-expect-error Between has two operands
const halfRange: Expression = ["Between", 1]
console.log(expressions, misspelled, halfRange)
const traffic: TrafficEventName[] = ["advertise", "iovalue", "return"]
const observations: Observation[] = [
  { event: "advertise", coreType: "Task" },
  { event: "advertise", objectType: "com.example.Job", snapshot: true },
  { event: "advertise", snapshot: true },
  { event: "deadvertise" },
  { event: "discover" },
  { event: "query" },
  { event: "channel", channelId: "news" },
  { event: "update", coreType: "Task" },
  { event: "update", objectType: "com.example.Job" },
  { event: "call", operation: "com.example.add" },
  { event: "associate", contextName: "Greenhouse" },
  { event: "raw", topic: "greenhouse/#" },
  { event: "iovalue", ioActorId: "2f6f0a3c-7d11-4d0a-8f6e-5a9c1f6e3b52" },
  { event: "iostate", ioPointId: "2f6f0a3c-7d11-4d0a-8f6e-5a9c1f6e3b52" },
  { event: "routing", contextId: "b61740a6-95d7-4d1a-8be5-53f3aa1e0b79" },
  { event: "traffic", events: traffic },
]
// @ts-expect-error a channel needs an ID
const wrong: Observation = { event: "channel" }
// @ts-expect-error an advertise subscription needs a type or a snapshot
const alsoWrong: Observation = { event: "advertise" }

const abortable: Abortable = { signal: new AbortController().signal }
const all: SubscribeOptions = {
  filter: condition, fields: ["name", property], throttle: "500ms", buffer: 10, overflow: "latest", since: "a-1",
  encoding: "binary",
}
const subscription: Subscription = client.subscribe(observations[0] ?? wrong, { ...all, ...abortable })

async function observe(): Promise<void> {
  await subscription.ready
  for await (const frame of subscription) {
    if (frame.op === "gap") {
      const gap: GapFrame = frame
      const dropped: number | null = gap.dropped
      console.log(dropped, gap.where === "client", gap.cursor, gap.size)
      continue
    }
    const event: EventFrame = frame
    const octets: Octets = event.data
    if (octets.encoding === "binary") console.log(octets.octets.length)
    else console.log(octets.value)
    console.log(
      event.event, event.sourceId, event.correlationId, event.channelId, event.operation, event.contextName, event.topic,
      event.ioSourceId, event.ioPointId, event.contextId, event.change, event.since, event.changed, event.cursor, event.size,
    )
    const delivery: Delivery = await client.respond(event, { result: 1 })
    console.log(delivery.deferred)
  }
  const why: "closed" | "withdrawn" | "overflow" | "error" | undefined = subscription.reason
  subscription.close()
  console.log(why)
}

async function ask(): Promise<CoatyObject | undefined> {
  await client.online()
  const request: Request = { event: "call", operation: "com.example.add", data: { parameters: [1, 2] } }
  const options: RequestOptions = { timeout: 2000, limit: 0, until: condition }
  const soon: RequestOptions = { timeout: "2s" }
  // @ts-expect-error
  const never: RequestOptions = { timeout: "2 minutes" }
  const responses: Responses = client.request(request, { ...options, ...abortable })
  for await (const response of responses) {
    const frame: ResponseFrame = response
    const event: ResponseEventName = frame.event
    console.log(event, frame.sourceId, frame.ms, frame.size)
  }
  responses.cancel()
  const name: RequestEventName = "discover"
  const { responses: collected, reason } = await client.request({ event: name, data: { objectTypes: ["a"] } }).all()
  const end: EndReason = reason
  console.log(end, responses.reason, responses.filtered)
  return collected[0]?.data.object
}

async function publish(): Promise<void> {
  const object: CoatyObject = { coreType: "CoatyObject", objectType: "a", objectId: "b", name: "c", more: 1 }
  const publications: Publication[] = [
    { event: "advertise", data: { object } },
    { event: "deadvertise", data: { objectIds: [object.objectId] } },
    { event: "channel", channelId: "news", data: { object } },
    { event: "raw", topic: "a/b", retain: true, data: { encoding: "utf8", value: "open" } },
  ]
  const to: RespondTo = { event: "return", correlationId: "c" }
  try {
    for (const publication of publications) await client.publish(publication)
    await client.respond(to, { result: 1 })
    const identity: Identity = await client.identify("Kiosk")
    console.log(identity.name, client.identity?.objectId)
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    const problem: Problem = error
    console.log(problem.type, problem.title, problem.status, problem.detail, problem.pointer, problem.parameter, problem.missing)
    throw new GatewayError(problem)
  }
}

async function stream(): Promise<void> {
  await client.authenticate("coaty_secret")
  const options: EventSourceOptions = { token: () => undefined, silenceTimeout: 20_000, attemptTimeout: 5_000 }
  const source = new CoatyEventSource(new URL("http://127.0.0.1:8080/v1/sse/deadvertise"), options)
  source.addEventListener("event", (event) => console.log(JSON.parse(event.data), event.lastEventId))
  source.addEventListener("error", (event: StreamErrorEvent) => console.log(event.error.status, event.error.retryAfter, event.delay))
  const response: StreamResponse | undefined = source.response
  console.log(response?.status, response?.statusText, response?.headers.get("x-request-id"))
  const state: 0 | 1 | 2 = source.readyState
  console.log(state, source.url, await ticketUrl(source.url, token))
  source.close()
}

export { alsoWrong, ask, observe, publish, stream }
