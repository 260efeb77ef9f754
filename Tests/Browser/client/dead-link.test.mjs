// Tests that wait for the client's own timeouts. The timeouts are long, so the tests run concurrently.

import assert from "node:assert/strict"
import { once } from "node:events"
import { describe, test } from "node:test"
import { Broker, CoatyEventSource, connect, Gateway, next, object, Proxy, state, within } from "./support.mjs"

describe("A connection that stops forwarding", { concurrency: true }, () => {
  test("is detected, and no events are dropped", async (t) => {
    const gateway = await Gateway.start(t, await Broker.start(t))
    const proxy = await Proxy.start(t, gateway.port)
    const client = connect(t, proxy.url)
    const subscription = client.subscribe({ event: "channel", channelId: "news" })
    await within(subscription.ready, "ok")
    proxy.goDead()
    await gateway.post("/v1/channel/news", { object: object({ number: 1 }) })
    const reason = new Promise((resolve) => {
      client.addEventListener("statechange", ({ detail }) => resolve(detail.reason), { once: true })
    })
    const { op, data } = await next(subscription[Symbol.asyncIterator](), "event")
    assert.equal(await reason, "the gateway does not answer")
    assert.equal(op, "event")
    assert.equal(data.object.number, 1)
  })

  test("is not reported as online if it never forwarded anything", async (t) => {
    const gateway = await Gateway.start(t, await Broker.start(t))
    const proxy = await Proxy.start(t, gateway.port)
    proxy.isSilent = true
    const client = connect(t, proxy.url)
    const [{ detail }] = await within(
      new Promise((resolve) => client.addEventListener("statechange", (event) => resolve([event]), { once: true })),
      "end of the attempt",
    )
    assert.equal(detail.reason, "the gateway does not answer")
    proxy.isSilent = false
    await within(client.online(), "connection")
  })

  test("is distinguished from an idle connection", async (t) => {
    const gateway = await Gateway.start(t, await Broker.start(t))
    const pings = deferred()
    let isAsked = false
    const { WebSocket } = await import("./support.mjs")
    class Listening extends WebSocket {
      constructor(...options) {
        super(...options)
        this.on("message", (text) => JSON.parse(text).op === "pong" && isAsked && pings.resolve())
      }
      send(text) {
        isAsked ||= JSON.parse(text).op === "ping"
        super.send(text)
      }
    }
    const client = connect(t, gateway.url, { WebSocket: Listening })
    await within(client.online(), "connection")
    client.addEventListener("statechange", ({ detail }) => pings.reject(new Error(detail.reason)))
    await within(pings.promise, "pong")
    await client.publish({ event: "deadvertise", data: { objectIds: [object().objectId] } })
    await state(client, "online")
  })

  test("is detected by an event stream, and no events are dropped", async (t) => {
    const gateway = await Gateway.start(t, await Broker.start(t))
    const proxy = await Proxy.start(t, gateway.port)
    const source = new CoatyEventSource(`${proxy.url}/v1/sse/channel?channelId=news`)
    t.after(() => source.close())
    await within(once(source, "ok"), "ok")
    const error = once(source, "error")
    const event = once(source, "event")
    proxy.goDead()
    await gateway.post("/v1/channel/news", { object: object({ number: 1 }) })
    assert.equal((await within(error, "error"))[0].error.type, "urn:coaty-client:problem:disconnected")
    assert.equal(JSON.parse((await within(event, "event"))[0].data).data.object.number, 1)
  })

  test("is distinguished from an idle event stream", async (t) => {
    const gateway = await Gateway.start(t, await Broker.start(t))
    // The limit of a page that was shown again: a heartbeat must arrive in it.
    const source = new CoatyEventSource(`${gateway.url}/v1/sse/channel?channelId=news`, { silenceTimeout: 20_000 })
    t.after(() => source.close())
    const errors = []
    source.addEventListener("error", (event) => errors.push(event))
    await within(once(source, "ok"), "ok")
    await new Promise((resolve) => setTimeout(resolve, 45_000))
    assert.deepEqual(errors, [])
    assert.equal(source.readyState, 1)
  })

  test("does not leave publications and requests pending if the gateway can't read their frames", async (t) => {
    const gateway = await Gateway.start(t, await Broker.start(t))
    const client = connect(t, gateway.url)
    await within(client.online(), "connection")
    let deep = 1
    for (let depth = 0; depth < 600; depth += 1) deep = [deep]
    const refused = { type: "urn:coaty-client:problem:unanswered" }
    const asked = client.request({ event: "call", operation: "com.example.add", data: { parameters: deep } })
    await Promise.all([
      assert.rejects(within(client.publish({ event: "deadvertise", data: { objectIds: deep } }), "refusal"), refused),
      assert.rejects(within(asked.all(), "refusal"), refused),
    ])
    await client.publish({ event: "deadvertise", data: { objectIds: [object().objectId] } })
  })
})

function deferred() {
  let resolve, reject
  const promise = new Promise((yes, no) => {
    resolve = yes
    reject = no
  })
  return { promise, resolve, reject }
}
