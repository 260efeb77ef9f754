import Foundation
import TestSupport
import Testing

/// `coaty_gateway_operations_total` counts the outcome that the client sees, on each transport.
@Suite(.exclusive) struct OperationOutcomeTests {
    /// The transport of a request or subscription.
    enum Transport: CaseIterable {
        case rest, ndjson, webSocket, webSocketSubscription, events

        /// The labels of the metric.
        var kind: String {
            switch self {
            case .rest, .ndjson, .webSocket: #"verb="request",pattern="call""#
            case .webSocketSubscription, .events: #"verb="observe",pattern="channel""#
            }
        }

        var isRequest: Bool { self == .rest || self == .ndjson || self == .webSocket }
    }

    /// A request or subscription that has begun.
    private final class Client {
        let transport: Transport
        private let http: RawConnection?
        private let socket: FrameClient?
        private let stream: EventStreamClient?

        /// - Parameter timeout: that of a request, in milliseconds.
        init(_ transport: Transport, _ gateway: GatewayProcess, _ name: String?, timeout: Int = 60_000) throws {
            self.transport = transport
            let headers = AccessScene.headers(name)
            switch transport {
            case .rest, .ndjson:
                let connection = try RawConnection(port: gateway.port)
                let accept = transport == .ndjson ? "Accept: application/x-ndjson\r\n" : ""
                let fields = headers.map { "\($0.0): \($0.1)\r\n" }.joined()
                try connection.send(
                    "POST /v1/call/o?limit=0&timeout=\(timeout) HTTP/1.1\r\nHost: l\r\n\(fields)\(accept)"
                        + "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
                )
                (http, socket, stream) = (connection, nil, nil)
            case .webSocket, .webSocketSubscription:
                let client = try gateway.frameClient(headers: headers)
                let members =
                    transport == .webSocket
                    ? #""op":"request","event":"call","operation":"o","data":{},"limit":0,"timeout":\#(timeout)"#
                    : #""op":"subscribe","event":"channel","channelId":"c""#
                try client.send(#"{"id":"a",\#(members)}"#)
                (http, socket, stream) = (nil, client, nil)
            case .events:
                let path = "/v1/sse/channel?channelId=c"
                (http, socket) = (nil, nil)
                stream = try EventStreamClient(port: gateway.port, path: path, headers: headers)
            }
        }

        /// Reads until the end, and returns it: the status of a response, or the last frame.
        func end() throws -> String {
            switch transport {
            case .rest:
                let response = try #require(try http?.readResponse(within: 30))
                return response.status == 200 ? "done \(response.json?["reason"] ?? "")" : "\(response.status)"
            case .ndjson:
                let head = try #require(try http?.readHead())
                guard head.status == 200 else { return "\(head.status)" }
                var text: [UInt8] = []
                while let chunk = try http?.readChunk(within: 30), !chunk.isEmpty { text += chunk }
                let line = text.split(separator: UInt8(ascii: "\n")).last.map { Data($0) } ?? Data()
                return Self.end(try JSONSerialization.jsonObject(with: line) as? [String: Any])
            case .webSocket, .webSocketSubscription:
                while let frame = try socket?.next(of: "a") {
                    if frame.op == "done" || frame.op == "error" { return Self.end(frame.json) }
                }
                return ""
            case .events:
                let stream = try #require(stream)
                var last: [String: Any]?
                guard stream.head.status == 200 else { return "\(stream.head.status)" }
                while let event = try stream.next() { last = event.json }
                return Self.end(last)
            }
        }

        private static func end(_ frame: [String: Any]?) -> String {
            frame?["op"] as? String == "done" ? "done \(frame?["reason"] ?? "")" : "\(frame?["status"] ?? "")"
        }

        /// Waits until the subscription has begun.
        func begin() throws {
            if let socket { #expect(try socket.next(of: "a").op == "ok") }
            if let stream { #expect(try stream.next()?.name == "ok") }
        }

        /// Ends it by a frame; returns the answer.
        func give(up op: String) throws -> String? { try socket?.ask(op, id: "a").op }
    }

    /// Returns the counts of the outcomes.
    private func counts(_ transport: Transport, _ gateway: GatewayProcess, as name: String? = nil) throws -> [String:
        Int]
    {
        let prefix = "coaty_gateway_operations_total{\(transport.kind),outcome=\""
        let text = try gateway.request("GET", "/metrics", headers: AccessScene.headers(name)).text
        return text.split(separator: "\n").filter { $0.hasPrefix(prefix) }.reduce(into: [:]) { counts, line in
            let parts = line.dropFirst(prefix.count).split(separator: "\"} ")
            counts[String(parts[0])] = parts.count == 2 ? Int(parts[1]) : nil
        }
    }

    @Test(arguments: Transport.allCases) func requestsAndSubscriptionsAreDone(_ transport: Transport) throws {
        let scene = try Scene()
        let client = try Client(transport, scene.gateway, nil, timeout: 300)
        if transport.isRequest {
            // Not before its end.
            if transport == .webSocket { try client.begin() }
            #expect(try counts(transport, scene.gateway) == [:])
            #expect(try client.end() == "done timeout")
            #expect(try counts(transport, scene.gateway) == ["done": 1])
        } else {
            try client.begin()
            #expect(try counts(transport, scene.gateway) == [:])
        }
        switch transport {
        case .webSocket:
            let other = try Client(transport, scene.gateway, nil)
            try other.begin()
            #expect(try other.give(up: "cancel") == "ok")
            #expect(try counts(transport, scene.gateway) == ["done": 2])
        case .webSocketSubscription:
            #expect(try client.give(up: "unsubscribe") == "ok")
            #expect(try counts(transport, scene.gateway) == ["done": 1])
        default: break
        }
    }

    /// A stream of events has no other end than that its client leaves.
    @Test func aStreamIsDoneWhenItsClientLeaves() throws {
        let scene = try Scene()
        do {
            let client = try Client(.events, scene.gateway, nil)
            try client.begin()
        }
        try waitUntil("it is counted") { try counts(.events, scene.gateway) == ["done": 1] }
    }

    @Test(arguments: Transport.allCases) func whatIsNotAllowedIsDenied(_ transport: Transport) throws {
        let file = AccessFile(
            tokens: [.init("operator", "watching"), .init("device", "sending")],
            roles: ["watching": ["{read: [status]}"], "sending": ["{publish: [raw], topics: [x]}"]]
        )
        let scene = try AccessScene(file)
        #expect(try Client(transport, scene.gateway, "device").end() == "403")
        #expect(try counts(transport, scene.gateway, as: "operator") == ["denied": 1])
    }

    @Test(arguments: Transport.allCases) func whatIsNoLongerAllowedIsDenied(_ transport: Transport) throws {
        func file(_ grants: [String]) -> AccessFile {
            AccessFile(
                tokens: [.init("operator", "watching"), .init("device", "sending")],
                roles: ["watching": ["{read: [status]}"], "sending": ["{publish: [raw], topics: [x]}"] + grants]
            )
        }
        let grants = ["{request: [call], operations: [o]}", "{observe: [channel], channels: [c]}"]
        let scene = try AccessScene(file(grants))
        let client = try Client(transport, scene.gateway, "device")
        if transport != .rest && transport != .ndjson { try client.begin() }
        if transport.isRequest { try scene.agent.waitFor { $0.topic.contains("/CLL:o/") } }
        try scene.reload(file([]))
        #expect(try client.end() == "403")
        #expect(try counts(transport, scene.gateway, as: "operator") == ["denied": 1])
    }

    @Test(arguments: Transport.allCases) func whatExceedsAShareIsLimited(_ transport: Transport) throws {
        let limit = transport.isRequest ? "maximum-pending-requests" : "maximum-subscriptions"
        let scene = try Scene(["--limit", "\(limit)-per-client=1"])
        let first = try Client(transport, scene.gateway, nil)
        if transport.isRequest { try scene.agent.waitFor { $0.topic.contains("/CLL:o/") } } else { try first.begin() }
        #expect(["429", "503"].contains(try Client(transport, scene.gateway, nil).end()))
        #expect(try counts(transport, scene.gateway) == ["limited": 1])
        withExtendedLifetime(first) {}
    }

    /// A client that has the end of a request may send the next one, also at its limit.
    @Test(arguments: Transport.allCases.filter(\.isRequest)) func theEndFreesThePlace(_ transport: Transport) throws {
        let scene = try Scene(["--limit", "maximum-pending-requests-per-client=1"])
        for _ in 0..<30 { #expect(try Client(transport, scene.gateway, nil, timeout: 10).end() == "done timeout") }
        #expect(try counts(transport, scene.gateway) == ["done": 30])
    }

    /// The id of a frame may be used only once at a time.
    @Test func anIdThatIsInUseFails() throws {
        let scene = try Scene()
        let client = try scene.gateway.frameClient()
        try client.subscribe("a", #""event":"channel","channelId":"c""#)
        #expect(try client.ask("subscribe", id: "a", #""event":"channel","channelId":"d""#)["status"] == nil)
        #expect(try counts(.events, scene.gateway) == ["failed": 1])
    }

    @Test(arguments: Transport.allCases.filter(\.isRequest)) func requestsFailWithoutBroker(_ transport: Transport)
        throws
    {
        let scene = try Scene()
        let client = try Client(transport, scene.gateway, nil)
        try scene.agent.waitFor { $0.topic.contains("/CLL:o/") }
        scene.broker.kill()
        #expect(try client.end() == (transport == .rest ? "503" : "done offline"))
        #expect(try counts(transport, scene.gateway) == ["failed": 1])
        #expect(try Client(transport, scene.gateway, nil).end() == "503")
        #expect(try counts(transport, scene.gateway) == ["failed": 2])
    }

    /// Without an end that the client could see, or, for a subscription, a beginning.
    @Test(arguments: Transport.allCases) func clientsThatLeaveAbandon(_ transport: Transport) throws {
        let scene = try Scene()
        let broker = try #require(scene.broker.pid)
        if !transport.isRequest { kill(broker, SIGSTOP) }
        defer { kill(broker, SIGCONT) }
        do {
            let client = try Client(transport, scene.gateway, nil)
            if transport.isRequest {
                try scene.agent.waitFor { $0.topic.contains("/CLL:o/") }
            } else {
                try waitUntil("it is open") { try scene.gateway.metric("coaty_gateway_subscriptions") == 1 }
            }
            withExtendedLifetime(client) {}
        }
        try waitUntil("it is counted") { try counts(transport, scene.gateway) == ["abandoned": 1] }
    }
}
