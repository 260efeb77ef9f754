import Foundation
import TestSupport
import Testing

/// Publications because of which a broker closes the connection.
@Suite(.exclusive) struct BrokerRefusalTests {
    private static let limit = ["max_packet_size 20000"]

    private func body(_ name: String, id: String = UUID().uuidString.lowercased()) -> String {
        #"{"object":{"coreType":"CoatyObject","objectType":"t","objectId":"\#(id)","name":"\#(name)"}}"#
    }

    private var large: String { body(String(repeating: "x", count: 50_000)) }

    private func start(_ broker: BrokerProcess, _ version: String) throws -> GatewayProcess {
        let gateway = try GatewayProcess(["--broker", "mqtt://127.0.0.1:\(broker.port)", "--mqtt-version", version])
        try gateway.untilReady()
        return gateway
    }

    private func status(_ gateway: GatewayProcess) throws -> [String: Any] {
        try #require(try gateway.request("GET", "/v1/status").json?["broker"] as? [String: Any])
    }

    @Test func largerEventThanTheBrokerAcceptsIsRefusedBeforeItIsQueued() throws {
        let broker = try BrokerProcess(extraConfiguration: Self.limit + ["max_keepalive 20"])
        defer { broker.stop() }
        let gateway = try start(broker, "auto")
        let stated = try status(gateway)
        #expect(stated["mqttVersion"] as? String == "5" && stated["maximumPacketSize"] as? Int == 20_000)
        for path in ["/v1/advertise", "/v1/channel/c"] {
            let refused = try gateway.post(path, large)
            #expect(refused.status == 413 && refused.problem == "exceeds-broker-limit", "\(refused.text)")
            #expect(refused.text.contains("20000"))
        }
        #expect(try gateway.post("/v1/channel/c", body("small")).status == 202)
        #expect(try status(gateway)["reconnects"] as? Int == 0)
    }

    /// Two clients of a gateway at a broker whose limit is not known.
    private func scene() throws -> AccessScene {
        try AccessScene(
            AccessFile(tokens: [.init("one", "admin"), .init("other", "admin")]),
            ["--mqtt-version", "3.1.1"],
            brokerSettings: Self.limit
        )
    }

    private func status(_ scene: AccessScene) throws -> [String: Any] {
        try #require(try scene.get("/v1/status", as: "one").json?["broker"] as? [String: Any])
    }

    /// Waits until the broker has refused publications, and checks that the gateway's own connection was lost only once.
    private func waitForRefusals(_ count: Int, _ scene: AccessScene) throws {
        try waitUntil("\(count) are given up", within: 60) {
            let status = try status(scene)
            return status["refusedPublications"] as? Int == count && status["state"] as? String == "online"
        }
        #expect(try status(scene)["reconnects"] as? Int == 1)
    }

    /// Before, the gateway advertised the object on each connection, and the broker closed each.
    @Test func keptObjectThatTheBrokerRefusesEndsOneConnectionAndIsRefusedToItsClientOnly() throws {
        let scene = try scene()
        let (one, other) = (try scene.socket(as: "one"), try scene.socket(as: "other"))
        let id = UUID().uuidString.lowercased()
        let large = body(String(repeating: "x", count: 50_000), id: id)
        #expect(try scene.post("/v1/advertise", large, as: "one").status == 202)
        try waitForRefusals(1, scene)

        let problem = try one.next("the problem") { $0.op == "error" }
        #expect(problem["type"]?.hasSuffix(":refused-by-broker") == true && problem.text.contains(id), "\(problem)")
        #expect(!other.received.contains { $0.op == "error" })
        try waitUntil("audited") { scene.audit.contains(#""event":"refused-by-broker","client":"token one""#) }
        #expect(scene.audit.contains(#""objectId":"\#(id)""#))

        let repeated = try scene.post("/v1/advertise", large, as: "one")
        #expect(repeated.status == 413 && repeated.problem == "exceeds-broker-limit", "\(repeated.text)")
        // Another client is not refused, and does not interrupt others either.
        #expect(try scene.post("/v1/advertise", self.large, as: "other").status == 202)
        try waitForRefusals(2, scene)
        _ = try other.next("the problem") { $0.op == "error" }
    }

    /// Before, each event ended the connection of all, with a gap for each subscriber.
    @Test func manyRefusedEventsInterruptOthersOnce() throws {
        let scene = try scene()
        let events = try scene.events("channel?channelId=c", as: "other")
        for number in 0..<8 {
            let large = body(String(repeating: "x", count: 50_000 - 100 * number))
            #expect(try scene.post("/v1/channel/c", large, as: "one").status == 202)
            if number == 0 { try waitUntil("lost") { try status(scene)["reconnects"] as? Int == 1 } }
            // On the suspected channel.
            #expect(try scene.post("/v1/channel/c", body("n\(number)"), as: "other").status == 202)
        }
        // The first one was lost with the connection.
        try waitForRefusals(7, scene)
        var (names, gaps): ([String], Int) = ([], 0)
        while names.count < 8, let event = try events.next() {
            if event.name == "gap" { gaps += 1 }
            let object = (event.json["data"] as? [String: Any])?["object"] as? [String: Any]
            if event.name == "event" { names.append(object?["name"] as? String ?? "") }
        }
        #expect(names == (0..<8).map { "n\($0)" } && gaps == 1)
        let published = { scene.agent.messages.count { $0.topic.contains("/CHN:c/") } }
        try waitUntil("the other client has them") { published() >= 8 }
        #expect(published() == 8)
    }

    @Test func refusedEventsInterruptOthersOnceOverTLS() throws {
        let certificates = try Certificates()
        let broker = try BrokerProcess(certificates, extraConfiguration: Self.limit)
        defer { broker.stop() }
        let gateway = try GatewayProcess([
            "--broker", "mqtts://127.0.0.1:\(broker.port)", "--broker-ca-file", certificates.path("ca.pem"),
            "--mqtt-version", "3.1.1",
        ])
        try gateway.untilReady()
        #expect(try gateway.post("/v1/channel/c", large).status == 202)
        try waitUntil("lost", within: 60) { try status(gateway)["reconnects"] as? Int == 1 }
        #expect(try gateway.post("/v1/channel/c", large).status == 202)
        try waitUntil("given up", within: 60) { try status(gateway)["refusedPublications"] as? Int == 1 }
        let last = try status(gateway)
        #expect(last["reconnects"] as? Int == 1 && last["state"] as? String == "online")
    }

    @Test func requestOfASuspectIsAnswered() throws {
        let scene = try scene()
        #expect(try scene.post("/v1/channel/c", large, as: "one").status == 202)
        try waitUntil("lost") { try status(scene)["reconnects"] as? Int == 1 }
        let socket = try scene.socket(as: "one")
        try socket.send(#"{"op":"request","id":"d","event":"discover","data":{"objectTypes":["t"]},"timeout":30000}"#)
        let asked = try scene.agent.waitFor { $0.topic.contains("/DSC/") && $0.text.contains(#"["t"]"#) }
        let correlationId = try #require(asked.topic.split(separator: "/").last)
        try scene.agent.publish("coaty/3/-/RSV/other/\(correlationId)", body("answer"))
        _ = try socket.next("the answer") { $0.op == "response" && $0.id == "d" }
    }

    @Test func publicationsOfASuspectStayInOrder() throws {
        let scene = try scene()
        #expect(try scene.post("/v1/channel/c", large, as: "one").status == 202)
        try waitUntil("lost") { try status(scene)["reconnects"] as? Int == 1 }
        for number in 0..<100 {
            #expect(try scene.post("/v1/channel/c\(number % 3)", body("n\(number)"), as: "one").status == 202)
        }
        try waitUntil("all arrive") { scene.agent.messages.count { $0.topic.contains("/CHN:") } >= 100 }
        let texts = scene.agent.messages.filter { $0.topic.contains("/CHN:") }.map(\.text)
        #expect(texts.count == 100 && zip(texts, 0..<100).allSatisfy { $0.contains("\"name\":\"n\($1)\"") })
        let suspects = try #require(try status(scene)["suspects"] as? [String: Any])
        #expect(suspects["clients"] as? Int == 0, "enough of its publications have passed")
    }

    @Test(arguments: ["auto", "3.1.1"], [0, 50])
    func deferredEventsBehindARefusedOneArriveOnceInOrder(version: String, position: Int) throws {
        let broker = try BrokerProcess(extraConfiguration: Self.limit)
        defer { broker.stop() }
        let gateway = try start(broker, version)
        broker.kill()
        try waitUntil("offline") { try gateway.request("GET", "/readyz").status == 503 }
        for number in 0..<100 {
            if number == position {
                // The limit of the last connection applies while there is none.
                let refused = try gateway.post("/v1/channel/c", large)
                #expect(refused.status == (version == "auto" ? 413 : 202), "\(refused.text)")
            }
            #expect(try gateway.post("/v1/channel/c", body("n\(number)")).status == 202)
        }
        gateway.signal(SIGSTOP)
        try broker.restart()
        let agent = try MQTTTestClient(port: broker.port)
        try agent.subscribe("coaty/3/-/CHN:c/+")
        gateway.signal(SIGCONT)
        try waitUntil("all arrive", within: 60) { agent.messages.count >= 100 }
        try waitUntil("online", within: 60) { try status(gateway)["state"] as? String == "online" }
        let texts = agent.messages.map(\.text)
        #expect(texts.count == 100)
        #expect(zip(texts, 0..<100).allSatisfy { $0.contains("\"name\":\"n\($1)\"") })
    }
}
