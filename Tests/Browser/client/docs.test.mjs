// What docs/browser.md shows does what it says.

import assert from "node:assert/strict"
import { readFile } from "node:fs/promises"
import { test } from "node:test"
import { connect, gatewayOfAll, object, WebSocket, within } from "./support.mjs"

const module = new URL("../../../Sources/CoatyGateway/Console/client.js", import.meta.url)
const text = await readFile(new URL("../../../docs/browser.md", import.meta.url), "utf8")
const blocks = [...text.matchAll(/^```(\w+)\n(.*?)^```$/gms)].map(([, language, code]) => ({ language, code }))
const AsyncFunction = (async () => {}).constructor

let gateway
gatewayOfAll((started) => { gateway = started })

/** Runs code with some names; its end, which may not come before a client is closed. */
const run = (code, names) => new AsyncFunction(...Object.keys(names), code)(...Object.values(names))

test("The page is one of twenty lines, and shows events as text", async (t) => {
  const pages = blocks.filter(({ language }) => language === "html")
  assert.equal(pages.length, 1)
  const [{ code }] = pages
  assert.ok(code.trim().split("\n").length <= 20)
  const script = code.match(/<script type="module">\n(.*?)<\/script>/s)[1]
  const [statement, url] = script.match(/import \{ CoatyClient \} from "(.*?)"\n/)
  assert.equal(new URL(url).pathname, "/client.js")

  const { CoatyClient } = await import(module)
  const clients = []
  class Client extends CoatyClient {
    constructor() {
      super(gateway.url, { WebSocket })
      clients.push(this)
    }
  }
  t.after(() => clients.forEach((client) => client.close()))
  let shown
  const hasShown = new Promise((resolve) => { shown = resolve })
  const list = {
    children: [],
    prepend(item) {
      this.children.unshift(item)
      if (item.textContent.includes("<b>")) shown(item.textContent)
    },
  }
  const document = { querySelector: () => list, createElement: () => ({}) }
  const page = run(script.replace(statement, ""), { CoatyClient: Client, document })
  // Nothing says when the page observes.
  const thing = object({ name: "<b>bold</b>" })
  const telling = setInterval(() => gateway.post("/v1/advertise", { object: thing }).catch(() => {}), 100)
  t.after(() => clearInterval(telling))
  const line = await within(Promise.race([hasShown, page]), "line")
  assert.match(line, /^advertise \{.*<b>bold<\/b>/)
})

const examples = blocks.flatMap(({ language, code }, i) =>
  language === "js" && !code.startsWith("import ") ? [{ code, expected: blocks[i + 1] }] : [],
)

for (const [i, { code, expected }] of examples.entries()) {
  test(`Example ${i + 1} says what is below it`, async (t) => {
    assert.equal(expected?.language, "text")
    const client = connect(t, gateway.url)
    let output = ""
    let told
    const isTold = new Promise((resolve) => { told = resolve })
    const pattern = new RegExp(`^${expected.code.split("…").map(RegExp.escape ?? escaped).join(".+")}$`)
    const log = (...values) => {
      output += values.join(" ") + "\n"
      if (pattern.test(output)) told()
    }
    const example = run(code, { client, console: { log } })
    await within(Promise.race([isTold, example]), `output like this, but:\n${output}`).catch((error) => {
      throw new Error(`${error.message}\n${output}`)
    })
    assert.match(output, pattern)
    client.close()
    await within(example, "end of the example")
  })
}

test("All examples are looked at", () => assert.equal(examples.length, 8))

function escaped(text) {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")
}
