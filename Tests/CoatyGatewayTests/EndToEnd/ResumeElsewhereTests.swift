import Foundation
import TestSupport
import Testing

/// Clients whose gateway ends, and which resume at another gateway of its cluster.
@Suite(.exclusive, .frameChecks) struct ResumeElsewhereTests {
    private static let channel = #""event":"channel","channelId":"c""#

    private func publish(_ scene: ClusterScene, _ number: Int, channel: String = "c") throws {
        try scene.agent.publish("coaty/3/-/CHN:\(channel)/source", #"{"object":\#(Scene.job("\(number)"))}"#)
    }

    private func number(_ frame: FrameClient.Frame) -> Int? { (frame.object["name"] as? String).flatMap { Int($0) } }

    private func number(_ event: EventStreamClient.Event?) -> Int? {
        let object = (event?.json["data"] as? [String: Any])?["object"] as? [String: Any]
        return (object?["name"] as? String).flatMap { Int($0) }
    }

    /// Waits until a gateway has mirrored feeds for as long as a cursor needs.
    private func waitForMirrors(_ count: Double, at gateway: GatewayProcess) throws {
        try waitUntil("the feed is mirrored") { try gateway.metric("coaty_gateway_mirrored_feeds") == count }
        Thread.sleep(forTimeInterval: 7.5)
    }

    /// Publishes numbered events until it is stopped.
    private final class Load {
        private let thread: Thread
        private let done = DispatchSemaphore(value: 0)
        private(set) var count = 0

        init(_ publish: @escaping (Int) throws -> Void) {
            nonisolated(unsafe) let publish = publish
            nonisolated(unsafe) var own: Load?
            let done = done
            thread = Thread {
                while !Thread.current.isCancelled, let load = own {
                    try? publish(load.count)
                    load.count += 1
                    Thread.sleep(forTimeInterval: 0.004)
                }
                own = nil
                done.signal()
            }
            own = self
            thread.start()
        }

        func stop() -> Int {
            thread.cancel()
            done.wait()
            return count
        }
    }

    @Test func everyEventArrivesOnceAfterAGatewayIsKilled() throws {
        let scene = try ClusterScene()
        let (first, second) = (scene.gateways[0], scene.gateways[1])
        let client = try first.frameClient()
        try client.subscribe("s", Self.channel)
        // The stream is not read while the other subscription is.
        let stream = try first.eventStream("channel?channelId=c&buffer=4096")
        try waitForMirrors(1, at: second)
        #expect(try second.metric("coaty_gateway_feeds") == 0)
        let load = Load { try self.publish(scene, $0) }
        var received: [Int] = []
        while received.count < 1500 { received.append(try #require(number(try client.next(of: "s")))) }
        var streamed: [Int] = []
        var lastId: String?
        while streamed.count < 1200, let event = try stream.next() {
            streamed.append(try #require(number(event)))
            lastId = event.id
        }
        scene.kill(first)
        // What the first gateway has sent before.
        while let frame = try? client.next(of: "s", within: 1) { received.append(try #require(number(frame))) }
        let cursor = try #require(client.received.last?["cursor"])
        let resumed = try second.frameClient()
        try resumed.subscribe("s", Self.channel + #","since":"\#(cursor)""#)
        let lines = try second.frameClient("channel?channelId=c&since=\(cursor)")
        #expect(try lines.next().op == "ok")
        let events = try second.eventStream("channel?channelId=c", headers: [("Last-Event-ID", try #require(lastId))])
        for _ in 0..<500 { received.append(try #require(number(try resumed.next(of: "s")))) }
        let count = load.stop()
        while received.count < count { received.append(try #require(number(try resumed.next(of: "s")))) }
        #expect(received == Array(0..<count))
        while streamed.count < count { streamed.append(try #require(number(try events.next()))) }
        #expect(streamed == Array(0..<count))
        #expect(try second.metric(#"coaty_gateway_replays_total{outcome="peer"}"#) == 3)
        // The cursors of the second gateway are valid there.
        try publish(scene, count)
        let last = try #require(try resumed.next(of: "s")["cursor"])
        try publish(scene, count + 1)
        try resumed.subscribe("t", Self.channel + #","since":"\#(last)""#)
        #expect(try number(resumed.next(of: "t")) == count + 1)
    }

    @Test func uncertainCursorsAreReportedAsGap() throws {
        let scene = try ClusterScene()
        let (first, second) = (scene.gateways[0], scene.gateways[1])
        let client = try first.frameClient()
        try client.subscribe("s", Self.channel)
        try waitForMirrors(1, at: second)
        // The same payload several times.
        let job = #"{"object":\#(Scene.job("7"))}"#
        for _ in 0..<4 { try scene.agent.publish("coaty/3/-/CHN:c/source", job) }
        var cursors: [String] = []
        for _ in 0..<4 { cursors.append(try #require(try client.next(of: "s")["cursor"])) }
        // A feed that the second gateway has not mirrored for long enough.
        try client.subscribe("n", #""event":"channel","channelId":"new""#)
        try publish(scene, 1, channel: "new")
        let new = try #require(try client.next(of: "n")["cursor"])
        scene.kill(first)
        let resumed = try second.frameClient()
        try resumed.subscribe("r", Self.channel + #","since":"\#(cursors[1])""#)
        #expect(try resumed.next(of: "r").op == "gap")
        try resumed.subscribe("n", #""event":"channel","channelId":"new","since":"\#(new)""#)
        #expect(try resumed.next(of: "n").op == "gap")
        let altered = String(cursors[3].dropLast()) + (cursors[3].last == "A" ? "B" : "A")
        try resumed.subscribe("a", Self.channel + #","since":"\#(altered)""#)
        #expect(try resumed.next(of: "a").op == "gap")
        // Nothing old is delivered; new events are.
        for channel in ["c", "new"] { try publish(scene, 9, channel: channel) }
        for id in ["r", "n", "a"] { #expect(try number(resumed.next(of: id)) == 9) }
        #expect(try second.metric(#"coaty_gateway_replays_total{outcome="unknown"}"#) == 3)
    }

    /// A cursor shows only the events that the client may see at the other gateway.
    @Test func cursorsGiveNoAccess() throws {
        let access = AccessFile(
            tokens: [.init("all", "all"), .init("hall", "some", site: "hall")],
            anonymous: ["status"],
            roles: [
                "status": ["{read: [status]}"],
                "all": ["{observe: [channel], channels: [\"*\"]}"],
                "some": ["{observe: [channel], channels: [\"*\"], where: \(AccessFile.ownSite)}"],
            ]
        )
        let file = FileManager.default.temporaryDirectory.appending(path: "access-\(UUID().uuidString).yaml").path
        try access.yaml.write(toFile: file, atomically: true, encoding: .utf8)
        defer { try? FileManager.default.removeItem(atPath: file) }
        let scene = try ClusterScene(2, ["--config", file])
        func client(_ name: String, of gateway: GatewayProcess) throws -> FrameClient {
            try gateway.frameClient(headers: [("Authorization", "Bearer \(AccessFile.secret(of: name))")])
        }
        func publish(_ names: String...) throws {
            for name in names {
                let site = name.hasPrefix("h") ? "hall" : "yard"
                let object = AccessScene.lamp(name, site: site)
                try scene.agent.publish("coaty/3/-/CHN:c/source", #"{"object":\#(object)}"#)
            }
        }
        let former = try client("all", of: scene.gateways[0])
        try former.subscribe("s", Self.channel)
        try waitForMirrors(1, at: scene.gateways[1])
        try publish("h1", "y1", "h2", "y2", "h3")
        let cursor = try #require(try former.next(of: "s")["cursor"])
        try waitUntil("all are delivered") { (try former.next(of: "s").object["name"] as? String) == "h3" }
        let resumed = try client("hall", of: scene.gateways[1])
        try resumed.subscribe("s", Self.channel + #","since":"\#(cursor)""#)
        for name in ["h2", "h3"] { #expect(try resumed.next(of: "s").object["name"] as? String == name) }
        // A client without access to the channel.
        let stranger = try scene.gateways[1].frameClient()
        #expect(try stranger.ask("subscribe", Self.channel + #","since":"\#(cursor)""#).op == "error")
    }

    @Test func nothingIsMirroredWithTheBoundZero() throws {
        let scene = try ClusterScene(2, ["--limit", "maximum-peer-feeds=0"])
        let client = try scene.gateways[0].frameClient()
        try client.subscribe("s", Self.channel)
        try publish(scene, 1)
        let cursor = try #require(try client.next(of: "s")["cursor"])
        #expect(try scene.gateways[1].metric("coaty_gateway_mirrored_feeds") == 0)
        let other = try scene.gateways[1].frameClient()
        try other.subscribe("s", Self.channel + #","since":"\#(cursor)""#)
        #expect(try other.next(of: "s").op == "gap")
    }
}
