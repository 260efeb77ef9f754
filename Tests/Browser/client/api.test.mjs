import assert from "node:assert/strict"
import { execFile } from "node:child_process"
import { test } from "node:test"
import { promisify } from "node:util"
import {
  connect, sharedGateway, GatewayError, next, object, maximumWait, recording, state, takeUntil, within,
} from "./support.mjs"

let gateway
sharedGateway((started) => { gateway = started })

const isRefusal = (type, status) => (error) =>
  error instanceof GatewayError && error.type.endsWith(`:${type}`) && error.status === status

test("A subscription iterates over published events, and leaving the loop unsubscribes", async (t) => {
  const WebSocket = recording()
  const client = connect(t, gateway.url, { WebSocket })
  const subscription = client.subscribe({ event: "channel", channelId: "news" })
  await within(subscription.ready, "ok")
  const thing = object()
  assert.deepEqual(await gateway.post("/v1/channel/news", { object: thing }), { deferred: false })
  let frames = 0
  for await (const frame of subscription) {
    frames += 1
    assert.equal(frame.op, "event")
    assert.equal(frame.event, "channel")
    assert.equal(frame.channelId, "news")
    assert.deepEqual(frame.data, { object: thing })
    assert.match(frame.cursor, /^[0-9a-z]+-[0-9a-z]+$/)
    assert.ok(frame.size > JSON.stringify(frame.data).length)
    break
  }
  assert.equal(frames, 1)
  assert.equal(subscription.reason, "closed")
  const [subscribe, unsubscribe] = WebSocket.sent
  assert.equal(subscribe.op, "subscribe")
  assert.deepEqual(unsubscribe, { op: "unsubscribe", id: subscribe.id })
  // The reply to `unsubscribe` is not mistaken for the reply to a publication.
  assert.deepEqual(await client.publish({ event: "channel", channelId: "news", data: { object: thing } }), {
    deferred: false,
  })
})

test("A subscription has one iterator, with one pending next() at a time", async (t) => {
  const client = connect(t, gateway.url)
  const subscription = client.subscribe({ event: "deadvertise" })
  const iterator = subscription[Symbol.asyncIterator]()
  assert.throws(() => subscription[Symbol.asyncIterator](), TypeError)
  const first = iterator.next()
  await assert.rejects(iterator.next(), TypeError)
  await iterator.return()
  assert.deepEqual(await first, { value: undefined, done: true })
  assert.deepEqual(await iterator.next(), { value: undefined, done: true })
  await assert.rejects(subscription.ready, { type: "urn:coaty-client:problem:ended" })
})

test("An abort signal ends a subscription, and a signal that is already aborted prevents it", async (t) => {
  const client = connect(t, gateway.url)
  const abortion = new AbortController()
  const subscription = client.subscribe({ event: "discover" }, { signal: abortion.signal })
  await within(subscription.ready, "ok")
  const iterator = subscription[Symbol.asyncIterator]()
  const waiting = iterator.next()
  abortion.abort()
  assert.deepEqual(await waiting, { value: undefined, done: true })
  assert.equal(subscription.reason, "closed")
  const late = client.subscribe({ event: "discover" }, { signal: abortion.signal })
  for await (const _ of late) assert.fail()
  assert.equal(late.reason, "closed")
})

test("close() ends the loop and discards queued events", async (t) => {
  const client = connect(t, gateway.url)
  const subscription = client.subscribe({ event: "channel", channelId: "closing" })
  const second = client.subscribe({ event: "channel", channelId: "closing" })
  await within(Promise.all([subscription.ready, second.ready]), "ok")
  await gateway.post("/v1/channel/closing", { object: object() })
  await gateway.post("/v1/channel/closing", { object: object() })
  let events = 0
  await takeUntil(second[Symbol.asyncIterator](), () => ++events === 2)
  subscription.close()
  for await (const _ of subscription) assert.fail()
})

test("Each two-way pattern delivers a request and its response", async (t) => {
  const responder = connect(t, gateway.url)
  const client = connect(t, gateway.url)
  await client.online()
  const thing = object()
  const patterns = [
    [{ event: "discover", data: { objectTypes: [thing.objectType] } }, { event: "discover" }, "resolve", { object: thing }],
    [
      { event: "query", data: { objectTypes: [thing.objectType], objectFilter: { take: 1 } } },
      { event: "query" },
      "retrieve",
      { objects: [thing] },
    ],
    [
      { event: "update", data: { object: thing } },
      { event: "update", objectType: thing.objectType },
      "complete",
      { object: thing },
    ],
    [
      { event: "call", operation: "com.example.add", data: { parameters: [1, 2] } },
      { event: "call", operation: "com.example.add" },
      "return",
      { result: 3 },
    ],
  ]
  for (const [request, observation, response, data] of patterns) {
    const subscription = responder.subscribe(observation)
    await within(subscription.ready, "ok")
    const all = client.request(request, { timeout: maximumWait }).all()
    const frame = await next(subscription[Symbol.asyncIterator](), request.event)
    assert.deepEqual(frame.data, request.data)
    assert.deepEqual(await responder.respond(frame, data), { deferred: false })
    const { responses, reason } = await within(all, response)
    assert.equal(reason, "limit")
    assert.equal(responses.length, 1)
    assert.equal(responses[0].event, response)
    assert.deepEqual(responses[0].data, data)
    assert.ok(responses[0].ms >= 0)
    subscription.close()
  }
})

test("Responses are delivered in order until the `until` condition matches", async (t) => {
  const client = connect(t, gateway.url)
  await client.online()
  const requests = client.subscribe({ event: "discover" })
  await within(requests.ready, "ok")
  const responses = client.request(
    { event: "discover", data: { objectTypes: ["com.example.Count"] } },
    { limit: 0, timeout: maximumWait, until: ["number", ["Equals", 2]] },
  )
  const request = await next(requests[Symbol.asyncIterator](), "discover")
  const numbers = []
  const counted = () => ({ object: object({ objectType: "com.example.Count", number: numbers.length }) })
  await client.respond({ event: "resolve", correlationId: request.correlationId }, counted())
  for await (const { data } of responses) {
    numbers.push(data.object.number)
    if (numbers.length < 3) await client.respond(request, counted())
  }
  assert.deepEqual(numbers, [0, 1, 2])
  assert.equal(responses.reason, "until")
})

test("A request ends at its timeout, on an abort signal, and when its loop is left", async (t) => {
  const WebSocket = recording()
  const client = connect(t, gateway.url, { WebSocket })
  await client.online()
  const unanswered = { event: "call", operation: "com.example.nobody", data: {} }
  assert.deepEqual(await client.request(unanswered, { timeout: 1 }).all(), { responses: [], reason: "timeout" })

  const signal = AbortSignal.abort()
  assert.deepEqual(await client.request(unanswered, { signal }).all(), { responses: [], reason: "cancelled" })

  const abortion = new AbortController()
  const aborted = client.request(unanswered, { timeout: maximumWait, signal: abortion.signal }).all()
  abortion.abort()
  assert.deepEqual(await aborted, { responses: [], reason: "cancelled" })

  const left = client.request({ event: "discover", data: { coreTypes: ["Identity"] } }, { limit: 0, timeout: maximumWait })
  for await (const { data } of left) {
    assert.equal(data.object.coreType, "Identity")
    break
  }
  assert.equal(left.reason, "cancelled")
  const cancels = WebSocket.sent.filter(({ op }) => op === "cancel")
  assert.equal(cancels.length, 2)
})

test("Responses received before a cancellation are delivered", async (t) => {
  const client = connect(t, gateway.url)
  await client.online()
  const request = { event: "discover", data: { coreTypes: ["Identity"] } }
  const abortion = new AbortController()
  const kept = client.request(request, { limit: 0, timeout: maximumWait, signal: abortion.signal })
  // The gateway answers the earlier of two equal requests first.
  const iterator = client.request(request, { timeout: maximumWait, limit: 0 })[Symbol.asyncIterator]()
  await next(iterator, "response")
  await iterator.return()
  abortion.abort()
  const { responses, reason } = await kept.all()
  assert.equal(reason, "cancelled")
  assert.equal(responses[0].data.object.name, "coaty-gateway")
})

test("A refusal by the gateway is thrown with its pointer", async (t) => {
  const client = connect(t, gateway.url)
  await client.online()
  await assert.rejects(client.publish({ event: "deadvertise", data: { objectIds: 1 } }), (error) => {
    assert.ok(isRefusal("invalid-value", 400)(error))
    assert.equal(error.pointer, "/data/objectIds")
    assert.equal(error.message, error.detail)
    return true
  })
  await assert.rejects(client.respond({ event: "call", correlationId: object().objectId }, { result: 1 }), { status: 404 })
  await assert.rejects(client.request({ event: "call", operation: "a/b", data: {} }).all(), { status: 400 })

  const wrong = client.subscribe({ event: "channel", channelId: "a#" })
  await assert.rejects(wrong.ready, { status: 400 })
  await assert.rejects(async () => {
    for await (const _ of wrong) assert.fail()
  }, { status: 400 })
  assert.equal(wrong.reason, "error")

  const cyclic = {}
  cyclic.self = cyclic
  assert.throws(() => client.subscribe({ event: "query" }, { filter: cyclic }), TypeError)
  await assert.rejects(client.publish({ event: "advertise", data: cyclic }), TypeError)
})

test("A frame that is too large closes the connection, and the client reconnects", async (t) => {
  const client = connect(t, gateway.url)
  const subscription = client.subscribe({ event: "channel", channelId: "large" })
  const iterator = subscription[Symbol.asyncIterator]()
  await within(subscription.ready, "ok")
  const large = { event: "channel", channelId: "large", data: { object: object({ text: "x".repeat(2 * 1024 * 1024) }) } }
  await assert.rejects(within(client.publish(large), "end"), {
    type: "urn:coaty-client:problem:disconnected",
    message: /\(message too big\)/,
  })
  await within(client.online(), "connection")
  await client.publish({ event: "channel", channelId: "large", data: { object: object({ text: "small" }) } })
  assert.equal((await next(iterator)).data.object.text, "small")
})

test("A connection has at most 256 subscriptions, and ending one frees its place", async (t) => {
  const client = connect(t, gateway.url)
  const subscriptions = []
  for (let i = 0; i < 256; i++) subscriptions.push(client.subscribe({ event: "channel", channelId: `c${i}` }))
  await within(Promise.all(subscriptions.map(({ ready }) => ready)), "ok")
  const refused = client.subscribe({ event: "channel", channelId: "beyond the limit" })
  await assert.rejects(refused[Symbol.asyncIterator]().next(), { type: "urn:coaty-client:problem:busy" })
  subscriptions[7].close()
  await within(client.subscribe({ event: "channel", channelId: "after one ended" }).ready, "ok")
})

test("A client with an identity publishes under its own ID", async (t) => {
  const client = connect(t, gateway.url)
  // The client is not connected yet.
  const identity = await within(client.identify("Kiosk"), "identity")
  assert.equal(identity.name, "Kiosk")
  assert.equal(client.state, "online")
  assert.deepEqual(client.identity, identity)
  await assert.rejects(client.identify("Another"), { type: "urn:coaty-client:problem:identified" })
  const other = connect(t, gateway.url)
  const news = other.subscribe({ event: "channel", channelId: "kiosk" })
  await within(news.ready, "ok")
  await client.publish({ event: "channel", channelId: "kiosk", data: { object: object() } })
  assert.equal((await next(news[Symbol.asyncIterator]())).sourceId, identity.objectId)
})

test("A refused identity is not requested again", async (t) => {
  const WebSocket = recording()
  const client = connect(t, gateway.url, { WebSocket })
  await assert.rejects(within(client.identify(""), "answer"), { status: 400 })
  await state(client, "online")
  assert.equal((await within(client.identify("Second thoughts"), "identity")).name, "Second thoughts")
})

test("A slow consumer gets the newest events and a gap with the number of dropped events", async (t) => {
  const client = connect(t, gateway.url)
  const publisher = connect(t, gateway.url)
  await publisher.online()
  const wanted = { event: "channel", channelId: "flood" }
  const [slow, fast] = [client.subscribe(wanted, { buffer: 4096 }), client.subscribe(wanted, { buffer: 4096 })]
  await within(Promise.all([slow.ready, fast.ready]), "ok")
  const total = 6000
  const thing = object()
  const publishing = (async () => {
    for (let i = 1; i <= total; i += 500) {
      const some = Array.from({ length: 500 }, (_, k) => ({ object: { ...thing, number: i + k } }))
      await Promise.all(some.map((data) => publisher.publish({ ...wanted, data })))
    }
  })()
  const isLast = (frame) => frame.op === "event" && frame.data.object.number === total
  const count = (frames) => frames.reduce((sum, { op, dropped }) => sum + (op === "gap" ? dropped : 1), 0)
  assert.equal(count(await takeUntil(fast[Symbol.asyncIterator](), isLast)), total)
  await publishing
  const frames = await takeUntil(slow[Symbol.asyncIterator](), isLast)
  assert.equal(frames[0].op, "gap")
  assert.equal(frames[0].where, "client")
  assert.ok(frames[0].dropped >= total - 4096 - 1)
  assert.ok(frames.length <= 4097)
  assert.equal(count(frames), total)
})

test("Raw payloads are delivered unchanged", async (t) => {
  const client = connect(t, gateway.url)
  const base64 = client.subscribe({ event: "raw", topic: "greenhouse/door" })
  const binary = client.subscribe({ event: "raw", topic: "greenhouse/+" }, { encoding: "binary" })
  await within(Promise.all([base64.ready, binary.ready]), "ok")
  await client.publish({ event: "raw", topic: "greenhouse/door", data: { encoding: "utf8", value: "open\n{" } })
  assert.deepEqual((await next(base64[Symbol.asyncIterator]())).data, { encoding: "base64", value: btoa("open\n{") })
  const { data, topic } = await next(binary[Symbol.asyncIterator]())
  assert.equal(topic, "greenhouse/door")
  assert.equal(data.encoding, "binary")
  assert.deepEqual([...data.octets], [...new TextEncoder().encode("open\n{")])
})

test("Closing the client ends its subscriptions, requests and publications", async (t) => {
  const client = connect(t, gateway.url)
  await client.online()
  const states = []
  client.addEventListener("statechange", ({ detail }) => states.push(detail.state))
  const subscription = client.subscribe({ event: "deadvertise" })
  await within(subscription.ready, "ok")
  const frame = subscription[Symbol.asyncIterator]().next()
  const responses = client.request({ event: "call", operation: "com.example.nobody", data: {} }, { timeout: maximumWait })
  const publication = client.publish({ event: "deadvertise", data: { objectIds: [object().objectId] } })
  client.close()
  client.close()
  assert.deepEqual(await frame, { value: undefined, done: true })
  assert.deepEqual(await responses.all(), { responses: [], reason: "closed" })
  await assert.rejects(publication, { type: "urn:coaty-client:problem:closed" })
  await assert.rejects(client.online(), { type: "urn:coaty-client:problem:closed" })
  await assert.rejects(client.identify("Late"), { type: "urn:coaty-client:problem:closed" })
  await assert.rejects(client.request({ event: "discover", data: {} }).all(), { type: "urn:coaty-client:problem:closed" })
  await assert.rejects(client.subscribe({ event: "discover" })[Symbol.asyncIterator]().next(), {
    type: "urn:coaty-client:problem:closed",
  })
  assert.deepEqual(states, ["closed"])
})

test("A closed client does not keep the process running, whether it was online or connecting", async () => {
  const support = new URL("support.mjs", import.meta.url)
  const program = `
    import { CoatyClient, WebSocket } from ${JSON.stringify(support.href)}
    const options = { WebSocket }
    const client = new CoatyClient(${JSON.stringify(gateway.url)}, options)
    const subscription = client.subscribe({ event: "deadvertise" })
    await subscription.ready
    client.close()
    new CoatyClient(${JSON.stringify(gateway.url)}, options).close()
    const refused = new CoatyClient("http://127.0.0.1:1", options)
    refused.addEventListener("statechange", () => { refused.close(); console.log("closed") }, { once: true })`
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ["--input-type=module", "-e", program],
    { timeout: maximumWait },
  )
  assert.equal(stdout, "closed\n")
})
