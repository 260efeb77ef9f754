import Foundation
import TestSupport
import Testing

/// Clients that lose their connection, the broker or the gateway under constant load.
@Suite(.exclusive, .frameChecks, .serialized) struct ResumeUnderLoadTests {
    /// How many events the load may be ahead of the readers. Even twice this number fits into the receive buffer of the
    /// gateway; if more were queued while the gateway gets no processor time, it would report that the broker may have
    /// dropped events.
    private static let ahead = 50

    private static let turns: [[StreamTap.Transport]] = [
        [.events, .events, .events], [.multiplexed, .multiplexed, .multiplexed], [.single, .single, .single],
        [.events, .multiplexed, .events], [.multiplexed, .events, .single], [.single, .multiplexed, .events],
    ]

    /// A frame that a client receives after `ok`.
    fileprivate enum Delivered: Equatable {
        case event(Int, isLast: Bool)
        case gap(Int?)

        init(_ frame: StreamTap.Frame) throws {
            switch frame.op {
            case "event": self = .event(try #require(frame.number), isLast: frame.objectId == "last")
            case "gap": self = .gap(frame.lost)
            default: throw Unexpected(frame: frame)
            }
        }

        var isGap: Bool { if case .gap = self { true } else { false } }
        var number: Int? { if case .event(let number, _) = self { number } else { nil } }
        var isLast: Bool { if case .event(_, true) = self { true } else { false } }

        /// Returns the numbers between gaps.
        static func runs(_ delivered: [Delivered]) -> [[Int]] {
            delivered.split(separator: .gap(nil), omittingEmptySubsequences: false).map { $0.compactMap(\.number) }
        }
    }

    fileprivate struct Unexpected: Error { let frame: StreamTap.Frame }

    /// A broker that drops nothing for slow clients, a gateway, and the load.
    private final class Scene {
        let broker: BrokerProcess
        private(set) var gateway: GatewayProcess
        let load: NumberedLoad
        private let arguments: [String]

        init(_ arguments: [String] = []) throws {
            // A broker silently drops messages beyond the queue limit of a client.
            broker = try BrokerProcess(
                extraConfiguration: ["max_queued_messages 1000000", "log_type error", "log_type unsubscribe"]
            )
            self.arguments = ["--broker", "mqtt://127.0.0.1:\(broker.port)"] + arguments
            gateway = try GatewayProcess(self.arguments)
            load = NumberedLoad(brokerPort: broker.port) { number, isLast in
                let id = isLast ? "last" : "object-\(number % 7)"
                let name = String(format: "%06d", number)
                let object =
                    #"{"coreType":"CoatyObject","objectType":"t","objectId":"\#(id)","name":"\#(name)","n":\#(number),"#
                    + #""parity":"\#(number % 2 == 0 || isLast ? "even" : "odd")"}"#
                return ("coaty/3/-/CHN:c/source", #"{"object":\#(object)}"#)
            }
            try untilReady()
        }

        deinit {
            load.stop()
            broker.stop()
        }

        func untilReady() throws {
            try gateway.untilReady()
        }

        /// Stops the gateway, and starts another one on the same port.
        func restartGateway(_ signal: Int32) throws {
            let port = gateway.port
            try gateway.stop(signal)
            gateway = try GatewayProcess(arguments, port: port)
            try untilReady()
        }

        /// Allows the load to continue while a client connects or disconnects.
        func goOn() { load.allow(upTo: load.count + ahead) }

        /// Observes all events until the load ends.
        func witness() throws -> StreamReader {
            let port = gateway.port
            let witness = StreamReader {
                try StreamTap(.single, port: port, [.init(channel: "c", ["buffer": "4096"])])
            } while: { _ in
                true
            }
            try waitUntil("the witness observes") { !witness.frames.isEmpty }
            return witness
        }

        /// Publishes events in small batches, so that the gateway has received all before the next are published.
        func publish(batches: Int, seenBy witness: StreamReader) throws {
            for _ in 0..<batches {
                try load.publish(25)
                let last = load.count - 1
                try waitUntil("the gateway has seen all") { witness.lastNumber ?? 0 >= last }
            }
        }
    }

    /// A client that disconnects, and resumes after the last received event.
    private final class Returner {
        private let scene: Scene
        private let options: [String: String]
        private var tap: StreamTap?
        private(set) var cursor: String?
        private(set) var delivered: [Delivered] = []

        init(_ scene: Scene, _ options: [String: String] = [:]) {
            self.scene = scene
            self.options = options.merging(["buffer": "4096"]) { $1 }
        }

        func come(_ transport: StreamTap.Transport) throws {
            scene.goOn()
            let subscription = StreamTap.Subscription(channel: "c", options, since: cursor)
            let tap = try StreamTap(transport, port: scene.gateway.port, [subscription])
            let first = try #require(try tap.next())
            try #require(first.op == "ok", "\(first)")
            // Only a new subscription gets a cursor in its first frame.
            try #require(first.cursor == nil || cursor == nil)
            cursor = cursor ?? first.cursor
            self.tap = tap
        }

        /// Reads frames until `isEnough` returns true. Each event allows the load to continue.
        func read(until isEnough: (Delivered) -> Bool) throws {
            // All allowed events may have been published before the subscription was active.
            scene.goOn()
            while true {
                let frame = try #require(try tap?.next())
                let item = try Delivered(frame)
                delivered.append(item)
                cursor = frame.cursor ?? cursor
                if let number = item.number { scene.load.allow(upTo: number + ahead) }
                if isEnough(item) { return }
            }
        }

        /// Reads this number of events.
        func read(_ count: Int) throws {
            var left = count
            try read { item in
                if !item.isGap { left -= 1 }
                return left == 0
            }
        }

        /// Closes the connection, and discards unread frames.
        func cut() { tap = nil }
    }

    @Test func reconnectedClientMissesNoEvents() throws {
        let scene = try Scene()
        let witness = try scene.witness()
        for transports in Self.turns {
            let client = Returner(scene)
            for transport in transports {
                try client.come(transport)
                try client.read(300)
                client.cut()
                try scene.publish(batches: 4, seenBy: witness)
            }
            let numbers = client.delivered.compactMap(\.number)
            #expect(numbers.count == 900 && client.delivered.count == 900)
            #expect(numbers == numbers.first.map { Array($0..<$0 + 900) }, "\(transports)")
        }
    }

    @Test func brokerLossIsReportedAsOneGap() throws {
        let scene = try Scene()
        let (port, load) = (scene.gateway.port, scene.load)
        let live = StreamTap.Transport.allCases.map { transport in
            StreamReader {
                try StreamTap(transport, port: port, [.init(channel: "c", ["buffer": "4096"])])
            } while: { frame in
                if let number = frame.number { load.allow(upTo: number + Self.ahead) }
                return frame.objectId != "last"
            }
        }
        try waitUntil("all observe") { live.allSatisfy { !$0.frames.isEmpty } }
        /// Clients that resume after each loss, clients that resume once after both, and clients that subscribed
        /// without a broker.
        var (often, late, offline): ([Returner], [Returner], [Returner]) = ([], [], [])
        for transport in StreamTap.Transport.allCases {
            let clients = [Returner(scene), Returner(scene)]
            for client in clients {
                try client.come(transport)
                try client.read(100)
                client.cut()
            }
            often.append(clients[0])
            late.append(clients[1])
        }
        /// The numbers from which on no event may be missing, one for each round.
        var back: [Int] = []
        for round in 1...2 {
            scene.goOn()
            scene.broker.kill()
            try waitUntil("all have the gap") { live.allSatisfy { $0.frames.count { $0.op == "gap" } >= round } }
            try scene.load.publish(20)
            if round == 1 {
                for transport in StreamTap.Transport.allCases {
                    let client = Returner(scene)
                    try client.come(transport)
                    try client.read { $0.isGap }
                    try #require(client.delivered == [.gap(nil)] && client.cursor != nil)
                    client.cut()
                    offline.append(client)
                }
            }
            try scene.broker.restart()
            scene.goOn()
            try scene.untilReady()
            // The gateway first restores its own subscriptions, so an `ok` for a new one shows that they are active
            // again.
            try scene.gateway.frameClient().subscribe(
                "other\(round)",
                #""event":"channel","channelId":"other\#(round)""#
            )
            let number = scene.load.count
            back.append(number)
            try scene.load.publish(100)
            for (client, transport) in zip(often, [StreamTap.Transport.single, .events, .multiplexed]) {
                try client.come(transport)
                try client.read { $0.number ?? 0 >= number + 50 }
                client.cut()
            }
        }
        try scene.load.publish(100)
        let last = scene.load.finish() - 1
        let delivered = try live.map { try $0.all().dropFirst().map(Delivered.init) }
        let reference = try #require(delivered.max { $0.count < $1.count })
        let runs = Delivered.runs(reference)
        #expect(runs.count == 3, "one gap for each loss")
        for run in runs {
            let first = try #require(run.first)
            #expect(run == Array(first..<first + run.count))
        }
        #expect(runs.last?.last == last)
        for (run, number) in zip(runs.dropFirst(), back) { #expect(run.first ?? .max <= number) }
        for others in delivered { #expect(others == reference.suffix(others.count)) }
        for (client, transport) in zip(often + late + offline, Self.turns.joined()) {
            try client.come(transport)
            try client.read(until: \.isLast)
            #expect(client.delivered == reference.suffix(client.delivered.count))
            #expect(client.delivered.count(where: \.isGap) == 2)
        }
    }

    @Test func gatewayRestartIsReportedAsOneGap() throws {
        let scene = try Scene()
        let clients = Self.turns.map { _ in Returner(scene) }
        for (client, transports) in zip(clients, Self.turns) {
            try client.come(transports[0])
            try client.read(50)
        }
        for (round, signal) in [SIGTERM, SIGKILL].enumerated() {
            scene.goOn()
            for client in clients { client.cut() }
            try scene.restartGateway(signal)
            for (client, transports) in zip(clients, Self.turns) {
                try client.come(transports[1 + round])
                try client.read(100)
            }
        }
        for (client, transports) in zip(clients, Self.turns) {
            let runs = Delivered.runs(client.delivered)
            #expect(runs.map(\.count) == [50, 100, 100], "\(transports)")
            for run in runs { #expect(run == run.first.map { Array($0..<$0 + run.count) }) }
            #expect(runs.joined().elementsEqual(runs.joined().sorted()))
        }
    }

    @Test func evictedEventsAreCountedInGap() throws {
        // The replay buffer holds about 150 events.
        let scene = try Scene(["--limit", "maximum-replay-memory=60000"])
        let witness = try scene.witness()
        for transports in Self.turns {
            let all = Returner(scene)
            let some = Returner(scene, ["filter": #"["parity",["Equals","even"]]"#])
            for client in [all, some] {
                try client.come(transports[0])
                try client.read(50)
                client.cut()
            }
            for transport in transports[1...] {
                try scene.publish(batches: 24, seenBy: witness)
                for client in [all, some] {
                    try client.come(transport)
                    try client.read(50)
                    client.cut()
                }
            }
            var next = try #require(all.delivered.first?.number)
            for item in all.delivered {
                switch item {
                case .event(let number, _):
                    #expect(number == next)
                    next += 1
                case .gap(let lost): next += try #require(lost)
                }
            }
            // The replay buffer is read as the client reads. Meanwhile the load continues, and further events may be
            // removed.
            #expect(all.delivered.count(where: \.isGap) >= 2, "\(transports)")
            let runs = Delivered.runs(some.delivered)
            #expect(runs.count >= 3 && runs.joined().count == 150)
            for run in runs { #expect(zip(run, run.dropFirst()).allSatisfy { $1 == $0 + 2 }) }
            #expect(runs.joined().elementsEqual(Set(runs.joined()).sorted()))
        }
    }

    @Test func resumeAfterTheWindowHasUnknownGap() throws {
        let scene = try Scene(["--resume-window", "1"])
        for transports in Self.turns {
            let client = Returner(scene)
            for (round, transport) in transports.enumerated() {
                try client.come(transport)
                try client.read(50)
                let before = scene.broker.log.components(separatedBy: "coaty/3/-/CHN:c/+").count
                client.cut()
                if round < 2 {
                    try waitUntil("nothing is observed any more") {
                        // The gateway notices a closed event stream only when it writes to it.
                        try scene.load.publish(2)
                        return scene.broker.log.components(separatedBy: "coaty/3/-/CHN:c/+").count > before
                    }
                }
            }
            let runs = Delivered.runs(client.delivered)
            #expect(runs.map(\.count) == [50, 50, 50], "\(transports)")
            for run in runs { #expect(run == run.first.map { Array($0..<$0 + 50) }) }
        }
    }
}
