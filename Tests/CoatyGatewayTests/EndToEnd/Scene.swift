import Foundation
import TestSupport
import Testing

/// A broker of the test's own, the real gateway on it, and another client of the broker that sees what is published.
final class Scene {
    let broker: BrokerProcess
    let gateway: GatewayProcess
    let agent: MQTTTestClient

    init(_ arguments: [String] = []) throws {
        broker = try BrokerProcess()
        agent = try MQTTTestClient(port: broker.port)
        try agent.subscribe("coaty/#")
        gateway = try GatewayProcess(["--broker", "mqtt://127.0.0.1:\(broker.port)"] + arguments)
        try waitUntil("the gateway is ready") { try gateway.request("GET", "/readyz").status == 200 }
    }

    deinit { broker.stop() }

    /// A Task object of an application's own type.
    static func job(_ name: String, objectType: String = "com.example.Job") -> String {
        """
        {"coreType":"Task","objectType":"\(objectType)","objectId":"\(UUID().uuidString.lowercased())","name":"\(name)",\
        "creatorId":"c","creationTimestamp":1,"status":0}
        """
    }

    /// Waits until the broker knows the gateway's subscription, so that what is published now arrives.
    func untilSubscribed(_ client: WebSocketClient, topic: String, payload: @autoclosure () -> String) throws {
        while true {
            try agent.publish(topic, payload())
            do {
                _ = try client.receive(deadline: Date(timeIntervalSinceNow: 0.2))
                // More than one may have been under way.
                while (try? client.receive(deadline: Date(timeIntervalSinceNow: 0.2))) != nil {}
                return
            } catch WebSocketClient.Failure.timedOut {
                continue
            }
        }
    }
}

extension RawConnection.Response {
    /// The last part of a problem's type.
    var problem: String? {
        guard headers["content-type"] == "application/problem+json", let type = json?["type"] as? String else {
            return nil
        }
        let prefix = "urn:coaty-gateway:problem:"
        return type.hasPrefix(prefix) ? String(type.dropFirst(prefix.count)) : nil
    }
}

extension MQTTTestClient.Message {
    /// Whether it is a Discover event with a payload: the gateway asks for IO contexts and nodes by itself.
    func asks(_ payload: String) -> Bool { topic.contains("/DSC/") && text == payload }
}
