// Installs the package of the client module in a new project and uses it.

import assert from "node:assert/strict"
import { execFile } from "node:child_process"
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { after, before, test } from "node:test"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { sharedGateway } from "./support.mjs"

const run = promisify(execFile)
const console = fileURLToPath(new URL("../../../Sources/CoatyGateway/Console/", import.meta.url))
// Debian installs the package ws and the type declarations here.
const modules = process.env.NODE_PATH ?? "/usr/share/nodejs"

let gateway
sharedGateway((started) => { gateway = started })

let project
before(async () => {
  project = await mkdtemp(join(tmpdir(), "coaty-package-"))
  const { stdout } = await run("npm", ["pack", console, "--json", "--pack-destination", project])
  const [{ filename, files, version }] = JSON.parse(stdout)
  assert.deepEqual(files.map(({ path }) => path).sort(), ["README.md", "client.d.ts", "client.js", "package.json"])
  const contract = await readFile(new URL("../../../openapi.yaml", import.meta.url), "utf8")
  assert.equal(version, contract.match(/^ {2}version: (\S+)$/m)[1], "the package has the version of the gateway")
  await writeFile(join(project, "package.json"), `{ "name": "page", "private": true, "type": "module" }`)
  await run("npm", ["install", "--offline", "--no-audit", "--no-fund", `./${filename}`], { cwd: project })
})
after(() => rm(project, { recursive: true, force: true }))

test("node imports the installed package", async () => {
  await writeFile(join(project, "main.js"), `
    import { createRequire } from "node:module"
    import { CoatyClient } from "coaty-gateway-client"
    const { WebSocket } = createRequire("${modules}/")("ws")
    const client = new CoatyClient(process.argv[2], { WebSocket })
    await client.online()
    const responses = await client.request({ event: "discover", data: { coreTypes: ["Identity"] } }, { timeout: 200, limit: 0 }).all()
    console.log(client.state, responses.reason)
    client.close()
  `)
  const { stdout } = await run(process.execPath, ["main.js", gateway.url], { cwd: project })
  assert.equal(stdout, "online timeout\n")
})

test("TypeScript finds the types of the installed package", async () => {
  const check = (file) => run("tsc", [
    "--noEmit", "--strict", "--target", "es2022", "--module", "node16", "--moduleResolution", "node16", "--lib", "es2022,dom",
    file,
  ], { cwd: project })
  const using = (expression) => `
    import { CoatyClient, type Condition } from "coaty-gateway-client"
    const filter: Condition = ["status", ${expression}]
    new CoatyClient("http://127.0.0.1:8080").subscribe({ event: "advertise", coreType: "Task" }, { filter })
  `
  const manual = await readFile(new URL("../../../docs/browser.md", import.meta.url), "utf8")
  await writeFile(join(project, "documented.ts"), manual.match(/^```ts\n(.*?)^```$/ms)[1])
  await check("documented.ts")
  await writeFile(join(project, "good.ts"), using(JSON.stringify(["Equals", "on"])))
  await check("good.ts")
  for (const [name, bad] of [["operator", ["Equal", "on"]], ["operands", ["Between", 1]], ["values", ["In", "on"]]]) {
    await writeFile(join(project, `${name}.ts`), using(JSON.stringify(bad)))
    await assert.rejects(check(`${name}.ts`), ({ stdout }) => stdout.includes(`${name}.ts(3,`), `${JSON.stringify(bad)} is refused`)
  }
})
