// Requests of node's fetch whose large body the gateway refuses before it has read it: the script sees the refusal.

import assert from "node:assert/strict"
import { test } from "node:test"
import { maximumWait, sharedGateway } from "./support.mjs"

let gateway
sharedGateway((started) => { gateway = started })

const large = 9 << 20
const json = { "content-type": "application/json" }

/** Sends a body in pieces, with `Transfer-Encoding: chunked`. */
function pieces() {
  let left = large
  return new ReadableStream({
    pull(controller) {
      if (left <= 0) return controller.close()
      controller.enqueue(new Uint8Array(65_536))
      left -= 65_536
    },
  })
}

const cases = [
  ["/v1/advertise", 413, "content-too-large"],
  ["/v1/nothing", 404, "not-found"],
  ["/v1/info", 405, "method-not-allowed"],
]

for (const kind of ["a body with its length", "a body in pieces"]) {
  test(`fetch sees why ${kind} is refused`, async () => {
    for (const [path, status, type] of cases) {
      const body = kind === "a body in pieces" ? pieces() : new Uint8Array(large)
      const response = await fetch(gateway.url + path, {
        method: "POST", headers: json, body, duplex: "half", signal: AbortSignal.timeout(maximumWait),
      })
      assert.equal(response.status, status, path)
      assert.equal((await response.json()).type, `urn:coaty-gateway:problem:${type}`, path)
    }
  })
}
