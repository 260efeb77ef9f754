import Foundation
import TestSupport
import Testing

/// A two-way request that the gateway has published and the test answers.
struct Question {
    let client: RawConnection
    /// The last publication of the request.
    let request: MQTTTestClient.Message
    private let agent: MQTTTestClient

    /// Sends a request, and waits until the gateway has published it.
    ///
    /// - Parameters:
    ///   - accept: the accepted media type.
    ///   - headers: further header fields.
    ///   - topic: a part of the topic of the last publication.
    init(
        _ scene: Scene,
        _ target: String,
        _ body: String,
        accept: String? = nil,
        headers: [(String, String)] = [],
        topic: String,
        receiveBuffer: Int32? = nil
    ) throws {
        client = try RawConnection(port: scene.gateway.port, receiveBuffer: receiveBuffer)
        agent = scene.agent
        let seen = agent.messages.count
        let head = "POST \(target) HTTP/1.1\r\nHost: l\r\nContent-Type: application/json\r\n"
        let fields = (accept.map { [("Accept", $0)] } ?? []) + headers
        let further = fields.map { "\($0): \($1)\r\n" }.joined()
        try client.send(head + further + "Content-Length: \(body.utf8.count)\r\n\r\n" + body)
        var found: MQTTTestClient.Message?
        try waitUntil("the request is published on \(topic)") {
            found = scene.agent.messages.dropFirst(seen).last { $0.topic.contains(topic) }
            return found != nil
        }
        request = try #require(found)
    }

    func answer(_ event: String, from sourceId: String, _ payload: String) throws {
        let correlationId = try #require(request.topic.split(separator: "/").last)
        try agent.publish("coaty/3/-/\(event)/\(sourceId)/\(correlationId)", payload)
    }
}
