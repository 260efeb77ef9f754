import Foundation
import TestSupport
import Testing

@Suite(.exclusive) struct RawTests {
    private func post(_ scene: Scene, _ target: String, _ body: [UInt8], type: String? = "application/octet-stream")
        throws
        -> RawConnection.Response
    {
        let client = try RawConnection(port: scene.gateway.port)
        let contentType = type.map { "Content-Type: \($0)\r\n" } ?? ""
        let head = "POST \(target) HTTP/1.1\r\nHost: l\r\n\(contentType)Content-Length: \(body.count)\r\n\r\n"
        try client.send(Array(head.utf8) + body)
        return try client.readResponse()
    }

    @Test func publishesUnchangedBytes() throws {
        let scene = try Scene()
        try scene.agent.subscribe("a/#")
        let bytes: [UInt8] = [0, 255, 10, 13, 0x7B]
        for type in ["text/plain", "application/json", nil] {
            let response = try post(scene, "/v1/raw/a%2Fb%20%25", [], type: type)
            #expect(response.status == 415 && response.problem == "unsupported-media-type")
        }
        let response = try post(scene, "/v1/raw/a%2Fb%20%25", bytes)
        #expect(response.status == 202 && response.text == #"{"deferred":false}"#)
        #expect(try scene.agent.waitFor { $0.topic == "a/b %" }.payload == bytes)
    }

    @Test func retainedMessagesAreKeptByTheBroker() throws {
        let scene = try Scene()
        for (topic, query) in [("a", ""), ("b", "?retain=false"), ("c", "?retain=true"), ("d", "?retain=true")] {
            #expect(try post(scene, "/v1/raw/r%2F\(topic)\(query)", Array("x".utf8)).status == 202)
        }
        #expect(try post(scene, "/v1/raw/r%2Fd?retain=true", []).status == 202)
        try scene.agent.subscribe("last")
        #expect(try post(scene, "/v1/raw/last", []).status == 202)
        _ = try scene.agent.waitFor { $0.topic == "last" }
        let late = try MQTTTestClient(port: scene.broker.port)
        try late.subscribe("r/#")
        try late.subscribe("end")
        try scene.agent.publish("end", "")
        _ = try late.waitFor { $0.topic == "end" }
        #expect(late.messages.filter { $0.topic != "end" }.map(\.topic) == ["r/c"])
    }

    /// The broker sends a retained message as soon as it has the subscription, even before it acknowledges it.
    @Test func firstSubscriberReceivesRetainedMessage() throws {
        let scene = try Scene()
        let client = try scene.gateway.frameClient()
        for number in 0..<150 {
            try scene.agent.publish("kept/\(number)", "x", retain: true)
            try client.subscribe("s\(number)", #""event":"raw","topic":"kept/\#(number)""#)
            #expect(try client.next(of: "s\(number)", "event")["topic"] == "kept/\(number)")
        }
    }

    @Test func everySubscriberReceivesEachRetainedMessageOnce() throws {
        let scene = try Scene()
        let client = try scene.gateway.frameClient()
        for topic in ["a", "b"] { try scene.agent.publish("kept/\(topic)", "1", retain: true) }
        for id in ["s1", "s2", "s3"] {
            try client.subscribe(id, #""event":"raw","topic":"kept/+""#)
            let topics = try (0..<2).map { _ in try client.next(of: id, "event") }
            #expect(Set(topics.map { $0["topic"] }) == ["kept/a", "kept/b"])
            #expect(topics.allSatisfy { $0.text.contains(#""retained":true"#) })
        }
        // Retained while the feed is in use: the broker does not mark it for the subscriptions that exist.
        try scene.agent.publish("kept/c", "1", retain: true)
        try scene.agent.publish("kept/a", [], retain: true)
        for id in ["s1", "s2", "s3"] {
            #expect(try client.next(of: id, "event")["topic"] == "kept/c")
            #expect(try client.next(of: id, "event")["topic"] == "kept/a")
        }
        try client.subscribe("s4", #""event":"raw","topic":"kept/+""#)
        let late = try (0..<2).map { _ in try client.next(of: "s4", "event")["topic"] }
        #expect(Set(late) == ["kept/b", "kept/c"])
        try scene.agent.publish("kept/end", "")
        for id in ["s1", "s2", "s3", "s4"] { #expect(try client.next(of: id, "event")["topic"] == "kept/end") }
    }

    @Test func clientsThatReturnReceiveTheRetainedMessageAgain() throws {
        let scene = try Scene()
        let client = try scene.gateway.frameClient()
        try scene.agent.publish("kept/a", "1", retain: true)
        for round in 0..<20 {
            for id in ["a", "b"] { try client.subscribe("\(id)\(round)", #""event":"raw","topic":"kept/a""#) }
            for id in ["a", "b"] {
                #expect(try client.next(of: "\(id)\(round)", "event")["topic"] == "kept/a")
                #expect(try client.ask("unsubscribe", id: "\(id)\(round)").op == "ok")
            }
        }
    }

    /// Raw events do not use the gateway's main connection, where they would delay Coaty events.
    @Test func rawEventsAreObservedOverFurtherConnections() throws {
        let broker = try BrokerProcess(extraConfiguration: ["log_type all"])
        let scene = try Scene(["--limit", "maximum-raw-connections=1"], broker: broker)
        let client = try scene.gateway.frameClient()
        for (id, topic) in [("a", "a/#"), ("b", "+/b"), ("c", "c")] {
            try client.subscribe(id, #""event":"raw","topic":"\#(topic)""#)
        }
        try client.subscribe("channel", #""event":"channel","channelId":"x""#)
        let asked = broker.log.matches(of: /: (Coaty[0-9a-f]{18}) 0 (\S+)/).map { (String($0.1), String($0.2)) }
        let raw = asked.filter { ["a/#", "+/b", "c"].contains($0.1) }
        #expect(raw.count == 3 && Set(raw.map(\.0)).count == 1)
        #expect(!asked.contains { $0.0 == raw.first?.0 && $0.1.hasPrefix("coaty/") })
        for topic in ["a/b", "c"] { try scene.agent.publish(topic, topic) }
        for (id, topic) in [("a", "a/b"), ("b", "a/b"), ("c", "c")] {
            #expect(try client.next(of: id)["topic"] == topic)
        }
        #expect(client.received.allSatisfy { $0.op != "gap" })
        #expect(try scene.gateway.stop() == 0)
        // The gateway also has its main connection, and one that observes other namespaces.
        let connected = Set(broker.log.matches(of: /as (Coaty[0-9a-f]{18}) .p5/).map(\.1))
        #expect(connected.count >= 2)
        try waitUntil("all connections are closed in order") {
            Set(broker.log.matches(of: /Client (Coaty[0-9a-f]{18}) disconnected\./).map(\.1)) == connected
        }
    }

    @Test func publicationIsDeferredWhileOffline() throws {
        let scene = try Scene()
        scene.broker.kill()
        try waitUntil("the broker is away") { try scene.gateway.request("GET", "/readyz").status == 503 }
        #expect(try post(scene, "/v1/raw/a", []).text == #"{"deferred":true}"#)
    }

    @Test func refusesTopicsAndFlags() throws {
        let scene = try Scene()
        let long = Array(repeating: "a", count: 201).joined(separator: "%2F")
        // RabbitMQ would translate the dots and make it a topic of Coaty.
        for topic in [
            "coaty%2F3%2F-%2FADV:Task%2Fx", "coaty%2F", "coaty.3.-.CLL:lights.source.correlation", "a%2F%2B", "%23",
            long,
        ] {
            let response = try post(scene, "/v1/raw/\(topic)", [])
            #expect(response.status == 400 && response.problem == "invalid-parameter", "\(topic)")
            #expect(response.json?["parameter"] as? String == "topic", "\(topic)")
        }
        for filter in ["coaty.3.-.ADV:Task.x", "coaty%2F3%2F%23", "coaty./%2B"] {
            let response = try scene.gateway.request("GET", "/v1/sse/raw?topic=\(filter)")
            #expect(response.status == 400 && response.json?["parameter"] as? String == "topic", "\(filter)")
        }
        for query in ["retain=maybe", "retain=", "retain=1", "retain=true&retain=true"] {
            let response = try post(scene, "/v1/raw/a?\(query)", [])
            #expect(response.status == 400 && response.json?["parameter"] as? String == "retain", "\(query)")
        }
        for topic in ["a%00b", "a%01", "%FF"] {
            let response = try post(scene, "/v1/raw/\(topic)", [])
            #expect(response.status == 400 && response.problem == "bad-request", "\(topic)")
        }
        #expect(try post(scene, "/v1/raw/", []).status == 404)
    }
}
