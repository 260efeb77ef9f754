import Base
import CoatyGateway
import Foundation
import TestSupport
import Testing

/// `GET /v1/status` of a gateway.
@Suite(.exclusive, .frameChecks) struct StatusTests {
    private struct Status: Decodable {
        struct Broker: Decodable {
            let address: String
            let embedded: Bool
            let state: String
            let since: Int
            let reconnects: Int
        }
        struct Events: Decodable {
            let received, published, deferred, queued, queuedBytes, invalid, lag: Int
            let sessions: Sessions
        }
        struct Sessions: Decodable {
            let gateway: Messages
            struct Messages: Decodable { let received: Int }
        }
        struct Streams: Decodable {
            let connections, subscriptions, delivered, dropped, leftOut, queued, queuedBytes, maximumQueuedBytes: Int
        }
        struct Feeds: Decodable {
            let queuedBytes, maximumQueuedBytes, overflows: Int
            let waits: Durations
        }
        struct Durations: Decodable {
            let bounds: [Double]
            let counts: [Int]
        }
        struct Limit: Decodable, Equatable {
            let limit, scope: String
            let count: Int
        }
        struct HTTP: Decodable {
            let connections, streams, pending, answered, failed: Int
            let durations: Durations
        }
        struct TopClient: Decodable {
            let client: String
            let work, publications, publishedBytes, memory, connections, subscriptions, pendingRequests: Int
            let delayed: Bool
        }
        struct Memory: Decodable {
            let resident, maximumResident, charged, maximumCharged, closedConnections: Int
        }
        struct Refused: Decodable {
            let ownShare, all: Int
            let limits: [Limit]
        }
        struct Requests: Decodable {
            let pending, total: Int
        }
        struct SlowConsumer: Decodable {
            let connection: Int
            let transport: String
            let id: String?
            let event: String
            let queued, queuedBytes, dropped: Int
            let overflow: String
        }
        let version: String
        let started: Int
        let paused: Bool
        let broker: Broker
        let events: Events
        let streams: Streams
        let feeds: Feeds
        let requests: Requests
        let memory: Memory
        let refused: Refused
        let http: HTTP
        let topClients: [TopClient]
        let slowConsumers: [SlowConsumer]
    }

    private func status(_ gateway: GatewayProcess) throws -> Status {
        let response = try gateway.request("GET", "/v1/status")
        #expect(response.status == 200 && response.headers["content-type"] == "application/json")
        #expect(response.headers["cache-control"] == "no-store")
        return try JSONDecoder().decode(Status.self, from: Data(response.text.utf8))
    }

    private func body(_ name: String) -> String {
        #"{"object":{"coreType":"CoatyObject","objectType":"t","objectId":"5b1c1b1e-4c4b-4d0e-9d5a-0d4f1b1c1b1e","name":"\#(name)"}}"#
    }

    @Test func countsAddUp() throws {
        let scene = try Scene()
        let before = try status(scene.gateway)
        #expect(before.version == GatewayVersion.text && before.started > 1_700_000_000_000)
        #expect(before.broker.address == "mqtt://127.0.0.1:\(scene.broker.port)" && !before.broker.embedded)
        #expect(before.broker.state == "online" && before.broker.reconnects == 0)
        #expect(before.broker.since >= before.started)
        #expect(before.streams.connections == 0 && before.streams.subscriptions == 0 && before.slowConsumers.isEmpty)

        let client = try scene.gateway.frameClient()
        try client.subscribe("a", #""event":"channel","channelId":"in""#)
        try client.subscribe("b", #""event":"channel","channelId":"in","fields":["name"]"#)
        let stream = try scene.gateway.eventStream("channel?channelId=in")
        for number in 0..<20 { try scene.agent.publish("coaty/3/-/CHN:in/source", body("\(number)")) }
        try scene.agent.publish("coaty/3/-/CHN:in/source", "no JSON")
        for number in 0..<30 { #expect(try scene.gateway.post("/v1/channel/out", body("\(number)")).status == 202) }
        for id in ["a", "b"] { for _ in 0..<20 { _ = try client.next(of: id, "event") } }

        let asked = try scene.gateway.post("/v1/discover?timeout=100", #"{"objectTypes":["com.example.Nothing"]}"#)
        #expect(asked.status == 200)
        #expect(
            try client.request(#""event":"discover","data":{"coreTypes":["User"]},"timeout":100"#).reason == "timeout"
        )
        // The gateway also sends requests itself, and receives its own requests and responses; all of them are counted.
        let id = try scene.gateway.identityId()
        var now = before
        var topics: [String] = []
        try waitUntil("all is counted") {
            now = try status(scene.gateway)
            topics = scene.agent.messages.map(\.topic)
            return now.events.published == topics.count { $0.contains("/\(id)") } && now.events.queued == 0
                && now.events.sessions.gateway.received == topics.count { !$0.contains("/CHN:out/") }
                && now.streams.delivered == 60
        }
        #expect(topics.count { $0.contains("/CHN:out/\(id)") } == 30 && topics.count { $0.contains("/CHN:in/") } == 21)
        #expect(now.events.queuedBytes == 0 && now.events.deferred == before.events.deferred)
        #expect(now.events.invalid - before.events.invalid == 1)
        #expect(now.streams.connections == 2 && now.streams.subscriptions == 3 && now.streams.dropped == 0)
        #expect(now.streams.maximumQueuedBytes > 128 << 20 && now.streams.leftOut == 0)
        #expect(now.feeds.queuedBytes == 0 && now.feeds.maximumQueuedBytes > 20 << 20 && now.feeds.overflows == 0)
        // The memory of the connections and subscriptions themselves.
        #expect(now.memory.charged > 0 && now.memory.charged < 1 << 20)
        #expect(now.memory.maximumResident == 512 << 20 && now.memory.resident < now.memory.maximumResident)
        #expect(now.memory.closedConnections == 0 && now.refused.ownShare == 0 && now.refused.all == 0)
        #expect(now.requests.total - before.requests.total == 2 && now.requests.pending == 0)
        #expect(!now.paused && now.refused.limits.isEmpty && now.events.lag == 0)
        #expect(now.feeds.waits.counts.count == now.feeds.waits.bounds.count + 1)
        #expect((1...41).contains(now.feeds.waits.counts.reduce(0, +)))
        withExtendedLifetime(stream) {}
    }

    @Test func reportsUnreachableBroker() throws {
        let broker = try BrokerProcess()
        defer { broker.stop() }
        let gateway = try GatewayProcess(["--broker", "mqtt://127.0.0.1:\(broker.port)"])
        try gateway.untilReady()
        let before = try status(gateway)
        broker.kill()
        try waitUntil("it is offline") { try status(gateway).broker.state == "offline" }
        let refused = try gateway.post("/v1/discover", #"{"coreTypes":["Identity"]}"#)
        #expect(refused.status == 503)
        for number in 0..<10 {
            #expect(try gateway.post("/v1/channel/c", body("\(number)")).text == #"{"deferred":true}"#)
        }
        let away = try status(gateway)
        #expect(away.broker.since > before.broker.since && away.broker.reconnects == 0)
        #expect(away.events.deferred - before.events.deferred == 10 && away.events.queued == 10)
        #expect(away.events.queuedBytes > 10 * body("0").utf8.count)
        try waitUntil("the oldest has waited for 200 ms") { try status(gateway).events.lag >= 200 }
        #expect(away.requests.pending == 0 && away.requests.total - before.requests.total == 1)

        try broker.restart()
        // Queued publications do not wait until the state is `online`.
        try waitUntil("it is online, and what was queued is published") {
            let status = try status(gateway)
            return status.broker.state == "online" && status.events.queued == 0
        }
        let back = try status(gateway)
        #expect(back.broker.reconnects == 1 && back.events.lag == 0)
        #expect(back.broker.since >= away.broker.since)
        #expect(back.events.deferred == away.events.deferred)
        // This includes the gateway's own events after it has reconnected.
        #expect(back.events.published - away.events.published >= 11)
    }

    @Test func countsRequestsByTheirAnswers() throws {
        let scene = try Scene()
        let before = try status(scene.gateway).http
        for number in 0..<5 { #expect(try scene.gateway.post("/v1/channel/c", body("\(number)")).status == 202) }
        // The time that agents need does not count as latency of the gateway.
        let nothing = #"{"objectTypes":["com.example.No"]}"#
        #expect(try scene.gateway.post("/v1/discover?timeout=300", nothing).status == 200)
        // Nor is it an error of the gateway that no agent responds.
        #expect(try scene.gateway.post("/v1/call/no?timeout=10&min=1", "{}").status == 504)
        var http = before
        // The requests for the status are counted, too, each after its response.
        var asked = 0
        try waitUntil("all are counted") {
            http = try status(scene.gateway).http
            asked += 1
            return http.answered - before.answered == 7 + asked
        }
        #expect(http.failed == before.failed && http.pending == 1)
        let durations = zip(http.durations.counts, before.durations.counts).map(-)
        #expect(durations.reduce(0, +) == 5 + asked)
        #expect(http.durations.bounds.first == 1 && http.durations.bounds.last == 10_000)
        #expect(http.durations.counts.count == http.durations.bounds.count + 1)
    }

    @Test func reportsClientCostsAndReachedLimits() throws {
        let scene = try AccessScene(
            AccessFile(
                tokens: [.init("operator", "watching"), .init("device", "sending"), .init("viewer", "viewing")],
                roles: [
                    "watching": ["{read: [status]}", "{administer: [clients]}"],
                    "sending": [#"{publish: [channel], channels: ["*"]}"#, #"{observe: [channel], channels: ["*"]}"#],
                    "viewing": ["{read: [status]}"],
                ]
            ),
            ["--limit", "maximum-subscriptions=2", "--limit", "maximum-subscriptions-per-client=1"]
        )
        func status(as name: String) throws -> (text: String, status: Status?) {
            let answer = try scene.get("/v1/status", as: name)
            return (answer.text, try? JSONDecoder().decode(Status.self, from: Data(answer.text.utf8)))
        }
        let stream = try scene.socket("channel?channelId=c", as: "device")
        #expect(try stream.next().op == "ok")
        for number in 0..<3 {
            #expect(try scene.post("/v1/channel/c", body("\(number)"), as: "device").status == 202)
            #expect(try stream.next().op == "event")
        }
        #expect(try scene.get("/v1/sse/channel?channelId=d", as: "device").status == 429)
        let seen = try #require(try status(as: "operator").status)
        let device = try #require(seen.topClients.first { $0.client == "token device" })
        #expect(device.publications == 3 && device.publishedBytes == 3 * body("0").utf8.count)
        #expect(device.work > 0 && device.memory > 0 && device.subscriptions == 1 && device.connections >= 1)
        #expect(!device.delayed && device.pendingRequests == 0)
        let reader = try #require(seen.topClients.first { $0.client == "token operator" })
        #expect(reader.publications == 0 && reader.subscriptions == 0)
        #expect(seen.refused.limits == [Status.Limit(limit: "subscriptions", scope: "own", count: 1)])
        #expect(seen.refused.ownShare == 1)

        let (text, _) = try status(as: "viewer")
        #expect(text.contains(#""limit":"subscriptions""#) && text.contains(#""http":{"#))
        #expect(!text.contains("device") && !text.contains("topClients") && !text.contains("slowConsumers"))
    }

    @Test func reportsAClientThatDoesNotRead() throws {
        let scene = try Scene()
        var client: FrameClient? = try scene.gateway.frameClient(receiveBuffer: 4096)
        try client?.subscribe("slow", #""event":"channel","channelId":"load","buffer":16"#)
        let reader = try scene.gateway.frameClient("channel?channelId=load")
        #expect(try reader.next().op == "ok")
        let filler = String(repeating: "x", count: 20_000)
        var said = 0
        while try status(scene.gateway).streams.dropped < 100 {
            try #require(said < 5_000, "the client reads by itself")
            for _ in 0..<50 {
                try scene.agent.publish("coaty/3/-/CHN:load/source", body(filler))
                #expect(try reader.next().op == "event")
                said += 1
            }
        }
        let now = try status(scene.gateway)
        let slow = try #require(now.slowConsumers.first { $0.dropped > 0 })
        #expect(slow.id == "slow" && slow.event == "channel" && slow.transport == "websocket")
        #expect(slow.overflow == "dropOldest" && slow.queued == 16 && slow.dropped == now.streams.dropped)
        #expect(slow.queuedBytes > 16 * filler.utf8.count)
        #expect(now.streams.delivered == 2 * said - slow.dropped - slow.queued)
        #expect(now.streams.queuedBytes >= slow.queuedBytes)

        client = nil
        try waitUntil("it is gone") { try status(scene.gateway).streams.connections == 1 }
        let left = try status(scene.gateway)
        #expect(left.slowConsumers.isEmpty && left.streams.queued == 0 && left.streams.queuedBytes == 0)
        #expect(now.memory.charged - left.memory.charged >= slow.queuedBytes)
        #expect(left.streams.dropped == now.streams.dropped && left.streams.delivered == now.streams.delivered)
    }
}
