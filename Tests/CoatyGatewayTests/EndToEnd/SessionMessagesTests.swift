import Foundation
import TestSupport
import Testing

/// The message counts in `GET /v1/status`, compared with the broker's counters.
@Suite(.exclusive, .frameChecks) struct SessionMessagesTests {
    private typealias Counts = [String: [String: Int]]

    private static let topics = "$SYS/broker/publish/messages/"

    private func events(_ gateway: GatewayProcess) throws -> (received: Int, published: Int, sessions: Counts) {
        let json = try #require(try gateway.request("GET", "/v1/status").json?["events"] as? [String: Any])
        return (
            try #require(json["received"] as? Int), try #require(json["published"] as? Int),
            try #require(json["sessions"] as? Counts)
        )
    }

    @Test func messageCountsEqualThoseOfTheBroker() throws {
        let broker = try BrokerProcess(extraConfiguration: ["sys_interval 1"])
        defer { broker.stop() }
        let gateway = try GatewayProcess(["--broker", "mqtt://127.0.0.1:\(broker.port)", "--demo", "true"])
        try gateway.untilReady()
        let client = try gateway.frameClient()
        _ = try client.ask("identify", #""name":"Kiosk""#)
        try client.subscribe("t", #""event":"traffic""#)
        try client.subscribe("r", #""event":"raw","topic":"door/#""#)
        // The sessions that observe other namespaces and traffic receive this message.
        let stranger = try MQTTTestClient(port: broker.port)
        try stranger.publish("coaty/3/other/ADV:Identity/stranger", "{}")
        let node =
            #"{"contextName":"Greenhouse","name":"Door controller","ioSources":[{"name":"Probe","valueType":"T"}]}"#
        #expect(try gateway.post("/v1/io/nodes", node).status == 201)
        // All agents receive this request. Otherwise, it depends on the time whether an identity receives anything.
        let request = UUID().uuidString.lowercased()
        try stranger.subscribe("coaty/3/-/RSV/+/\(request)")
        try stranger.publish("coaty/3/-/DSC/stranger/\(request)", #"{"coreTypes":["Identity"]}"#)
        try waitUntil("the identity has responded") { stranger.messages.contains { $0.text.contains("Kiosk") } }
        let id = UUID().uuidString.lowercased()
        for number in 0..<50 {
            let object =
                #"{"object":{"coreType":"CoatyObject","objectType":"t","objectId":"\#(id)","name":"\#(number)"}}"#
            _ = try client.ask("publish", #""event":"channel","channelId":"c","data":\#(object)"#)
            #expect(try gateway.post("/v1/channel/c", object).status == 202)
            let octets = [("Content-Type", "application/octet-stream")]
            let raw = try gateway.request("POST", "/v1/raw/door%2F1", headers: octets, body: "open")
            #expect(raw.status == 202)
        }
        // The broker's counters include their own messages: first those of one topic, then those of both.
        let published = try MQTTTestClient(port: broker.port)
        try published.subscribe(Self.topics + "received")
        try waitUntil("the broker has received what is published", within: 60) {
            published.messages.last.map { Int($0.text) } == (try events(gateway).published) + 2
        }
        let sent = try MQTTTestClient(port: broker.port)
        try sent.subscribe(Self.topics + "sent")
        try waitUntil("the broker has sent what is received", within: 60) {
            let messages = sent.messages
            guard let last = messages.last.flatMap({ Int($0.text) }) else { return false }
            let others = messages.count - 1 + published.messages.count + stranger.messages.count
            return last == (try events(gateway).received) + others
        }
        let sessions = try events(gateway).sessions
        for (kind, received, isPublishing) in [
            ("gateway", 1, true), ("traffic", 100, false), ("raw", 50, false), ("identities", 1, true),
            ("ioNodes", 1, true), ("demo", 1, true),
        ] {
            let counts = try #require(sessions[kind])
            #expect(
                counts["received"] ?? 0 >= received && (counts["published"] ?? 0 > 0) == isPublishing,
                "\(kind) \(counts)"
            )
        }
        #expect(sessions["identities"]?["published"] ?? 0 >= 50)
        #expect(try gateway.metric(#"coaty_gateway_broker_messages_received_total{session="raw"}"#) ?? 0 >= 50)
    }
}
