// Runs the commands and the code that the console offers for events, objects and contexts, against a real gateway.

import assert from "node:assert/strict"
import { execFile } from "node:child_process"
import { webcrypto } from "node:crypto"
import { test } from "node:test"
import { promisify } from "node:util"
import { codeOfContext, codeOfEvent, codeOfObject } from "../../../Sources/CoatyGateway/Console/code-of.js"
import { connect, sharedGateway } from "../client/support.mjs"

// Some versions of node do not define it globally.
globalThis.crypto ??= webcrypto

let address
sharedGateway((started) => { address = started.url })
const object = { coreType: "CoatyObject", objectType: "com.example.Door", objectId: "5a9c1f6e-3b52-4d0a-8f6e-2f6f0a3c7d11", name: "it's $(open) `now`\n" }

async function shell(command) {
  const running = promisify(execFile)("sh", [], { encoding: "utf8" })
  running.child.stdin.end(command + "\n")
  return (await running).stdout
}

/** Runs code for client.js with the client of the test instead of its own. */
async function run(code, client) {
  const [first, , make, ...body] = code.split("\n")
  assert.match(first, /^import \{ CoatyClient \} from "http.*\/client\.js"$/)
  assert.match(make, /^const client = new CoatyClient\("http.*"\)$/)
  const AsyncFunction = (async () => {}).constructor
  await new AsyncFunction("client", "console", body.join("\n"))(client, { log: () => {} })
}

const events = {
  advertise: { event: "advertise", data: { object, privateData: { "__proto__": 1 } } },
  deadvertise: { event: "deadvertise", data: { objectIds: [object.objectId] } },
  channel: { event: "channel", channelId: "a b?c=d&e'f", data: { object } },
  discover: { event: "discover", data: { objectTypes: ["it's"] } },
  query: { event: "query", data: { objectTypes: ["t"], objectFilter: {} } },
  update: { event: "update", data: { object } },
  call: { event: "call", operation: "com.example.add'", data: { parameters: [1, "$HOME"] } },
}

for (const [name, frame] of Object.entries(events)) {
  test(`publishes ${name} again`, async (t) => {
    const client = connect(t, address)
    const received = client.subscribe({ event: "traffic", events: [name] })[Symbol.asyncIterator]()
    const next = async () => {
      const { value } = await received.next()
      return { event: value.event, data: value.data, ...(value.channelId && { channelId: value.channelId }), ...(value.operation && { operation: value.operation }) }
    }
    const subscription = client.subscribe({ event: "traffic", events: [name] })
    await subscription.ready
    subscription.close()
    const code = codeOfEvent({ ...frame, sourceId: "a", correlationId: "c", topic: "t" }, address, false)
    const expected = JSON.parse(JSON.stringify({ ...frame }))
    const answer = shell(code.curl().replace("timeout=2000", "timeout=1"))
    assert.deepEqual(await next(), expected)
    await answer
    const running = run(code.client().replace('"timeout": 2000', '"timeout": 1'), client)
    assert.deepEqual(await next(), expected)
    await running
  })
}

test("observes events that only agents publish", async () => {
  const associate = codeOfEvent({ event: "associate", contextName: "a b", data: {} }, address, false)
  assert.equal(associate.curl(), `curl -sSN '${address}/v1/sse/associate?contextName=a+b'`)
  assert.match(associate.client(), /client\.subscribe\(\{ "event": "associate", "contextName": "a b" \}\)/)
  assert.equal(codeOfEvent({ event: "return", data: {} }, address, false).curl(), `curl -sSN '${address}/v1/sse/traffic?events=return'`)
  // The gateway accepts the subscriptions.
  for (const event of ["return", "iovalue"]) {
    const command = codeOfEvent({ event, data: { value: 1 } }, address, false).curl()
    assert.match(await shell(`timeout 2 ${command} || true`), /event: ok/)
  }
})

test("publishes raw text, and observes the topic of raw octets", async () => {
  const text = codeOfEvent({ event: "raw", topic: "a/b", data: { encoding: "base64", value: Buffer.from("it's 21 °C").toString("base64") } }, address, false)
  assert.match(text.curl(), /v1\/raw\/a%2Fb' .*octet-stream/s)
  assert.deepEqual(JSON.parse(await shell(text.curl())), { deferred: false })
  assert.match(text.client(), /"encoding": "utf8", "value": "it's 21 °C"/)
  const octets = codeOfEvent({ event: "raw", topic: "a/b", data: { encoding: "base64", value: "/w==" } }, address, false)
  assert.equal(octets.curl(), `curl -sSN '${address}/v1/sse/raw?topic=a%2Fb'`)
})

test("gets an object", async (t) => {
  const client = connect(t, address)
  await client.online()
  await client.publish({ event: "advertise", data: { object } })
  const code = codeOfObject(object, address, false)
  const taken = async () => JSON.parse(await shell(code.curl())).object
  let answer
  for (let turn = 0; turn < 100 && answer?.objectId !== object.objectId; turn += 1) answer = await taken()
  assert.deepEqual(answer, object)
  assert.match(code.client(), /"snapshot": true \}, \{\n  "filter": \[/)
})

test("changes a context, or gets it", () => {
  const context = { coreType: "IoContext", objectType: "t", objectId: "b/1", name: "c", state: "it's" }
  const change = codeOfContext(context, { method: "PATCH", body: { state: "it's" } }, address, false)
  assert.equal(change.curl(), `curl -sS -X PATCH '${address}/v1/routing/contexts/b%2F1' \\\n  -H 'content-type: application/merge-patch+json' \\\n  --data-raw '{ "state": "it'\\''s" }'`)
  assert.match(change.client(), /client\.request\(\{\n  "event": "update"/)
  assert.equal(codeOfContext(context, undefined, address, false).curl(), `curl -sS '${address}/v1/routing/contexts/b%2F1'`)
})

test("the code has a placeholder for the token", () => {
  const { curl, client } = codeOfEvent({ event: "return", data: {} }, address, true)
  assert.match(curl(), /-H "authorization: Bearer \$COATY_GATEWAY_TOKEN"/)
  assert.match(client(), /\{ token: "your token" \}/)
})
