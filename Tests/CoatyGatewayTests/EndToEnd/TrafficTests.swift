import Foundation
import TestSupport
import Testing
@testable import Base

/// All events in the network, observed through the gateway.
@Suite(.exclusive, .frameChecks) struct TrafficTests {
    private static let job = Scene.job("j")
    private static let traffic = #""event":"traffic""#

    @Test func allPatternsAreDelivered() throws {
        let scene = try Scene()
        let client = try scene.gateway.frameClient()
        try client.subscribe("t", Self.traffic)
        for sent in SentEvent.all {
            try scene.agent.publish("coaty/3/-/" + sent.topic, sent.payload)
            // An event that is published for its object type, too, is delivered once; events of other namespaces are
            // not delivered.
            let twin = sent.topic.replacing(":Task/", with: "::com.example.Job/")
            if twin != sent.topic { try scene.agent.publish("coaty/3/-/" + twin, sent.payload) }
            try scene.agent.publish("coaty/3/other/" + sent.topic, sent.payload)
            try scene.agent.publish("other/" + sent.topic, sent.payload)
        }
        try scene.publishEnd()
        let delivered = try client.events(of: "t")
        #expect(delivered.map(\.op) == SentEvent.all.map { _ in "event" })
        for (frame, sent) in zip(delivered, SentEvent.all) {
            var members = frame.json.compactMapValues { $0 as? String }
            #expect(members.removeValue(forKey: "cursor") != nil)
            let common = ["op": "event", "id": "t", "event": sent.event, "topic": "coaty/3/-/" + sent.topic]
            #expect(members == common.merging(sent.members) { $1 })
            #expect(frame.text.hasSuffix(#","data":\#(sent.data ?? sent.payload)}"#), "\(frame)")
        }
    }

    /// Events of the gateway and of its clients are delivered once each. The observing session publishes none.
    @Test func eventsOfGatewayAndClientsAreDelivered() throws {
        let scene = try Scene()
        let id = try scene.gateway.identityId()
        let client = try scene.gateway.frameClient()
        try client.subscribe("t", Self.traffic + #","events":["advertise","deadvertise","call","return"]"#)
        try client.subscribe("s", #""event":"call","operation":"o""#)
        #expect(try scene.gateway.post("/v1/advertise", #"{"object":\#(Self.job)}"#).status == 202)
        let other = try scene.gateway.frameClient()
        let identity = try other.ask("identify", #""name":"Other""#).json["identity"] as? [String: Any]
        let otherId = try #require(identity?["objectId"] as? String)
        try other.ask("request", id: "r", #""event":"call","operation":"o","data":{"parameters":{"a":1}}"#)
        let call = try client.next(of: "s")
        try client.ask(
            "respond",
            #""event":"return","correlationId":"\#(call["correlationId"] ?? "")","data":{"result":1}"#
        )
        #expect(try other.next(of: "r").op == "response")
        try scene.publishEnd()
        let delivered = try client.events(of: "t").map { "\($0["event"] ?? "") \($0["sourceId"] ?? "")" }
        #expect(delivered == ["advertise \(id)", "advertise \(otherId)", "call \(otherId)", "return \(id)"])
        let agents = scene.agent.messages.filter { $0.topic.contains("/ADV:Identity/") }
        #expect(agents.count == 2, "the observing session is not an agent")
    }

    @Test func eventsAreDeliveredAndResumedOnAllTransports() throws {
        let scene = try Scene()
        var socket: FrameClient? = try scene.gateway.frameClient("traffic?events=call,return")
        #expect(try socket?.next().op == "ok")
        var events: EventStreamClient? = try scene.gateway.eventStream("traffic?events=return,call")
        try scene.publishAll()
        let first = try #require(try socket?.next())
        #expect(first["event"] == "call" && first["operation"] == "com.example.add")
        #expect(try socket?.next()["event"] == "return")
        #expect(try events?.next()?.json["event"] as? String == "call")
        // The session stays connected for clients that resume.
        socket = nil
        events = nil
        try scene.agent.publish("coaty/3/-/CLL:o/s/meanwhile", "{}")
        let cursor = try #require(first["cursor"])
        let client = try scene.gateway.frameClient()
        let choice = Self.traffic + #","events":["call","return"]"#
        try client.subscribe("r", choice + #","since":"\#(cursor)""#)
        #expect(try client.next(of: "r")["event"] == "return")
        #expect(try client.next(of: "r")["correlationId"] == "meanwhile")
        // A cursor is not valid for another choice of events.
        try client.subscribe("o", Self.traffic + #","events":["call"],"since":"\#(cursor)""#)
        #expect(try client.next(of: "o").op == "gap")
    }

    @Test func filtersAndFieldsApplyToObjectsOrToTheData() throws {
        let scene = try Scene()
        let client = try scene.gateway.frameClient()
        try client.subscribe("o", Self.traffic + #","filter":["name",["Equals","j"]],"fields":["status"]"#)
        try client.subscribe("d", Self.traffic + #","filter":["result",["Equals",3]],"fields":["result"]"#)
        try scene.publishAll()
        try scene.agent.publish("coaty/3/-/ADV:Task/s", #"{"object":\#(Self.job),"name":"j","result":3}"#)
        for event in ["advertise", "resolve", "retrieve", "update", "complete", "advertise"] {
            let frame = try client.next(of: "o")
            let objects = frame.data["objects"] as? [[String: Any]] ?? [frame.object]
            #expect(frame["event"] == event && objects.map { Set($0.keys) } == [["objectId", "status"]], "\(frame)")
        }
        let result = try client.next(of: "d")
        #expect(result["event"] == "return" && result.text.hasSuffix(#""data":{"result":3}}"#))
        #expect(client.takeReceived(of: "d").isEmpty)
        for (option, pointer) in [
            (#""throttle":100"#, "/throttle"), (#""events":[]"#, "/events"), (#""events":["raw"]"#, "/events"),
            (#""events":"call""#, "/events"), (#""coreType":"Task""#, "/coreType"), (#""since":"x""#, "/since"),
        ] {
            let refused = try client.ask("subscribe", Self.traffic + "," + option)
            #expect(refused.json["status"] as? Int == 400 && refused["pointer"] == pointer, "\(refused)")
        }
        for query in ["events=", "events=raw", "events=call,", "events=call&events=call", "throttle=5"] {
            let refused = try scene.gateway.request("GET", "/v1/sse/traffic?\(query)")
            #expect(refused.status == 400 && refused.problem == "invalid-parameter", "\(query)")
        }
    }

    @Test func hostileMessagesDropNoOtherEvents() throws {
        let scene = try Scene()
        let client = try scene.gateway.frameClient()
        try client.subscribe("t", Self.traffic)
        let deep = String(repeating: #"{"a":"#, count: 100_000) + "1" + String(repeating: "}", count: 100_000)
        var hostile: [[UInt8]] = ["", "x", "[1]", "1", "{", #"{"a":1}}"#, "\u{FEFF}{}", deep].map { Array($0.utf8) }
        hostile += [[0xFF, 0xFE], Array(#"{"a":""#.utf8) + [0xC0, 0xAF] + Array(#""}"#.utf8), [0, 0, 0]]
        let topics = SentEvent.all.filter { $0.event != "iovalue" }.map(\.topic)
        for (index, bytes) in hostile.enumerated() {
            for topic in topics + ["IOV/x/y", "ADVERTISE:Task/s", "ZZZ/s", "ADV/s/t/u"] {
                try scene.agent.publish("coaty/3/-/" + topic, bytes)
            }
            // The source id is not a valid Coaty id, and the data has a member that does not belong to the pattern.
            try scene.agent.publish("coaty/3/-/DAD/\"<b>é\\", #"{"n":\#(index),"__proto__":{}}"#)
        }
        for value in [#"1,"x":2"#, #"1}"#, "", "\u{FEFF}1"] { try scene.agent.publish("coaty/3/-/IOV/s", value) }
        try scene.publishEnd()
        let delivered = try client.events(of: "t")
        let good = delivered.filter { $0["event"] == "deadvertise" }
        #expect(good.compactMap { $0.data["n"] as? Int } == Array(hostile.indices))
        #expect(good.allSatisfy { $0["sourceId"] == "\"<b>é\\" })
        let values = delivered.filter { $0["event"] == "iovalue" }
        let encoded = [#"1,"x":2"#, "1}", "", "\u{FEFF}1"].map { Data($0.utf8).base64EncodedString() }
        #expect(values.map { $0.data["value"] as? String } == encoded)
        #expect(values.allSatisfy { $0.data["encoding"] as? String == "base64" })
        let gaps = delivered.filter { $0.op == "gap" }
        #expect(!gaps.isEmpty && gaps.allSatisfy { $0["reason"] == "invalid" })
        #expect(delivered.count == good.count + values.count + gaps.count)
        try waitUntil("the log says so") { scene.gateway.log.contains("dropped an event that is not valid") }
        #expect(scene.gateway.log.split(separator: "\n").count < 100, "a flood does not fill the log")

        // A huge event is delivered or dropped, and later events are still delivered.
        for (number, size) in [1 << 20, 5 << 20, 17 << 20].enumerated() {
            let text = String(repeating: "a", count: size)
            try scene.agent.publish("coaty/3/-/CHN:c/s", #"{"object":{"a":"\#(text)"}}"#)
            try scene.agent.publish("coaty/3/-/DAD/s", #"{"n":\#(number)}"#)
            while try client.next(of: "t").data["n"] as? Int != number {}
        }
    }
}
