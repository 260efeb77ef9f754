import Foundation
import TestSupport
import Testing

/// `/v1/admin/connections` of the real gateway.
@Suite(.exclusive, .frameChecks) struct ConnectionsTests {
    private static let path = "/v1/admin/connections"
    private static let channel = #""event":"channel","channelId":"c""#

    private struct Listing: Decodable {
        struct Connection: Decodable {
            struct Identity: Decodable {
                let name: String
            }
            let id: Int
            let client, address, transport: String
            let identity: Identity?
            let opened: Int
            let subscriptions, requests, delivered, dropped, queued, queuedBytes: Int
        }
        let connections: [Connection]
        let total: Int
    }

    private func listing(_ response: RawConnection.Response) throws -> Listing {
        #expect(response.status == 200, "\(response.text)")
        return try JSONDecoder().decode(Listing.self, from: Data(response.text.utf8))
    }

    private func listing(_ gateway: GatewayProcess, _ query: String = "") throws -> Listing {
        try listing(gateway.request("GET", Self.path + query))
    }

    private func body(_ name: String) -> String { #"{"object":\#(Scene.job(name))}"# }

    @Test func listsConnectionsOfAllTransports() throws {
        let scene = try Scene()
        #expect(try listing(scene.gateway).total == 0)
        let begun = Int(Date().timeIntervalSince1970 * 1000)
        let socket = try scene.gateway.frameClient()
        #expect(try socket.ask("identify", #""name":"Wall display""#).op == "ok")
        try socket.subscribe("a", Self.channel)
        try socket.subscribe("b", Self.channel)
        let events = try scene.gateway.eventStream("channel?channelId=c")
        let question = try Question(
            scene,
            "/v1/call/op?limit=1&timeout=30000",
            "{}",
            accept: "application/x-ndjson",
            topic: "/CLL:op/"
        )
        #expect(try question.client.readHead().status == 200)
        try scene.agent.publish("coaty/3/-/CHN:c/agent", body("n"))
        _ = try socket.next(of: "a", "event")
        _ = try socket.next(of: "b", "event")
        #expect(try #require(try events.next()).name == "event")

        let now = try listing(scene.gateway)
        // The newest connection comes first, because nothing is queued.
        #expect(now.total == 3 && now.connections.map(\.transport) == ["ndjson", "sse", "websocket"])
        #expect(now.connections.map(\.id) == [3, 2, 1])
        #expect(now.connections.map(\.subscriptions) == [0, 1, 2])
        #expect(now.connections.map(\.requests) == [1, 0, 0])
        #expect(now.connections.map(\.delivered) == [0, 1, 2])
        #expect(now.connections.map(\.identity?.name) == [nil, nil, "Wall display"])
        for connection in now.connections {
            #expect(connection.client == "address 127.0.0.1" && connection.address == "127.0.0.1")
            #expect(connection.opened >= begun && connection.dropped == 0 && connection.queuedBytes == 0)
        }

        let first = try listing(scene.gateway, "?limit=1")
        #expect(first.total == 3 && first.connections.map(\.id) == [3])
        for limit in ["0", "1001", "x", ""] {
            let refused = try scene.gateway.request("GET", Self.path + "?limit=\(limit)")
            #expect(refused.status == 400 && refused.problem == "invalid-parameter", "\(limit)")
        }
    }

    @Test func slowClientComesFirst() throws {
        let scene = try Scene()
        let slow = try scene.gateway.frameClient(receiveBuffer: 4096)
        try slow.subscribe("s", Self.channel)
        let other = try scene.gateway.frameClient()
        try other.subscribe("o", Self.channel)
        let text = String(repeating: "x", count: 50_000)
        try waitUntil("events are queued") {
            try scene.agent.publish("coaty/3/-/CHN:c/agent", body(text))
            _ = try other.next(of: "o", "event")
            let connections = try listing(scene.gateway).connections
            guard let first = connections.first, first.queued > 2 else { return false }
            #expect(first.id == 1 && first.queuedBytes > 100_000, "\(first)")
            return true
        }
    }

    @Test func disconnectedWebSocketGetsItsCode() throws {
        let scene = try Scene()
        let client = try scene.gateway.frameClient()
        #expect(try client.ask("identify", #""name":"Wall display""#).op == "ok")
        try client.subscribe("s", Self.channel)
        let single = try scene.gateway.frameClient("channel?channelId=c")
        #expect(try single.next().op == "ok")
        let remaining = try scene.gateway.frameClient()
        for id in [1, 2] {
            let answer = try scene.gateway.request("DELETE", "\(Self.path)/\(id)")
            #expect(answer.status == 204 && answer.text == "")
        }
        #expect(try client.closeCode() == 4505)
        #expect(try single.closeCode() == 4505)
        #expect(try remaining.ask("ping").op == "pong")
        try waitUntil("the connections are gone") { try listing(scene.gateway).connections.map(\.id) == [3] }
        try waitUntil("the identity is deadvertised") {
            scene.agent.messages.contains { $0.topic.contains("/DAD/") }
        }
        for id in ["1", "99", "x", "-1"] {
            let answer = try scene.gateway.request("DELETE", "\(Self.path)/\(id)")
            #expect(answer.status == 404 && answer.problem == "not-found", "\(id)")
        }
    }

    @Test func disconnectedStreamsEnd() throws {
        let scene = try Scene()
        let events = try scene.gateway.eventStream("channel?channelId=c")
        let question = try Question(
            scene,
            "/v1/call/op?limit=1&timeout=30000",
            "{}",
            accept: "application/x-ndjson",
            topic: "/CLL:op/"
        )
        #expect(try question.client.readHead().status == 200)
        #expect(try listing(scene.gateway).connections.map(\.id) == [2, 1])
        for id in [1, 2] { #expect(try scene.gateway.request("DELETE", "\(Self.path)/\(id)").status == 204) }
        #expect(try events.next() == nil)
        #expect(try question.client.readChunk().isEmpty)
        try waitUntil("the streams are gone") { try listing(scene.gateway).total == 0 }
        try waitUntil("the request is no longer pending") {
            let requests = try scene.gateway.request("GET", "/v1/status").json?["requests"] as? [String: Any]
            return requests?["pending"] as? Int == 0
        }
    }

    @Test func listingAndDisconnectingRequireAGrant() throws {
        let file = AccessFile(
            tokens: [.init("operator", "operators"), .init("warden", "wardens"), .init("display", "displays")],
            roles: [
                "operators": ["{ administer: [clients] }"], "wardens": ["{ administer: [gateway] }"],
                "displays": ["{ observe: [channel], channels: [c] }"],
            ]
        )
        let scene = try AccessScene(file)
        let display = try scene.socket(as: "display")
        try display.subscribe("s", Self.channel)
        for name in ["warden", "display"] {
            for refused in [try scene.get(Self.path, as: name), try scene.delete(Self.path + "/1", as: name)] {
                #expect(refused.status == 403 && refused.problem == "forbidden", "\(refused.text)")
                #expect(refused.json?["missing"] as? String == "- administer: [\"clients\"]\n", "\(refused.text)")
            }
            // The answer does not show whether a connection exists.
            #expect(try scene.delete(Self.path + "/99", as: name).status == 403)
        }
        #expect(try scene.get(Self.path, as: nil).status == 401)
        #expect(try scene.delete(Self.path + "/1", as: nil).status == 401)

        let answer = try scene.get(Self.path, as: "operator")
        #expect(try listing(answer).connections.map(\.client) == ["token display"])
        #expect(!answer.text.contains("coaty_secret"))
        #expect(try scene.delete(Self.path + "/1", as: "operator").status == 204)
        #expect(try display.closeCode() == 4505)
        try waitUntil("the audit log names the client") {
            scene.audit.contains(#""needs":["administer clients token display"],"status":200"#)
        }
        // The token is still valid: the client may connect again.
        #expect(try scene.socket(as: "display").ask("ping").op == "pong")
    }

    @Test func pausedGatewayStillDisconnects() throws {
        let scene = try Scene()
        let client = try scene.gateway.frameClient()
        // The gateway lists a connection a moment after its handshake.
        #expect(try client.ask("ping").op == "pong")
        #expect(try scene.gateway.request("POST", "/v1/admin/pause").status == 200)
        #expect(try scene.gateway.request("DELETE", Self.path + "/1").status == 204)
        #expect(try client.closeCode() == 4505)
    }
}
