// What a JavaScript programmer would write instead of the gateway, with Debian's node-mqtt and node-ws: POST /v1/advertise,
// POST /v1/discover, and GET /v1/ws/channel?channelId=… as a WebSocket.
//
// usage: node bridge.js BROKER_PORT
"use strict"
const http = require("http")
const { randomUUID } = require("crypto")
const mqtt = require("mqtt")
const { WebSocketServer } = require("ws")

const ownId = randomUUID()
const isUUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const pending = new Map() // correlation id -> function that takes a response
const channels = new Map() // channel id -> its WebSockets
const broker = mqtt.connect(`mqtt://127.0.0.1:${process.argv[2]}`)
broker.on("connect", () => broker.stream.setNoDelay(true))

broker.on("message", (topic, payload) => {
  const [, , , event, sourceId, correlationId] = topic.split("/")
  if (event === "RSV") {
    pending.get(correlationId)?.({ sourceId, data: JSON.parse(payload) })
  } else if (event.startsWith("CHN:")) {
    const data = JSON.parse(payload)
    const frame = JSON.stringify({ op: "event", event: "channel", sourceId, data })
    for (const socket of channels.get(event.slice(4)) ?? []) socket.send(frame)
  }
})

function advertise(body) {
  const { object } = body
  if (!object?.coreType || !object.objectType || !isUUID.test(object.objectId)) return [400, { title: "Not an object" }]
  const payload = JSON.stringify(body)
  broker.publish(`coaty/3/-/ADV:${object.coreType}/${ownId}`, payload)
  if (object.objectType !== `coaty.${object.coreType}`) broker.publish(`coaty/3/-/ADV::${object.objectType}/${ownId}`, payload)
  return [202, { deferred: false }]
}

async function discover(body) {
  const correlationId = randomUUID()
  const topic = `coaty/3/-/RSV/+/${correlationId}`
  const start = Date.now()
  const response = new Promise((resolve) => {
    const timer = setTimeout(resolve, 2000)
    pending.set(correlationId, (found) => (clearTimeout(timer), resolve(found)))
  })
  broker.subscribe(topic)
  broker.publish(`coaty/3/-/DSC/${ownId}/${correlationId}`, JSON.stringify(body))
  const found = await response
  pending.delete(correlationId)
  broker.unsubscribe(topic)
  return [200, found ? { responses: [{ ...found, ms: Date.now() - start }], reason: "limit" } : { responses: [], reason: "timeout" }]
}

const handlers = { "/v1/advertise": advertise, "/v1/discover": discover }

const server = http.createServer((request, response) => {
  const chunks = []
  request.on("data", (chunk) => chunks.push(chunk))
  request.on("end", async () => {
    let status, answer
    try {
      const handler = request.method === "POST" && handlers[request.url.split("?")[0]]
      ;[status, answer] = handler ? await handler(JSON.parse(Buffer.concat(chunks))) : [404, { title: "Not found" }]
    } catch (error) {
      ;[status, answer] = [400, { title: error.message }]
    }
    const text = JSON.stringify(answer)
    response.writeHead(status, { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(text) })
    response.end(text)
  })
})

new WebSocketServer({ server }).on("connection", (socket, request) => {
  const channelId = new URL(request.url, "http://localhost").searchParams.get("channelId")
  const sockets = channels.get(channelId) ?? new Set()
  channels.set(channelId, sockets.add(socket))
  socket.on("close", () => sockets.delete(socket))
  broker.subscribe(`coaty/3/-/CHN:${channelId}/+`, () => socket.send('{"op":"ok"}'))
})

broker.once("connect", () => server.listen(0, "127.0.0.1", () => console.log(`ready on http://127.0.0.1:${server.address().port}`)))
