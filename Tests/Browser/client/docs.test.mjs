// Runs the examples of docs/browser.md and compares their output with the documented output.

import assert from "node:assert/strict"
import { readFile } from "node:fs/promises"
import { test } from "node:test"
import { connect, sharedGateway, object, WebSocket, within } from "./support.mjs"

const module = new URL("../../../Sources/CoatyGateway/Console/client.js", import.meta.url)
const text = await readFile(new URL("../../../docs/browser.md", import.meta.url), "utf8")
const blocks = [...text.matchAll(/^```(\w+)\n(.*?)^```$/gms)].map(([, language, code]) => ({ language, code }))
const AsyncFunction = (async () => {}).constructor

let gateway
sharedGateway((started) => { gateway = started })

/** Runs code with the variables `names`. The promise may stay pending until a client is closed. */
const run = (code, names) => new AsyncFunction(...Object.keys(names), code)(...Object.values(names))

test("The example page has at most twenty lines and shows events as text", async (t) => {
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
  // The page does not report when it is subscribed, so the object is advertised repeatedly.
  const thing = object({ name: "<b>bold</b>" })
  const advertising = setInterval(() => gateway.post("/v1/advertise", { object: thing }).catch(() => {}), 100)
  t.after(() => clearInterval(advertising))
  const line = await within(Promise.race([hasShown, page]), "line")
  assert.match(line, /^advertise \{.*<b>bold<\/b>/)
})

const examples = blocks.flatMap(({ language, code }, i) =>
  language === "js" && !code.startsWith("import ") ? [{ code, expected: blocks[i + 1] }] : [],
)

for (const [i, { code, expected }] of examples.entries()) {
  test(`Example ${i + 1} prints the documented output`, async (t) => {
    assert.equal(expected?.language, "text")
    const client = connect(t, gateway.url)
    let output = ""
    let matched
    const hasMatched = new Promise((resolve) => { matched = resolve })
    const pattern = new RegExp(`^${expected.code.split("…").map(RegExp.escape ?? escaped).join(".+")}$`)
    const log = (...values) => {
      output += values.join(" ") + "\n"
      if (pattern.test(output)) matched()
    }
    const example = run(code, { client, console: { log } })
    await within(Promise.race([hasMatched, example]), "documented output").catch((error) => {
      throw new Error(`${error.message}\n${output}`)
    })
    assert.match(output, pattern)
    client.close()
    await within(example, "end of the example")
  })
}

test("All examples are found", () => assert.equal(examples.length, 8))

function escaped(text) {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")
}
