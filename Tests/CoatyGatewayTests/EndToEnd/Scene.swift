import Foundation
import TestSupport
import Testing
@testable import Base

/// A broker, a gateway that uses it, and another client of the broker that receives all Coaty events.
final class Scene {
    let broker: BrokerProcess
    let gateway: GatewayProcess
    let agent: MQTTTestClient

    /// Starts the processes.
    ///
    /// - Parameter broker: the broker; nil for a new one in its default configuration.
    init(_ arguments: [String] = [], broker: BrokerProcess? = nil) throws {
        let broker = try broker ?? BrokerProcess()
        self.broker = broker
        agent = try MQTTTestClient(port: broker.port)
        try agent.subscribe("coaty/#")
        gateway = try GatewayProcess(["--broker", "mqtt://127.0.0.1:\(broker.port)"] + arguments)
        try gateway.untilReady()
    }

    deinit { broker.stop() }

    /// A Discover request that has no response yet.
    struct PendingDiscover {
        let connection: RawConnection
        let correlationID: String
    }

    /// Posts a Discover event for the external id `x`, and returns when the agent has received it.
    ///
    /// - Parameter query: the parameters of the request.
    func pendingDiscover(_ query: String) throws -> PendingDiscover {
        let connection = try RawConnection(port: gateway.port)
        let body = #"{"externalId":"x"}"#
        try connection.send(
            "POST /v1/discover?\(query) HTTP/1.1\r\nHost: l\r\nContent-Type: application/json\r\n"
                + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
        )
        let asked = try agent.waitFor { $0.asks(body) }
        return PendingDiscover(
            connection: connection,
            correlationID: String(try #require(asked.topic.split(separator: "/").last))
        )
    }

    /// Returns a Task object of an application-defined object type.
    static func job(_ name: String, objectType: String = "com.example.Job") -> String {
        """
        {"coreType":"Task","objectType":"\(objectType)","objectId":"\(UUID().uuidString.lowercased())","name":"\(name)",\
        "creatorId":"c","creationTimestamp":1,"status":0}
        """
    }
}

extension GatewayProcess {
    /// Waits until a client of the broker has received everything that the gateway's own agent has published. IO nodes
    /// and identities have other connections.
    func untilReceived(by client: MQTTTestClient) throws {
        let marker = UUID().uuidString
        try #require(try post("/v1/channel/\(marker)", #"{"objects":[]}"#).status == 202)
        _ = try client.waitFor { $0.topic.contains("/CHN:\(marker)/") }
    }

    /// Returns the value of a metric with the given labels; nil if there is none.
    func metric(_ sample: String, headers: [(String, String)] = []) throws -> Double? {
        let text = try request("GET", "/metrics", headers: headers).text
        let line = text.split(separator: "\n").first { $0.hasPrefix(sample + " ") }
        return line.flatMap { Double($0.dropFirst(sample.count + 1)) }
    }

    /// Opens a stream with one subscription, `/v1/ws/` and the target, and returns when the subscription is active.
    func stream(_ target: String) throws -> WebSocketClient {
        let client = try WebSocketClient.open(port: port, path: "/v1/ws/" + target)
        try client.untilSubscribed()
        return client
    }
}

extension WebSocketClient {
    /// Waits for the first frame of a stream with one subscription. From then on, all events are delivered.
    func untilSubscribed() throws {
        let first = try receive()
        guard case .text(let text) = first, text.hasPrefix(#"{"op":"ok""#) else {
            throw WebSocketClient.Failure.malformed("\(first) is no ok")
        }
    }

    /// Returns the next message, which must be an event, without its cursor.
    func receiveWithoutCursor() throws -> String {
        guard case .text(let text) = try receive() else { throw Failure.malformed("no text") }
        return text.replacing(/,"cursor":"[0-9a-z]+-[0-9]+"/, with: "")
    }
}

extension RawConnection.Response {
    /// The last part of the problem's type.
    var problem: String? {
        guard headers["content-type"] == "application/problem+json", let type = json?["type"] as? String else {
            return nil
        }
        let prefix = "urn:coaty-gateway:problem:"
        return type.hasPrefix(prefix) ? String(type.dropFirst(prefix.count)) : nil
    }
}

extension MQTTTestClient.Message {
    /// Returns whether this is a Discover event with the given payload. The gateway also sends Discover events for IO
    /// contexts and nodes.
    func asks(_ payload: String) -> Bool { topic.contains("/DSC/") && text == payload }
}
