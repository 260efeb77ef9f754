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
        try waitUntil("ready") { try gateway.request("GET", "/readyz").status == 200 }
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

    /// Before, the gateway advertised the object on each connection, and the broker closed each.
    @Test func keptObjectThatTheBrokerRefusesEndsTwoConnectionsAtMost() throws {
        let broker = try BrokerProcess(extraConfiguration: Self.limit)
        defer { broker.stop() }
        let gateway = try start(broker, "3.1.1")
        #expect(try gateway.post("/v1/advertise", large).status == 202)
        try waitUntil("the object is given up", within: 60) {
            let status = try status(gateway)
            return status["refusedPublications"] as? Int == 1 && status["state"] as? String == "online"
        }
        #expect(try status(gateway)["reconnects"] as? Int == 2)
        let repeated = try gateway.post("/v1/advertise", large)
        #expect(repeated.status == 413 && repeated.problem == "exceeds-broker-limit", "\(repeated.text)")
        #expect(try status(gateway)["reconnects"] as? Int == 2)
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
