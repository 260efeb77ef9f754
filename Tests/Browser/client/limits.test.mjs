// Clients that exceed their rate limits.

import assert from "node:assert/strict"
import { test } from "node:test"
import { Broker, connect, Gateway, next, object, Proxy, recording, scriptedGateway, state, within } from "./support.mjs"

const configuration = `
access:
  anonymous: [user]
  roles:
    user:
      - { observe: [channel], channels: ["*"] }
      - { publish: [channel], channels: ["*"] }
  limits:
    roles:
      user: { subscriptions: 5/s burst 1 }
`
const rateLimited = { type: "urn:coaty-gateway:problem:rate-limited", title: "Rate limited", status: 429, retryAfter: 50 }

test("Subscriptions beyond the rate are delayed, also on a new connection", async (t) => {
  const gateway = await Gateway.start(t, await Broker.start(t), { configuration })
  const proxy = await Proxy.start(t, gateway.port)
  const WebSocket = recording()
  const client = connect(t, proxy.url, { WebSocket })
  const subscriptions = Array.from({ length: 5 }, (_, index) => client.subscribe({ event: "channel", channelId: `c${index}` }))
  const begin = Date.now()
  await within(Promise.all(subscriptions.map(({ ready }) => ready)), "ok of all")
  // The first subscription is accepted at once, each of the others a fifth of a second later.
  assert.ok(Date.now() - begin >= 700)
  // Each is refused at most twice: once with the others and once as the next in line.
  const sent = WebSocket.sent.filter(({ op }) => op === "subscribe")
  assert.ok(sent.length > 5 && sent.length <= 15, `${sent.length}`)
  const iterators = subscriptions.map((subscription) => subscription[Symbol.asyncIterator]())
  for (const round of [1, 2]) {
    for (const [index, iterator] of iterators.entries()) {
      await gateway.post(`/v1/channel/c${index}`, { object: object({ round }) })
      const frame = await next(iterator)
      assert.equal(frame.op, "event")
      assert.equal(frame.data.object.round, round)
    }
    proxy.cut()
    await state(client, "connecting")
  }
})

test("A subscription is retried after `retryAfter`, and not at all if it was closed", async (t) => {
  const gateway = await scriptedGateway(t)
  const client = connect(t, gateway.url)
  const [first, second, third] = [1, 2, 3].map((number) => client.subscribe({ event: "channel", channelId: `c${number}` }))
  const frames = [await gateway.received(), await gateway.received(), await gateway.received()]
  const begin = Date.now()
  for (const { id } of frames) gateway.send({ op: "error", id, ...rateLimited, retryAfter: 300 })
  second.close()
  assert.deepEqual(await gateway.received(), { op: "unsubscribe", id: frames[1].id })
  gateway.send({ op: "error", id: frames[1].id, type: "t", title: "Unknown", status: 400 })
  const again = await gateway.received()
  assert.ok(Date.now() - begin >= 290)
  assert.deepEqual(again, frames[0])
  // The next subscription is sent after the reply to this one.
  gateway.send({ op: "ok", id: again.id })
  const last = await gateway.received()
  assert.deepEqual(last, frames[2])
  gateway.send({ op: "error", id: last.id, ...rateLimited })
  assert.deepEqual(await gateway.received(), frames[2])
  gateway.send({ op: "ok", id: last.id })
  await within(Promise.all([first.ready, third.ready]), "ok")
})

test("Refusals other than rate-limited end a subscription", async (t) => {
  const gateway = await scriptedGateway(t)
  const client = connect(t, gateway.url)
  const [first, second] = [1, 2].map((number) => client.subscribe({ event: "channel", channelId: `c${number}` }))
  const frames = [await gateway.received(), await gateway.received()]
  gateway.send({ op: "error", id: frames[0].id, ...rateLimited })
  gateway.send({ op: "error", id: frames[1].id, type: "urn:coaty-gateway:problem:too-many-subscriptions", title: "Too many", status: 429 })
  await assert.rejects(within(second.ready, "refusal"), { status: 429 })
  const again = await gateway.received()
  gateway.send({ op: "error", id: again.id, type: "urn:coaty-gateway:problem:forbidden", title: "Forbidden", status: 403 })
  await assert.rejects(within(first.ready, "refusal"), { status: 403 })
})

test("Refused publications report `retryAfter`", async (t) => {
  const gateway = await scriptedGateway(t)
  const client = connect(t, gateway.url)
  await within(client.online(), "connection")
  const published = client.publish({ event: "channel", channelId: "c", data: { object: object() } })
  gateway.send({ op: "error", id: (await gateway.received()).id, ...rateLimited })
  await assert.rejects(within(published, "refusal"), { status: 429, retryAfter: 50 })
})
