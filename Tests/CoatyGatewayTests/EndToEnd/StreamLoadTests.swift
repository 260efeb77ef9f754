import Foundation
import Synchronization
import TestSupport
import Testing
import WebSocketServer

@testable import Base

/// Many concurrent subscribers, some of which are too slow.
@Suite(.exclusive, .frameChecks) struct StreamLoadTests {
    private static let count = 2000
    /// The interval of markers. A marker passes each filter, and shows the progress of a subscriber.
    private static let round = 200
    private static let objects = 10
    /// A buffer for all events, so that a client that reads gets no gap.
    private static let room = ["buffer": "4096"]
    /// The buffer of slow clients.
    private static let buffer = 16

    /// An event of the load.
    private struct Event {
        let number: Int
        var isMarker: Bool { number % StreamLoadTests.round == StreamLoadTests.round - 1 }
        var kind: Int { number % 3 }
        var objectId: String { isMarker ? "marker-\(number)" : "object-\(number % StreamLoadTests.objects)" }

        var json: String {
            // Some events are larger than a socket accepts at once.
            let filler = String(repeating: "x", count: number % 50 == 0 ? 20_000 : number % 7 * 300)
            return #"{"object":{"coreType":"CoatyObject","objectType":"t","objectId":"\#(objectId)","name":"n","#
                + #""n":\#(number),"kind":\#(kind),"isMarker":\#(isMarker),"filler":"\#(filler)"}}"#
        }

        static let all = (0..<StreamLoadTests.count).map(Event.init)
    }

    /// The options and the expected events of a subscription.
    private struct Wish: Sendable {
        let options: [String: String]
        var isThrottled: Bool { options["throttle"] != nil }
        /// Returns whether an event passes. Markers always pass.
        var passes: @Sendable (Event) -> Bool = { _ in true }

        /// The numbers of the expected events.
        var expected: [Int] { Event.all.filter { $0.isMarker || passes($0) }.map(\.number) }

        /// The number of the last event of each object.
        var newest: Set<Int> {
            var newest: [String: Int] = [:]
            for event in Event.all where event.isMarker || passes(event) { newest[event.objectId] = event.number }
            return Set(newest.values)
        }

        static func filter(_ condition: String) -> String { #"{"or":[["isMarker",["Equals",true]],\#(condition)]}"# }

        static let all: [Wish] = [
            Wish(options: [:]),
            Wish(options: ["filter": filter(#"["kind",["Equals",0]]"#)]) { $0.kind == 0 },
            Wish(options: ["fields": #"["n"]"#]),
            Wish(options: ["filter": filter(#"["n",["LessThan",1500]]"#), "fields": #"["n","kind"]"#]) {
                $0.number < 1500
            },
            Wish(options: ["throttle": "20"]),
            Wish(options: ["overflow": #""latest""#]),
            Wish(options: ["overflow": #""close""#, "filter": filter(#"["kind",["In",[1,2]]]"#)]) { $0.kind > 0 },
            Wish(options: [
                "overflow": #""latest""#, "throttle": "50", "filter": filter(#"["kind",["Equals",2]]"#),
            ]) { $0.kind == 2 },
            Wish(options: ["overflow": #""dropOldest""#, "fields": #"["n","filler"]"#]),
        ]
    }

    /// A client that reads until it has the newest event of each object.
    private final class Reader: Sendable {
        private let wishes: [String: Wish]
        private let progress: Mutex<(markers: [String: Int], missing: [String: Set<Int>])>
        private let reader = Mutex<StreamReader?>(nil)

        init(_ transport: StreamTap.Transport, port: UInt16, _ wishes: [Wish]) {
            // A connection with one subscription has no id in its frames.
            let names = transport == .multiplexed ? wishes.indices.map { "s\($0)" } : [""]
            let wishes = Dictionary(uniqueKeysWithValues: zip(names, wishes))
            self.wishes = wishes
            progress = Mutex((wishes.mapValues { _ in 0 }, wishes.mapValues(\.newest)))
            let reader = StreamReader {
                try StreamTap(
                    transport,
                    port: port,
                    wishes.map { .init($0, channel: "load", $1.options.merging(StreamLoadTests.room) { $1 }) }
                )
            } while: { [self] frame in
                progress.withLock { progress in
                    guard let number = frame.number, let id = Optional(frame.id ?? "") else { return true }
                    if Event(number: number).isMarker { progress.markers[id, default: 0] += 1 }
                    progress.missing[id]?.remove(number)
                    return progress.missing.values.contains { !$0.isEmpty }
                }
            }
            self.reader.withLock { $0 = reader }
        }

        var isSubscribed: Bool { frames.count >= wishes.count }
        /// The number of markers that all subscriptions have received.
        var markers: Int { progress.withLock { $0.markers.values.min() ?? 0 } }
        var end: String? { reader.withLock { $0?.end } }
        private var frames: [StreamTap.Frame] { reader.withLock { $0?.frames } ?? [] }

        func check() throws {
            try waitUntil("a reader is through", within: 60) { end != nil }
            #expect(end == "enough")
            let frames = frames
            for (id, wish) in wishes {
                let delivered = frames.filter { $0.id ?? "" == id }
                #expect(delivered.first?.op == "ok" && delivered.dropFirst().allSatisfy { $0.op == "event" })
                let numbers = delivered.compactMap(\.number)
                guard wish.isThrottled else {
                    #expect(numbers == wish.expected, "\(wish.options)")
                    continue
                }
                #expect(Set(numbers).isSubset(of: wish.expected))
                for (_, events) in Dictionary(grouping: delivered.dropFirst(), by: \.objectId) {
                    let numbers = events.compactMap(\.number)
                    #expect(zip(numbers, numbers.dropFirst()).allSatisfy { $0 < $1 }, "\(wish.options)")
                }
            }
        }
    }

    /// A client that reads little or nothing.
    private final class Laggard {
        private let tap: StreamTap
        private let policies: [String: String]
        private var delivered: [String: [StreamTap.Frame]] = [:]

        /// Connects and subscribes.
        ///
        /// - Parameter policies: the overflow policies of the subscriptions.
        init(_ transport: StreamTap.Transport, port: UInt16, _ policies: [String]) throws {
            let names = transport == .multiplexed ? policies.indices.map { "s\($0)" } : [""]
            self.policies = Dictionary(uniqueKeysWithValues: zip(names, policies))
            let subscriptions = self.policies.map { name, policy in
                let options = ["overflow": "\"\(policy)\"", "buffer": "\(StreamLoadTests.buffer)"]
                return StreamTap.Subscription(name, channel: "load", options)
            }
            tap = try StreamTap(transport, port: port, subscriptions, receiveBuffer: 4096)
            for _ in subscriptions { try #require(try tap.next()?.op == "ok") }
        }

        func read(_ count: Int) throws {
            for _ in 0..<count {
                let frame = try #require(try tap.next())
                delivered[frame.id ?? "", default: []].append(frame)
            }
        }

        /// Reads the remaining frames, and compares them with the published events.
        func check() throws {
            while policies.keys.contains(where: { !hasAll($0) }) { try read(1) }
            for (id, policy) in policies {
                let frames = delivered[id] ?? []
                let numbers = frames.compactMap(\.number)
                let gaps = frames.filter { $0.op == "gap" }
                let lost = gaps.compactMap(\.lost)
                #expect(lost.count == gaps.count, "each gap is counted")
                #expect(zip(numbers, numbers.dropFirst()).allSatisfy { $0 < $1 })
                switch policy {
                case "close":
                    #expect(frames.last?.reason == "overflow" && gaps.isEmpty)
                    #expect(numbers.elementsEqual(numbers.indices))
                case "latest":
                    #expect(!lost.isEmpty && numbers.count + lost.reduce(0, +) == StreamLoadTests.count)
                    #expect(
                        Set(numbers).isSuperset(of: Wish(options: [:]).newest.filter { !Event(number: $0).isMarker })
                    )
                default:
                    #expect(!lost.isEmpty && numbers.count + lost.reduce(0, +) == StreamLoadTests.count)
                    var next = 0
                    for frame in frames {
                        #expect(frame.number ?? next == next)
                        next += frame.lost ?? 1
                    }
                }
            }
        }

        private func hasAll(_ id: String) -> Bool {
            guard let last = delivered[id]?.last else { return false }
            return policies[id] == "close" ? last.op == "done" : last.number == StreamLoadTests.count - 1
        }
    }

    @Test(.disabled(if: isSanitized, "it measures memory, and must end before a client that reads nothing is cut"))
    func eventsAreDroppedWithGapOnlyForSlowClients() throws {
        // A broker silently drops messages beyond the queue limit of a client.
        let broker = try BrokerProcess(extraConfiguration: ["max_queued_messages 1000000"])
        defer { broker.stop() }
        let resumeMemory = 1 << 20
        let gateway = try GatewayProcess([
            "--broker", "mqtt://127.0.0.1:\(broker.port)", "--limit", "maximum-replay-memory=\(resumeMemory)",
            // A client that reads nothing must not be cut before the others are through.
            "--limit", "connection-timeout=150", "--limit", "keep-alive-timeout=150",
        ])
        try gateway.untilReady()
        let port = gateway.port

        let wishes = Wish.all
        var readers = (0..<12).map { first in
            Reader(.multiplexed, port: port, (0..<5).map { wishes[(first + $0) % wishes.count] })
        }
        for transport in [StreamTap.Transport.single, .events] {
            readers += (0..<20).map { Reader(transport, port: port, [wishes[$0 % wishes.count]]) }
        }
        let slow = [
            try Laggard(.multiplexed, port: port, ["dropOldest", "latest", "close"]),
            try Laggard(.single, port: port, ["latest"]), try Laggard(.events, port: port, ["dropOldest"]),
        ]
        let stuck = [
            try Laggard(.multiplexed, port: port, ["latest", "dropOldest"]),
            try Laggard(.events, port: port, ["dropOldest"]),
        ]
        try waitUntil("all observe") { readers.allSatisfy(\.isSubscribed) }
        let before = try gateway.memory("VmRSS")

        let load = NumberedLoad(brokerPort: broker.port) { number, _ in
            ("coaty/3/-/CHN:load/source", Event(number: number).json)
        }
        defer { load.stop() }
        for round in 1...Self.count / Self.round {
            load.allow(upTo: round * Self.round)
            // Readers are at most one round behind; the load does not wait for slow clients.
            try waitUntil("all have seen round \(round - 1)", within: 60) {
                readers.allSatisfy { $0.markers >= round - 1 || $0.end != nil }
            }
            for laggard in slow { try laggard.read(3) }
        }
        for reader in readers { try reader.check() }

        // The queue of each connection and the replay buffer for all are bounded. An event takes at most twice its
        // bytes, because it is stored with an index of its members.
        let perClient = Limits().queuedBytes + WebSocketServer.Configuration().offerQueueBytes
        let bound = 2 * (resumeMemory + (slow.count + stuck.count) * perClient)
        let peak = try gateway.memory("VmHWM")
        #expect(peak - before < bound)

        for laggard in slow + stuck { try laggard.check() }
        let fresh = try gateway.frameClient()
        try fresh.subscribe("s", #""event":"channel","channelId":"load","filter":["n",["Equals",\#(Self.count)]]"#)
        let agent = try MQTTTestClient(port: broker.port)
        try agent.publish("coaty/3/-/CHN:load/source", Event(number: Self.count).json)
        #expect(try fresh.next(of: "s").object["n"] as? Int == Self.count)
    }
}
