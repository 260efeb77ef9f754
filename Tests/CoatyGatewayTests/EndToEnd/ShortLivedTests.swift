import Foundation
import TestSupport
import Testing

/// Thousands of subscriptions and requests that come and go: nothing of them stays.
///
/// Both parts together are ten thousand of each, besides those that warm up.
@Suite(.frameChecks, .serialized) struct ShortLivedTests {
    private static let batch = 50
    /// The gateway itself asks for objects and for contexts, and then awaits the answers to the last request for each.
    private static let ownRequests = 2
    private static let topicPrefix = "coaty/3/-/"

    /// What the broker says of subscriptions: it logs each SUBSCRIBE and UNSUBSCRIBE.
    private struct BrokerBook {
        /// Each with the client that has it.
        private var standing: Set<String> = []
        /// How many SUBSCRIBEs have come.
        private(set) var subscribed = 0
        private var offset = 0

        var events: Set<String> { standing.filter { !isOfResponses($0) } }
        var responses: Int { standing.count(where: isOfResponses) }

        private func isOfResponses(_ entry: String) -> Bool { entry.contains("/RSV/") }

        mutating func read(_ broker: BrokerProcess) {
            let news = broker.log.utf8.dropFirst(offset)
            guard let end = news.lastIndex(of: UInt8(ascii: "\n")) else { return }
            offset += news[...end].count
            for line in news[..<end].split(separator: UInt8(ascii: "\n")) {
                // `<time>: <client> <qos> <filter>`, or without the QoS.
                let parts = line.split(separator: UInt8(ascii: " ")).map { String(Substring($0)) }
                guard let filter = parts.last, filter.hasPrefix(ShortLivedTests.topicPrefix) else { continue }
                if parts.count == 4 {
                    subscribed += 1
                    standing.insert("\(parts[1]) \(filter)")
                } else {
                    standing.remove("\(parts[1]) \(filter)")
                }
            }
        }
    }

    private final class Scene {
        let broker: BrokerProcess
        let gateway: GatewayProcess
        /// Answers who looks for a `com.example.Thing`.
        let agent: AgentProcess
        let publisher: MQTTTestClient
        var book = BrokerBook()
        private var channels = 0

        init(resumeWindow: Int) throws {
            broker = try BrokerProcess(
                extraConfiguration: ["log_type error", "log_type subscribe", "log_type unsubscribe"]
            )
            gateway = try GatewayProcess(
                [
                    "--broker", "mqtt://127.0.0.1:\(broker.port)", "--resume-window", "\(resumeWindow)",
                    "--maximum-replay-memory", "65536",
                ],
                // Else what a thread has freed is not there for others, and memory grows by chance.
                environment: ["MALLOC_ARENA_MAX": "1"]
            )
            agent = try AgentProcess(brokerPort: broker.port)
            publisher = try MQTTTestClient(port: broker.port)
            try waitUntil("ready") { try gateway.request("GET", "/readyz").status == 200 }
        }

        deinit { broker.stop() }

        func newChannel() -> String {
            channels += 1
            return "channel-\(channels)"
        }

        /// Subscribes and unsubscribes on `/v1/ws`, and goes at last without a word about those of the last batch.
        func socketSubscriptions(batches: Int) throws {
            let client = try gateway.frameClient()
            for batch in 1...batches {
                let ids = (0..<ShortLivedTests.batch).map { "\(batch)-\($0)" }
                for id in ids {
                    try client.send(
                        #"{"op":"subscribe","id":"\#(id)","event":"channel","channelId":"\#(newChannel())"}"#
                    )
                }
                for id in ids { #expect(try client.next(of: id).op == "ok") }
                if batch == batches { return }
                for id in ids { try client.send(#"{"op":"unsubscribe","id":"\#(id)"}"#) }
                for id in ids { #expect(try client.next(of: id).op == "ok") }
            }
        }

        func singleStream(saysGoodbye: Bool) throws {
            let client = try gateway.frameClient("channel?channelId=\(newChannel())")
            #expect(try client.next().op == "ok")
            guard saysGoodbye else { return }
            try client.socket.sendClose(code: 1000)
            #expect(try client.closeCode() == 1000)
        }

        func eventStream(_ channel: String) throws {
            let client = try EventStreamClient(port: gateway.port, path: "/v1/sse/channel?channelId=\(channel)")
            #expect(try client.next()?.name == "ok")
        }

        /// Asks on `/v1/ws`: each batch has as many requests that are answered as ones that nobody answers, which are
        /// cancelled, but for those of the last batch.
        func socketRequests(batches: Int) throws {
            let client = try gateway.frameClient()
            for batch in 1...batches {
                let answered = (0..<ShortLivedTests.batch / 2).map { "a\(batch)-\($0)" }
                let cancelled = (0..<ShortLivedTests.batch / 2).map { "c\(batch)-\($0)" }
                for (id, type) in answered.map({ ($0, "com.example.Thing") }) + cancelled.map({ ($0, "nobody's") }) {
                    try client.send(
                        #"{"op":"request","id":"\#(id)","event":"discover","timeout":60000,"#
                            + #""data":{"objectTypes":["\#(type)"]}}"#
                    )
                }
                for id in cancelled { #expect(try client.next(of: id).op == "ok") }
                for id in answered {
                    #expect(try client.next(of: id).op == "ok")
                    #expect(try client.next(of: id).op == "response")
                    #expect(try client.next(of: id)["reason"] == "limit")
                }
                if batch == batches { return }
                for id in cancelled { try client.send(#"{"op":"cancel","id":"\#(id)"}"#) }
                for id in cancelled {
                    #expect(try client.next(of: id).op == "ok")
                    #expect(try client.next(of: id)["reason"] == "cancelled")
                }
            }
        }

        /// Asks over REST: as often to the end as without waiting for it.
        func restRequests(_ count: Int) throws {
            let lasting = try RawConnection(port: gateway.port)
            let json = [("Content-Type", "application/json")]
            for _ in 0..<count / 2 {
                let thing = #"{"objectTypes":["com.example.Thing"]}"#
                let answer = try lasting.request("POST", "/v1/discover", headers: json, body: thing)
                #expect(answer.json?["reason"] as? String == "limit")
                let nobody = #"{"objectTypes":["nobody's"]}"#
                try RawConnection(port: gateway.port).send(
                    "POST /v1/discover?timeout=1000 HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                        + "Content-Length: \(nobody.utf8.count)\r\n\r\n\(nobody)"
                )
            }
        }

        /// A round of as many subscriptions as requests.
        func round(_ count: Int) throws {
            let streams = count / 10
            for _ in 0..<(count - 2 * streams) / (5 * ShortLivedTests.batch) { try socketSubscriptions(batches: 5) }
            for number in 0..<streams { try singleStream(saysGoodbye: number % 2 == 0) }
            let channels = (0..<5).map { _ in newChannel() }
            for number in 0..<streams { try eventStream(channels[number % channels.count]) }
            for _ in 0..<(count - 2 * streams) / (5 * ShortLivedTests.batch) { try socketRequests(batches: 5) }
            try restRequests(2 * streams)
            self.eventChannels = channels
        }

        private(set) var eventChannels: [String] = []

        /// Only who writes notices that nobody reads an event stream.
        func writeToEventStreams() throws {
            for channel in eventChannels { try publisher.publish("coaty/3/-/CHN:\(channel)/a", #"{"objects":[]}"#) }
        }
    }

    /// - Parameter resumeWindow: in seconds.
    @Test(arguments: [0, 1]) func shortLivedClientsLeaveNoResources(resumeWindow: Int) throws {
        let scene = try Scene(resumeWindow: resumeWindow)
        let gateway = scene.gateway
        scene.book.read(scene.broker)
        let events = scene.book.events
        let descriptors = try gateway.descriptors()
        var memory: [Int] = []
        let count = 2500
        for _ in 0..<3 {
            let before = scene.book.subscribed
            try scene.round(count)
            try waitUntil("all is as before", within: 60) {
                scene.book.read(scene.broker)
                let isTidy = try gateway.descriptors() <= descriptors
                if isTidy, scene.book.events == events, scene.book.responses <= Self.ownRequests { return true }
                try scene.writeToEventStreams()
                return false
            }
            // Each subscription was one at the broker, and so was each request, except those that ended before they were sent:
            // of the requests that nobody waits for, which are half of those over REST, and of each last batch.
            #expect(scene.book.subscribed - before >= 2 * count - count / 5)
            memory.append(try gateway.memory("VmRSS"))
        }
        // The first round warms up. The allocator still settles in the next ones, by less than 2 MiB; what stayed of each
        // subscription and request, if only its state of some hundred bytes and its closures, would be more than this.
        // The address sanitizer keeps for a while what is freed.
        if !isSanitized { #expect(memory[2] - memory[1] < 2 * count * 800) }

        let agents = try #require(try gateway.request("GET", "/v1/agents").json?["agents"] as? [[String: Any]])
        #expect(agents.count == 2)
        let answer = try gateway.post("/v1/discover", #"{"objectTypes":["com.example.Thing"]}"#)
        #expect((answer.json?["responses"] as? [Any])?.count == 1)
        let client = try gateway.frameClient()
        #expect(
            try client.request(#""event":"discover","data":{"objectTypes":["com.example.Thing"]}"#).responses.count == 1
        )
        try client.subscribe("s", #""event":"channel","channelId":"last""#)
        try scene.publisher.publish("coaty/3/-/CHN:last/a", #"{"objects":[]}"#)
        #expect(try client.next(of: "s").op == "event")
    }
}
