import Foundation
import TestSupport
import Testing

/// Clients that resume a subscription, and clients that read too slowly.
@Suite(.exclusive, .frameChecks) struct ResumeTests {
    private static let channel = #""event":"channel","channelId":"c""#

    private func publish(_ scene: Scene, _ numbers: Range<Int>) throws {
        for number in numbers {
            try scene.agent.publish("coaty/3/-/CHN:c/source", #"{"object":\#(Scene.job("\(number)"))}"#)
        }
    }

    private func number(_ frame: FrameClient.Frame) -> Int? { (frame.object["name"] as? String).flatMap { Int($0) } }

    private func number(_ event: EventStreamClient.Event?) -> Int? {
        let object = (event?.json["data"] as? [String: Any])?["object"] as? [String: Any]
        return (object?["name"] as? String).flatMap { Int($0) }
    }

    @Test func cursorWorksOnBothTransports() throws {
        let scene = try Scene()
        var client: FrameClient? = try scene.gateway.frameClient()
        try client?.subscribe("s", Self.channel)
        try publish(scene, 0..<1)
        let first = try #require(try client?.next(of: "s")["cursor"])
        client = nil
        try publish(scene, 1..<4)
        let events = try scene.gateway.eventStream("channel?channelId=c", headers: [("Last-Event-ID", first)])
        #expect(number(try events.next()) == 1)
        let second = try #require(try events.next())
        #expect(number(second) == 2)
        let cursor = try #require(second.id)
        let again = try scene.gateway.frameClient()
        try again.subscribe("s", Self.channel + #","since":"\#(cursor)""#)
        let single = try scene.gateway.frameClient("channel?channelId=c&since=\(cursor)")
        #expect(try single.next().op == "ok")
        // The header overrides the query.
        let both = try scene.gateway.eventStream(
            "channel?channelId=c&since=\(first)",
            headers: [("Last-Event-ID", cursor)]
        )
        #expect(try number(again.next(of: "s")) == 3)
        #expect(try number(single.next()) == 3)
        #expect(number(try both.next()) == 3)
        // Later events are delivered, too.
        try publish(scene, 4..<5)
        #expect(try number(again.next(of: "s")) == 4)
        #expect(try number(single.next()) == 4)
        #expect(number(try both.next()) == 4)
    }

    @Test func unknownCursorIsReportedAsGap() throws {
        let scene = try Scene()
        let client = try scene.gateway.frameClient()
        try client.subscribe("s", Self.channel + #","since":"0-1""#)
        let gap = try client.next(of: "s")
        #expect(gap.op == "gap" && gap.json["dropped"] is NSNull)
        try publish(scene, 0..<1)
        #expect(try number(client.next(of: "s")) == 0)
        // A cursor of another feed also leads to a gap.
        let cursor = try #require(client.received.last?["cursor"])
        try client.subscribe("o", #""event":"channel","channelId":"other","since":"\#(cursor)""#)
        #expect(try client.next(of: "o").op == "gap")
        #expect(try client.ask("subscribe", Self.channel + #","since":"x""#)["pointer"] == "/since")
    }

    @Test func evictedEventsAreCountedInGap() throws {
        let scene = try Scene(["--limit", "maximum-replay-memory=20000"])
        let client = try scene.gateway.frameClient()
        try client.subscribe("s", Self.channel)
        try publish(scene, 0..<50)
        let cursors = try (0..<50).map { _ in try #require(try client.next(of: "s")["cursor"]) }
        try client.subscribe("r", Self.channel + #","since":"\#(cursors[0])""#)
        let gap = try client.next(of: "r")
        let lost = try #require(gap.json["dropped"] as? Int, "\(gap)")
        #expect(lost > 0 && lost < 49)
        for expected in 1 + lost..<50 { #expect(try number(client.next(of: "r")) == expected) }
        // It is unknown whether a filter would have passed the removed events.
        try client.subscribe("f", Self.channel + #","since":"\#(cursors[0])","filter":["name",["Exists"]]"#)
        #expect(try client.next(of: "f").json["dropped"] is NSNull)
    }

    /// A client that resumes from the cursor of a delivered event gets the throttled events.
    @Test func throttledEventsAreReplayed() throws {
        let scene = try Scene()
        func publish(_ id: String, _ name: String) throws {
            let object = #"{"coreType":"CoatyObject","objectType":"t","objectId":"\#(id)","name":"\#(name)"}"#
            try scene.agent.publish("coaty/3/-/CHN:c/source", #"{"object":\#(object)}"#)
        }
        let client = try scene.gateway.frameClient()
        try client.subscribe("s", Self.channel + #","throttle":3000"#)
        for (id, name) in [("a", "a0"), ("a", "a1"), ("b", "b0")] { try publish(id, name) }
        func next(_ id: String) throws -> (name: String?, cursor: String?) {
            let frame = try client.next(of: id)
            return (frame.object["name"] as? String, frame["cursor"])
        }
        #expect(try next("s").name == "a0")
        let passed = try next("s")
        #expect(passed.name == "b0")
        try client.subscribe("r", Self.channel + #","since":"\#(try #require(passed.cursor))""#)
        #expect(try next("r").name == "a1")
        #expect(try next("r").name == "b0")
        let released = try next("s")
        #expect(released.name == "a1")
        try client.subscribe("l", Self.channel + #","since":"\#(try #require(released.cursor))""#)
        try publish("c", "c0")
        #expect(try next("l").name == "c0")
    }

    @Test func brokerRestartIsReportedAsGap() throws {
        let scene = try Scene()
        let client = try scene.gateway.frameClient()
        try client.subscribe("s", Self.channel)
        try publish(scene, 0..<1)
        let cursor = try #require(try client.next(of: "s")["cursor"])
        try scene.broker.restart()
        let gap = try client.next(of: "s")
        #expect(gap.op == "gap" && gap.json["dropped"] is NSNull)
        try scene.gateway.untilReady()
        // The gateway first restores its own subscriptions, so an `ok` for a new one shows that they are active again.
        try client.subscribe("other", #""event":"channel","channelId":"other""#)
        let agent = try MQTTTestClient(port: scene.broker.port)
        try agent.publish("coaty/3/-/CHN:c/source", #"{"object":\#(Scene.job("1"))}"#)
        #expect(try number(client.next(of: "s")) == 1)
        try client.subscribe("r", Self.channel + #","since":"\#(cursor)""#)
        let resumed = try client.next(of: "r")
        #expect(resumed.op == "gap" && resumed.json["dropped"] is NSNull)
        #expect(try number(client.next(of: "r")) == 1)
    }

    @Test func subscriptionWhileOfflineBeginsWithGap() throws {
        let scene = try Scene()
        scene.broker.kill()
        try waitUntil("offline") { try scene.gateway.request("GET", "/readyz").status == 503 }
        let client = try scene.gateway.frameClient()
        try client.subscribe("s", Self.channel)
        #expect(try client.next(of: "s").json["dropped"] is NSNull)
        let events = try scene.gateway.eventStream("channel?channelId=c")
        #expect(try events.next()?.json["dropped"] is NSNull)
        #expect(try client.ask("publish", Self.channel + #","data":{"objects":[]}"#).json["deferred"] as? Bool == true)
        let refused = try client.ask("request", #""event":"discover","data":{"objectTypes":["t"]}"#)
        #expect(refused.op == "error" && refused.json["status"] as? Int == 503)
    }

    @Test func snapshotSubscriptionCanBeResumed() throws {
        let scene = try Scene()
        func advertise(_ name: String) throws {
            try scene.agent.publish(
                "coaty/3/-/ADV:Task/owner",
                #"{"object":{"coreType":"Task","objectType":"t","objectId":"\#(name)","name":"n","creatorId":"c","#
                    + #""creationTimestamp":1,"status":0}}"#
            )
        }
        let snapshot = #""event":"advertise","snapshot":true,"objectType":"t""#
        let client = try scene.gateway.frameClient()
        try advertise("a")
        try waitUntil("it is known") {
            try scene.gateway.request("GET", "/v1/objects?objectType=t").json?["total"] as? Int == 1
        }
        try client.subscribe("s", snapshot)
        let cursor = try #require(try client.next(of: "s")["cursor"])
        try advertise("b")
        #expect(try client.next(of: "s")["change"] == "added")
        try client.subscribe("r", snapshot + #","since":"\#(cursor)""#)
        let missed = try client.next(of: "r")
        #expect(missed["change"] == "added" && missed.object["objectId"] as? String == "b")
        // A client that cannot resume gets all objects again.
        try client.subscribe("u", snapshot + #","since":"0-1""#)
        #expect(try client.next(of: "u").op == "gap")
        #expect(Set(try (0..<2).map { _ in try client.next(of: "u").object["objectId"] as? String }) == ["a", "b"])
        // The same applies if there are no objects.
        try scene.agent.publish("coaty/3/-/DAD/owner", #"{"objectIds":["owner"]}"#)
        for id in ["s", "r", "u"] { for _ in 0..<2 { #expect(try client.next(of: id)["change"] == "removed") } }
        try client.subscribe("e", snapshot + #","since":"0-1""#)
        #expect(try client.next(of: "e").op == "gap")
        try advertise("c")
        #expect(try client.next(of: "e").object["objectId"] as? String == "c")
    }
}
