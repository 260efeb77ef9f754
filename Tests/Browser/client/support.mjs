// Test support: a broker, a gateway, a TCP proxy that can cut connections, and a scripted gateway.

import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { createServer } from "node:http"
import { createRequire } from "node:module"
import net from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { after, before } from "node:test"
import { setTimeout as sleep } from "node:timers/promises"
import { CoatyClient } from "../../../Sources/CoatyGateway/Console/client.js"

export const { WebSocket, WebSocketServer } = createRequire(import.meta.url)("ws")
export { CoatyClient, CoatyEventSource, GatewayError, parseExact, stringifyExact, ticketUrl } from "../../../Sources/CoatyGateway/Console/client.js"

/** The longest wait for anything, in milliseconds. It is generous, for busy machines. */
export const maximumWait = 60_000

/** Awaits a promise for at most `maximumWait`. @param what what the promise stands for, for the error message */
export async function within(promise, what) {
  let timer
  const deadline = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no ${what} within ${maximumWait} ms`)), maximumWait)
  })
  try {
    return await Promise.race([promise, deadline])
  } finally {
    clearTimeout(timer)
  }
}

/** Returns the frames of an iterator, up to the first that satisfies `isWanted`. */
export async function takeUntil(iterator, isWanted, what = "frame") {
  const frames = []
  for (;;) {
    const { value, done } = await within(iterator.next(), what)
    if (done) throw new Error(`the iterator ended before a ${what}`)
    frames.push(value)
    if (isWanted(value)) return frames
  }
}

export const next = async (iterator, what) => (await takeUntil(iterator, () => true, what))[0]

/** Waits until a client has the state `wanted`. */
export async function state(client, wanted) {
  while (client.state !== wanted) {
    await within(new Promise((resolve) => client.addEventListener("statechange", resolve, { once: true })), wanted)
  }
}

/** Creates a client and closes it after the test. */
export function connect(t, url, options = {}) {
  const client = new CoatyClient(url, { WebSocket, ...options })
  t.after(() => client.close())
  return client
}

/** Returns a WebSocket class that records the frames it sends, in `sent`. */
export function recording() {
  return class Recording extends WebSocket {
    static sent = []
    send(text) {
      Recording.sent.push(JSON.parse(text))
      super.send(text)
    }
  }
}

let counter = 0
/** Returns a Coaty object with a new ID. */
export function object(members = {}) {
  const objectId = `c2a4f1de-5b7c-4a6e-8a35-${String(++counter).padStart(12, "0")}`
  return { coreType: "CoatyObject", objectType: "com.example.Thing", objectId, name: `Thing ${counter}`, ...members }
}

export async function freePort() {
  const server = net.createServer().listen(0, "127.0.0.1")
  await once(server, "listening")
  const { port } = server.address()
  server.close()
  await once(server, "close")
  return port
}

async function isListening(port) {
  const socket = net.connect(port, "127.0.0.1")
  try {
    await once(socket, "connect")
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}

/** A child process that can be killed and restarted with the same arguments. */
class Server {
  process
  async kill(signal = "SIGKILL") {
    const { process } = this
    this.process = undefined
    if (!process || process.exitCode !== null || process.signalCode !== null) return
    process.kill(signal)
    await within(once(process, "exit"), "end of a server")
  }
}

export class Broker extends Server {
  static async start(t) {
    const broker = new Broker()
    broker.port = await freePort()
    broker.folder = await mkdtemp(join(tmpdir(), "coaty-client-"))
    await writeFile(
      join(broker.folder, "mosquitto.conf"),
      `listener ${broker.port} 127.0.0.1\nallow_anonymous true\nset_tcp_nodelay true\npersistence false\n`,
    )
    t.after(async () => {
      await broker.kill()
      await rm(broker.folder, { recursive: true })
    })
    await broker.start()
    return broker
  }

  async start() {
    const path = `${process.env.PATH}:/usr/sbin`
    const options = { stdio: "ignore", env: { ...process.env, PATH: path } }
    const child = spawn("mosquitto", ["-c", join(this.folder, "mosquitto.conf")], options)
    this.process = child
    const deadline = Date.now() + maximumWait
    // mosquitto prints nothing when it is ready, so its port is polled.
    while (!(await isListening(this.port))) {
      if (child.exitCode !== null || Date.now() > deadline) throw new Error("the broker did not start")
      await sleep(20)
    }
  }
}

export class Gateway extends Server {
  /** @param configuration YAML */
  static async start(t, broker, { configuration = "", settings = [], environment = {} } = {}) {
    const gateway = new Gateway()
    gateway.port = await freePort()
    gateway.folder = await mkdtemp(join(tmpdir(), "coaty-client-"))
    gateway.broker = broker
    gateway.settings = settings
    gateway.environment = environment
    t.after(async () => {
      await gateway.kill()
      await rm(gateway.folder, { recursive: true })
    })
    await gateway.start(configuration)
    return gateway
  }

  async start(configuration = "") {
    const file = join(this.folder, "gateway.yaml")
    await writeFile(file, configuration)
    const binary = process.env.COATY_GATEWAY_BINARY
    if (!binary) throw new Error("set COATY_GATEWAY_BINARY to the path of the gateway")
    const { broker, port, settings, environment } = this
    const child = spawn(
      binary,
      ["--config", file, "--port", port, "--broker", `mqtt://127.0.0.1:${broker.port}`, ...settings].map(String),
      // The gateway rejects unknown COATY_GATEWAY_ variables.
      { stdio: ["ignore", "pipe", "ignore"], env: { ...process.env, COATY_GATEWAY_BINARY: undefined, ...environment } },
    )
    this.process = child
    let output = ""
    child.stdout.setEncoding("utf8")
    await within(
      new Promise((resolve, reject) => {
        child.stdout.on("data", (text) => {
          output += text
          if (/ ready on /.test(output)) resolve()
        })
        child.once("exit", () => reject(new Error(`the gateway did not start: ${output}`)))
      }),
      "gateway",
    )
    await this.waitUntilReady()
  }

  /** Reloads the gateway with another access configuration. @param configuration YAML */
  async reload(configuration) {
    await writeFile(join(this.folder, "gateway.yaml"), configuration)
    this.process.kill("SIGHUP")
  }

  /** Waits until the gateway is connected to its broker. */
  async waitUntilReady() {
    const deadline = Date.now() + maximumWait
    while (!(await fetch(`${this.url}/readyz`)).ok) {
      if (Date.now() > deadline) throw new Error("the gateway did not connect to the broker")
      await sleep(20)
    }
  }

  get url() {
    return `http://127.0.0.1:${this.port}`
  }

  async post(path, body) {
    const answer = await fetch(this.url + path, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    })
    return answer.json()
  }
}

/** A TCP proxy that can reset connections, refuse them, or stop forwarding without closing them. */
export class Proxy {
  #pairs = new Set()
  connections = 0
  /** Whether new connections are closed at once. */
  isRefusing = false
  /** Whether new connections are accepted but nothing is forwarded. */
  isSilent = false

  static async start(t, target) {
    const proxy = new Proxy()
    proxy.server = net.createServer((socket) => proxy.#accept(socket, target))
    proxy.server.listen(0, "127.0.0.1")
    await once(proxy.server, "listening")
    t.after(() => {
      proxy.cut()
      proxy.server.close()
    })
    return proxy
  }

  get url() {
    return `http://127.0.0.1:${this.server.address().port}`
  }

  #accept(socket, target) {
    this.connections += 1
    socket.on("error", () => {})
    if (this.isRefusing) return socket.destroy()
    const pair = [socket]
    if (!this.isSilent) {
      const far = net.connect(target, "127.0.0.1")
      far.on("error", () => socket.destroy())
      far.on("close", () => socket.destroy())
      socket.on("close", () => far.destroy())
      socket.pipe(far)
      far.pipe(socket)
      pair.push(far)
    }
    this.#pairs.add(pair)
    socket.on("close", () => this.#pairs.delete(pair))
    this.server.emit("accepted")
  }

  /** Resets all connections. */
  cut() {
    for (const [socket] of this.#pairs) socket.resetAndDestroy()
  }

  /** Stops forwarding on the open connections and leaves them open. */
  goDead() {
    for (const [socket, far] of this.#pairs) {
      socket.unpipe()
      far?.unpipe()
    }
  }
}

/** Starts a WebSocket server that sends the frames a test asks for. `received()` returns the next frame from a client. */
export async function scriptedGateway(t) {
  const server = new WebSocketServer({ host: "127.0.0.1", port: 0 })
  await once(server, "listening")
  t.after(() => {
    for (const socket of server.clients) socket.terminate()
    server.close()
  })
  const frames = []
  const waiting = []
  server.on("connection", (socket) => {
    socket.on("message", (text) => {
      const frame = JSON.parse(text)
      const taker = waiting.shift()
      if (taker) taker(frame)
      else frames.push(frame)
    })
  })
  return {
    url: `ws://127.0.0.1:${server.address().port}`,
    server,
    received: () => within(frames.length > 0 ? frames.shift() : new Promise((resolve) => waiting.push(resolve)), "frame"),
    send: (frame) => {
      for (const socket of server.clients) socket.send(typeof frame === "string" ? frame : JSON.stringify(frame))
    },
  }
}

/** Starts one gateway with a broker for all tests of a file, and passes it to `take` before the first test. */
export function sharedGateway(take) {
  const ends = []
  before(async () => {
    const context = { after: (end) => ends.unshift(end) }
    take(await Gateway.start(context, await Broker.start(context)))
  })
  after(async () => {
    for (const end of ends) await end()
  })
}

/** Starts an HTTP server that answers each request as the test says. `received()` returns the next request with its response. */
export async function scriptedServer(t) {
  const requests = []
  const waiting = []
  const server = createServer((request, response) => {
    const taker = waiting.shift()
    if (taker) taker({ request, response })
    else requests.push({ request, response })
  })
  await once(server.listen(0, "127.0.0.1"), "listening")
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    received: () => within(requests.length > 0 ? requests.shift() : new Promise((resolve) => waiting.push(resolve)), "request"),
  }
}

/** Replaces the window and the document of a browser during a test. Returns them. */
export function fakePage(t) {
  const page = { window: new EventTarget(), document: Object.assign(new EventTarget(), { visibilityState: "visible" }) }
  globalThis.addEventListener = page.window.addEventListener.bind(page.window)
  globalThis.removeEventListener = page.window.removeEventListener.bind(page.window)
  globalThis.document = page.document
  t.after(() => {
    delete globalThis.addEventListener
    delete globalThis.removeEventListener
    delete globalThis.document
  })
  return page
}
