import Foundation
import TestSupport
import Testing

/// Events that the gateway receives but does not accept.
@Suite(.exclusive, .frameChecks) struct LostEventTests {
    private static let topic = "coaty/3/-/CHN:c/00000000-0000-4000-8000-000000000001"

    private static func event(_ name: String, _ members: String = "") -> String {
        #"{"object":{"objectId":"00000000-0000-4000-8000-000000000002","coreType":"CoatyObject","objectType":"com.example.A","#
            + #""name":"\#(name)"\#(members)}}"#
    }

    @Test(arguments: [
        #","a":"\#(String(repeating: "x", count: 1 << 20))""#,
        #","a":[\#(Array(repeating: "1", count: 1000).joined(separator: ","))]"#,
    ])
    func oversizedEventsAreReportedAsGap(_ members: String) throws {
        let scene = try Scene(["--limit", "maximum-event-size=1048576", "--limit", "maximum-event-values=1000"])
        let client = try scene.gateway.frameClient()
        try client.subscribe("c", #""event":"channel","channelId":"c""#)
        try client.subscribe("other", #""event":"channel","channelId":"other""#)
        try client.subscribe("traffic", #""event":"traffic","events":["channel"]"#)
        try scene.agent.publish(Self.topic, Self.event("before"))
        try scene.agent.publish(Self.topic, Self.event("too much", members))
        try scene.agent.publish(Self.topic, Self.event("behind"))
        for id in ["c", "traffic"] {
            #expect(try client.next(of: id).op == "event")
            #expect(try client.next(of: id).op == "gap")
            #expect(try client.next(of: id).op == "event")
        }
        #expect(client.received.allSatisfy { $0.id != "other" || $0.op == "ok" })
        #expect(try scene.gateway.request("GET", "/readyz").status == 200)
    }

    private static let deep = #","a":\#(String(repeating: "[", count: 600))\#(String(repeating: "]", count: 600))"#

    @Test(arguments: [#","a":NaN"#, deep])
    func unreadableEventsAreReportedAsGapWithReason(_ members: String) throws {
        let scene = try Scene()
        let client = try scene.gateway.frameClient()
        try client.subscribe("c", #""event":"channel","channelId":"c""#)
        try client.subscribe("other", #""event":"channel","channelId":"other""#)
        try client.subscribe("traffic", #""event":"traffic","events":["channel"]"#)
        let events = try EventStreamClient(port: scene.gateway.port, path: "/v1/sse/channel?channelId=c")
        #expect(try events.next()?.json["op"] as? String == "ok")
        try scene.agent.publish(Self.topic, Self.event("before"))
        try scene.agent.publish(Self.topic, Self.event("invalid", members))
        try scene.agent.publish(Self.topic, Self.event("behind"))
        for id in ["c", "traffic"] {
            #expect(try client.next(of: id).op == "event")
            let gap = try client.next(of: id)
            #expect(gap.op == "gap" && gap["reason"] == "invalid" && gap.json["dropped"] as? Int == 1)
            #expect(try client.next(of: id).op == "event")
        }
        #expect(try events.next()?.json["op"] as? String == "event")
        let gap = try #require(try events.next()).json
        #expect(gap["op"] as? String == "gap" && gap["reason"] as? String == "invalid" && gap["dropped"] as? Int == 1)
        #expect(try events.next()?.json["op"] as? String == "event")
        #expect(client.received.allSatisfy { $0.id != "other" || $0.op == "ok" })
        let status = try scene.gateway.request("GET", "/v1/status")
        let senders = try #require(status.json?["invalidSenders"] as? [[String: Any]])
        #expect(senders.first?["sourceId"] as? String == "00000000-0000-4000-8000-000000000001")
        #expect(try scene.gateway.metric(#"coaty_gateway_feed_gaps_total{reason="invalid"}"#) == 2)
    }

    @Test func manyUnreadableEventsBecomeFewGaps() throws {
        let scene = try Scene()
        let client = try scene.gateway.frameClient()
        try client.subscribe("c", #""event":"channel","channelId":"c""#)
        let count = 500
        for _ in 0..<count { try scene.agent.publish(Self.topic, "NaN") }
        try scene.agent.publish(Self.topic, Self.event("end"))
        var (gaps, dropped) = (0, 0)
        while dropped < count {
            let frame = try client.next(of: "c")
            guard frame.op == "gap" else { continue }
            gaps += 1
            dropped += try #require(frame.json["dropped"] as? Int)
        }
        #expect(dropped == count && gaps < 10)
    }

    /// It is not known whether the client may see an event whose content can't be read.
    @Test func unreadableEventsAreHiddenFromLimitedViews() throws {
        let scene = try AccessScene(VisibilityTests.file)
        let (limited, entire) = (try scene.socket(as: "hall-1"), try scene.socket(as: "admin"))
        for client in [limited, entire] {
            try client.subscribe("c", #""event":"channel","channelId":"c""#)
            try client.subscribe("traffic", #""event":"traffic","events":["channel"]"#)
        }
        try scene.publish("CHN:c", "NaN")
        try scene.publish("CHN:c", #"{"object":\#(AccessScene.lamp("end", site: "hall-1"))}"#)
        for id in ["c", "traffic"] {
            #expect(try limited.next(of: id).op == "event")
            #expect(try entire.next(of: id)["reason"] == "invalid")
        }
    }
}
