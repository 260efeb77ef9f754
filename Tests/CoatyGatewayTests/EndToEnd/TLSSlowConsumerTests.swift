import Foundation
import TestSupport
import Testing

/// Slow clients over TLS. For the servers, bytes in the buffers of the relay are sent; they must still notice that a
/// client does not read.
@Suite(.exclusive) struct TLSSlowConsumerTests {
    private static let size = 4_000
    private static let target = "/v1/ws/channel?channelId=load&buffer=16"

    private struct Status: Decodable {
        struct Streams: Decodable { let delivered, dropped, queued: Int }
        struct Consumer: Decodable { let transport: String }
        let streams: Streams
        let slowConsumers: [Consumer]
    }

    private struct Outcome {
        /// Number of bytes published until the subscription of a client that does not read was slow.
        var slow = 0
        /// Number of bytes published until the subscription dropped an event.
        var dropped = 0
    }

    /// Publishes events one by one to a client that does not read.
    ///
    /// - Parameters:
    ///   - open: opens ``target``.
    ///   - get: returns the body of a response.
    private func publish(
        _ flags: [String],
        open: (GatewayProcess) throws -> AnyObject,
        get: (GatewayProcess, String) throws -> String
    ) throws -> Outcome {
        let broker = try BrokerProcess()
        defer { broker.stop() }
        let agent = try MQTTTestClient(port: broker.port)
        let gateway = try GatewayProcess(["--broker", "mqtt://127.0.0.1:\(broker.port)"] + flags)
        let client = try open(gateway)
        let object = #"{"coreType":"CoatyObject","objectType":"t","objectId":"i","name":""#
        let event = #"{"object":\#(object)\#(String(repeating: "x", count: Self.size))"}}"#
        var outcome = Outcome()
        var published = 0
        while outcome.dropped == 0 {
            try #require(published < 500, "the client reads by itself")
            try agent.publish("coaty/3/-/CHN:load/source", event)
            published += 1
            var isSlow = false
            var hasDropped = false
            try waitUntil("the event has come") {
                let text = try get(gateway, "/v1/status")
                let status = try JSONDecoder().decode(Status.self, from: Data(text.utf8))
                isSlow = status.slowConsumers.first?.transport == "websocket"
                hasDropped = status.streams.dropped > 0
                return status.streams.delivered + status.streams.dropped + status.streams.queued == published
            }
            if isSlow, outcome.slow == 0 { outcome.slow = published * event.utf8.count }
            if hasDropped { outcome.dropped = published * event.utf8.count }
        }
        withExtendedLifetime(client) {}
        return outcome
    }

    @Test func aClientThatDoesNotReadIsSlowAfterLittleMoreThanWithoutTLS() throws {
        let plain = try publish([]) { gateway in
            let client = try WebSocketClient(port: gateway.port, receiveBuffer: 4096)
            #expect(try client.shakeHands(path: Self.target).status == 101)
            try client.untilSubscribed()
            return client
        } get: {
            try $0.request("GET", $1).text
        }
        let certificates = try Certificates()
        let encrypted = try publish(certificates.flags) { gateway in
            let client = try TLSClient(port: gateway.port, receiveBuffer: 4096)
            _ = try client.open(Self.target, until: #"{"op":"ok""#)
            return client
        } get: { gateway, target in
            let client = try TLSClient(port: gateway.port)
            try client.send("GET \(target) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            let head = try client.read(until: "\r\n\r\n")
            var text = head[(head.range(of: "\r\n\r\n")?.upperBound ?? head.endIndex)...]
            while case let more = try client.read(), !more.isEmpty { text += String(decoding: more, as: UTF8.self) }
            return String(text)
        }
        // The capacity of the relay and of the socket pair.
        let more = 128 << 10
        #expect(encrypted.slow < plain.slow + more, "\(encrypted) \(plain)")
        #expect(encrypted.dropped < plain.dropped + more, "\(encrypted) \(plain)")
    }
}
