import Foundation
import TestSupport
import Testing
@testable import Base

@Suite(.exclusive) struct StreamTests {
    private func frame(_ event: WebSocketClient.Event) throws -> [String: Any] {
        guard case .text(let text) = event else {
            Issue.record("expected a text frame, got \(event)")
            return [:]
        }
        return try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
    }

    @Test func streamsEachEventOnce() throws {
        let scene = try Scene()
        let byObjectType = try scene.gateway.stream("advertise?objectType=com.example.Job")
        let byCoreType = try scene.gateway.stream("advertise?coreType=Task")
        let deadvertised = try scene.gateway.stream("deadvertise")
        let channel = try scene.gateway.stream("channel?channelId=a%20b")

        #expect(try scene.gateway.post("/v1/advertise", #"{"object":\#(Scene.job("streamed"))}"#).status == 202)
        for client in [byObjectType, byCoreType] {
            let frame = try frame(client.receive())
            #expect(frame["op"] as? String == "event")
            #expect(frame["event"] as? String == "advertise")
            let object = (frame["data"] as? [String: Any])?["object"] as? [String: Any]
            #expect(object?["name"] as? String == "streamed")
        }

        // Valid events are delivered byte by byte, whatever their ids and layout; a gap replaces invalid events.
        try scene.agent.publish("coaty/3/-/DAD/\"source\\", "{\n  \"objectIds\" : [ \"x\" ]\n}")
        #expect(
            try deadvertised.receiveWithoutCursor()
                == "{\"op\":\"event\",\"event\":\"deadvertise\",\"sourceId\":\"\\\"source\\\\\",\"data\":{\n"
                + "  \"objectIds\" : [ \"x\" ]\n}}"
        )
        try scene.agent.publish("coaty/3/-/CHN:a b/s", #"{"object":{}}"#)
        try scene.agent.publish("coaty/3/-/CHN:a b/s", Array(#"{"object":"#.utf8) + [0xFF])
        try scene.agent.publish("coaty/3/-/CHN:a b/s", #"{"objects":[\#(Scene.job("valid"))]}"#)
        let gap = try frame(channel.receive())
        #expect(gap["op"] as? String == "gap" && gap["reason"] as? String == "invalid")
        let data = try frame(channel.receive())["data"] as? [String: Any]
        #expect((data?["objects"] as? [[String: Any]])?.first?["name"] as? String == "valid")
    }

    @Test func refusesABadSubscription() throws {
        let scene = try Scene()
        let refused: [(String, Int, String?)] = [
            ("/v1/ws/advertise", 400, "coreType"),
            ("/v1/ws/advertise?coreType=Foo", 400, "coreType"),
            ("/v1/ws/advertise?coreType=Task&objectType=x", 400, "objectType"),
            ("/v1/ws/advertise?objectType=a%2Fb", 400, "objectType"),
            ("/v1/ws/advertise?objectType=a&objectType=b", 400, "objectType"),
            ("/v1/ws/channel", 400, "channelId"),
            ("/v1/ws/channel?channelId=", 400, "channelId"),
            ("/v1/ws/rumour", 404, nil),
            ("/v1/ws/", 404, nil),
        ]
        for (path, status, parameter) in refused {
            let client = try WebSocketClient(port: scene.gateway.port)
            let response = try client.shakeHands(path: path)
            #expect(response.status == status, "\(path)")
            #expect(response.headers["content-type"] == "application/problem+json", "\(path)")
            let problem = try JSONSerialization.jsonObject(with: Data(response.body)) as? [String: Any]
            #expect(problem?["parameter"] as? String == parameter, "\(path)")
        }
    }

    /// Names that Swift considers equal, or combines with the separator before them, are different names in MQTT.
    @Test func channelNamesAreComparedByBytes() throws {
        let scene = try Scene()
        let names = ["Z\u{FC}rich", "Zu\u{308}rich", "\u{301}abc"]
        let streams = try ["Z%C3%BCrich", "Zu%CC%88rich", "%CC%81abc"]
            .map { try scene.gateway.stream("channel?channelId=\($0)") }
        // Each stream gets only its own channel; an event of another one would come first.
        for name in names {
            let payload = #"{"objects":[\#(Scene.job(name))]}"#
            try scene.agent.publish("coaty/3/-/CHN:\(name)/\u{301}source", payload)
        }
        for (stream, name) in zip(streams, names) {
            #expect(try #require(try frame(stream.receive())["channelId"] as? String).utf8.elementsEqual(name.utf8))
        }
        #expect(try scene.gateway.post("/v1/channel/Zu%CC%88rich", #"{"objects":[]}"#).status == 202)
        _ = try frame(streams[1].receive())
        for name in names { try scene.agent.publish("coaty/3/-/CHN:\(name)/last", #"{"objects":[]}"#) }
        for stream in streams { #expect(try frame(stream.receive())["sourceId"] as? String == "last") }
    }

    @Test func clientMessageClosesTheStream() throws {
        let scene = try Scene()
        let client = try scene.gateway.stream("deadvertise")
        try client.sendText("hello")
        guard case .close(4504, _) = try client.receive() else {
            Issue.record("expected a close with 4504")
            return
        }
    }

    @Test func lastConnectionEndsTheBrokerSubscription() throws {
        let broker = try BrokerProcess(extraConfiguration: ["log_type all"])
        defer { broker.stop() }
        let gateway = try GatewayProcess(["--broker", "mqtt://127.0.0.1:\(broker.port)", "--resume-window", "0"])
        try gateway.untilReady()
        var clients = try (0..<3).map { _ in try gateway.stream("channel?channelId=once") }
        clients.removeLast()
        clients.removeLast()
        // The gateway processes the disconnections before the last of these events.
        for number in 0..<5 {
            #expect(try gateway.post("/v1/channel/once", #"{"object":\#(Scene.job("\(number)"))}"#).status == 202)
            _ = try frame(clients[0].receive())
        }
        // In the log, the filter without a QoS is that of an UNSUBSCRIBE; confirmations of publications have others.
        let unsubscription = "\tcoaty/3/-/CHN:once/+\n"
        #expect(!broker.log.contains(unsubscription))
        clients.removeAll()
        try waitUntil("the gateway unsubscribes") { broker.log.contains(unsubscription) }
        #expect(broker.log.components(separatedBy: "CHN:once/+ (QoS 0)").count == 2)
    }

    /// With `close`, the gateway ends the stream; by default, it drops the oldest queued events.
    @Test(arguments: ["close", "dropOldest"]) func unreadStreamDoesNotAffectOthers(_ overflow: String) throws {
        let scene = try Scene()
        let idle = try WebSocketClient(port: scene.gateway.port, receiveBuffer: 4096)
        #expect(try idle.shakeHands(path: "/v1/ws/channel?channelId=load&overflow=\(overflow)").status == 101)
        try idle.untilSubscribed()
        let clients = try (0..<99).map { _ in try scene.gateway.stream("channel?channelId=load") }
        // More than the outbound queue and the socket buffers can hold.
        let filler = String(repeating: "x", count: 20_000)
        let rounds = 600
        let connection = try RawConnection(port: scene.gateway.port)
        for round in 0..<rounds {
            let body = #"{"object":\#(Scene.job("\(round) \(filler)"))}"#
            let headers = [("Content-Type", "application/json")]
            #expect(try connection.request("POST", "/v1/channel/load", headers: headers, body: body).status == 202)
            for client in clients {
                let frame = try client.receive()
                guard case .text(let text) = frame else {
                    Issue.record("round \(round): expected a text frame, not \(frame)")
                    return
                }
                #expect(text.contains(#""name":"\#(round) x"#))
            }
        }
        var last = try idle.receive()
        while case .text(let text) = last, !text.contains(#""name":"\#(rounds - 1) x"#) { last = try idle.receive() }
        if case .close(4001, _) = last { #expect(overflow == "close") } else { #expect(overflow == "dropOldest") }
    }
}
