// What the tests of the client run against: a real broker, a real gateway, and a link between that can be cut.

import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { createRequire } from "node:module"
import net from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { after, before } from "node:test"
import { setTimeout as sleep } from "node:timers/promises"
import { CoatyClient } from "../../../Sources/CoatyGateway/Console/client.js"

export const { WebSocket, WebSocketServer } = createRequire(import.meta.url)("ws")
export { CoatyClient, CoatyEventSource, GatewayError, ticketUrl } from "../../../Sources/CoatyGateway/Console/client.js"

/** Milliseconds: much more than anything takes on a busy machine. */
export const patience = 60_000

/** Awaits something that may never come. */
export async function within(promise, what) {
  let timer
  const deadline = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no ${what} within ${patience} ms`)), patience)
  })
  try {
    return await Promise.race([promise, deadline])
  } finally {
    clearTimeout(timer)
  }
}

/** Takes frames from an iterator until one is as wanted; gives all of them. */
export async function takeUntil(iterator, isWanted, what = "frame") {
  const frames = []
  for (;;) {
    const { value, done } = await within(iterator.next(), what)
    if (done) throw new Error(`ended before there was a ${what}`)
    frames.push(value)
    if (isWanted(value)) return frames
  }
}

export const next = async (iterator, what) => (await takeUntil(iterator, () => true, what))[0]

/** Waits for a state of a client. */
export async function state(client, wanted) {
  while (client.state !== wanted) {
    await within(new Promise((resolve) => client.addEventListener("statechange", resolve, { once: true })), wanted)
  }
}

/** A client that is closed after the test. */
export function connect(t, url, options = {}) {
  const client = new CoatyClient(url, { WebSocket, ...options })
  t.after(() => client.close())
  return client
}

/** A class of sockets that keep what is said on them. */
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
/** An object, each time with another id. */
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

/** A process that can be killed and started again with the same arguments. */
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
    const deadline = Date.now() + patience
    // A server that says nothing can only be asked.
    while (!(await isListening(this.port))) {
      if (child.exitCode !== null || Date.now() > deadline) throw new Error("the broker does not start")
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
    if (!binary) throw new Error("COATY_GATEWAY_BINARY names no gateway")
    const { broker, port, settings, environment } = this
    const child = spawn(
      binary,
      ["--config", file, "--port", port, "--broker", `mqtt://127.0.0.1:${broker.port}`, ...settings].map(String),
      // No setting of the gateway.
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
        child.once("exit", () => reject(new Error(`the gateway does not start: ${output}`)))
      }),
      "gateway",
    )
    await this.isReady()
  }

  /** Has it read another access configuration. @param configuration YAML */
  async reload(configuration) {
    await writeFile(join(this.folder, "gateway.yaml"), configuration)
    this.process.kill("SIGHUP")
  }

  /** Waits until the gateway has its broker. */
  async isReady() {
    const deadline = Date.now() + patience
    while (!(await fetch(`${this.url}/readyz`)).ok) {
      if (Date.now() > deadline) throw new Error("the gateway has no broker")
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

/** A link to a server that can be cut, can be refused, and can go dead without anybody saying so. */
export class Proxy {
  #pairs = new Set()
  connections = 0
  /** New connections are closed at once. */
  isRefusing = false
  /** New connections are accepted, and nothing comes through. */
  isDeaf = false

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
    if (!this.isDeaf) {
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

  /** Ends all connections. */
  cut() {
    for (const [socket] of this.#pairs) socket.resetAndDestroy()
  }

  /** Lets nothing through on the connections that there are, and leaves them open. */
  goDead() {
    for (const [socket, far] of this.#pairs) {
      socket.unpipe()
      far?.unpipe()
    }
  }
}

/** A server that does as a test says; gives what it is told. */
export async function scriptedGateway(t) {
  const server = new WebSocketServer({ host: "127.0.0.1", port: 0 })
  await once(server, "listening")
  t.after(() => {
    for (const socket of server.clients) socket.terminate()
    server.close()
  })
  const told = []
  const waiting = []
  server.on("connection", (socket) => {
    socket.on("message", (text) => {
      const frame = JSON.parse(text)
      const taker = waiting.shift()
      if (taker) taker(frame)
      else told.push(frame)
    })
  })
  return {
    url: `ws://127.0.0.1:${server.address().port}`,
    server,
    told: () => within(told.length > 0 ? told.shift() : new Promise((resolve) => waiting.push(resolve)), "frame"),
    say: (frame) => {
      for (const socket of server.clients) socket.send(typeof frame === "string" ? frame : JSON.stringify(frame))
    },
  }
}

/** Starts a gateway with a broker for all tests of a file, and hands it over before the first. */
export function gatewayOfAll(take) {
  const ends = []
  before(async () => {
    const context = { after: (end) => ends.unshift(end) }
    take(await Gateway.start(context, await Broker.start(context)))
  })
  after(async () => {
    for (const end of ends) await end()
  })
}
