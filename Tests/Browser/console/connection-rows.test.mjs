import assert from "node:assert/strict"
import { test } from "node:test"
import { ConnectionRates, connectionRows, isFound } from "../../../Sources/CoatyGateway/Console/connection-rows.js"

const connection = (more) => ({
  id: 1, client: "token wall", address: "192.0.2.1", transport: "websocket", opened: 1000, subscriptions: 1, requests: 0,
  delivered: 0, dropped: 0, queued: 0, queuedBytes: 0, ...more,
})

test("a rate covers the last ten seconds", () => {
  const rates = new ConnectionRates()
  const rate = (more) => rates.of(connection(more))
  rates.take(0, [connection()])
  assert.equal(rate(), null)
  // The list is requested again when the view is shown, and after a disconnect.
  rates.take(100, [connection({ delivered: 1 })])
  assert.equal(rate(), null)
  rates.take(2000, [connection({ delivered: 10 })])
  assert.equal(rate(), 5)
  for (let time = 4000; time <= 30_000; time += 2000) rates.take(time, [connection({ delivered: 10 })])
  assert.equal(rate(), 0)
  // A restarted gateway uses the same IDs again.
  rates.take(32_000, [connection({ opened: 9, delivered: 0 })])
  assert.equal(rate({ opened: 9 }), null)
  assert.equal(rate(), null)
})

test("a row contains the texts that operators search for", () => {
  const rates = new ConnectionRates()
  const listed = [
    connection({ identity: { name: "Wall display" }, dropped: 1200, queued: 3, queuedBytes: 4096 }),
    connection({ id: 2, transport: "sse", address: "" }), connection({ id: 3, transport: "quic", identity: {} }),
  ]
  rates.take(0, listed)
  const rows = connectionRows(listed, rates, 65_000)
  assert.deepEqual(rows[0], {
    id: 1, client: "token wall", identity: "Wall display", address: "192.0.2.1", transport: "WebSocket", age: "1 min", rate: "–",
    queued: "3", queuedBytes: 4096, dropped: "1,200", title: "Wall display at 192.0.2.1 (WebSocket 1)",
  })
  assert.deepEqual(rows.map(({ transport, address, identity }) => [transport, address, identity]),
    [["WebSocket", "192.0.2.1", "Wall display"], ["SSE", "–", "–"], ["quic", "192.0.2.1", "–"]])
})

test("a search finds a part of a client, an identity, an address or a transport", () => {
  const listed = [
    connection({ identity: { name: "Wall display" } }),
    connection({ id: 2, client: "address 192.0.2.7", address: "192.0.2.7", transport: "sse" }),
  ]
  const rows = connectionRows(listed, new ConnectionRates(), 65_000)
  const found = (text) => rows.filter((row) => isFound(row, text)).map(({ id }) => id)
  for (const [text, ids] of [["", [1, 2]], ["token", [1]], ["display", [1]], ["192.0.2.", [1, 2]], ["2.7", [2]], ["sse", [2]], ["min", []]]) {
    assert.deepEqual(found(text), ids, text)
  }
})
