import Foundation
import TestSupport
import Testing

/// Configured limits of the work and memory that clients cause.
@Suite(.exclusive) struct WorkBoundsTests {
    private static func object(_ id: String, _ name: String = "n", _ members: String = "") -> String {
        #"{"object":{"coreType":"CoatyObject","objectType":"t","objectId":"\#(id)","name":"\#(name)"\#(members)}}"#
    }

    private static func tokens() -> AccessFile { AccessFile(tokens: [.init("ann", "admin")]) }

    @Test func stepsOfFiltersAreBoundedByTheirSetting() throws {
        let long = String(repeating: "x", count: 20_000)
        let until = #"["name",["Like","%y"]]"#.percentEncoded
        for (steps, status) in [("100", 422), ("10000", 200)] {
            let scene = try Scene(["--limit", "maximum-filter-steps=\(steps)"])
            let discover = try scene.pendingDiscover("limit=1&timeout=60000&until=\(until)")
            let object = Self.object("o", long, #","externalId":"x""#)
            try scene.agent.publish("coaty/3/-/RSV/agent/\(discover.correlationID)", object)
            let answer = try discover.connection.readResponse()
            #expect(answer.status == status, "\(answer.text.prefix(200))")
            if status == 422 { #expect(answer.problem == "filter-too-expensive") }
        }
    }

    @Test func memoryOfOrderedQueriesIsBoundedByItsSetting() throws {
        let scene = try Scene(["--limit", "maximum-query-memory=\(1 << 20)"])
        func total() throws -> Int {
            try scene.gateway.request("GET", "/v1/objects?objectType=t&limit=1").json?["total"] as? Int ?? 0
        }
        let name = String(repeating: "n", count: 700 << 10)
        for (number, status) in [(1, 200), (2, 422)] {
            try scene.agent.publish("coaty/3/-/ADV:CoatyObject/agent", Self.object("o\(number)", name))
            try waitUntil("it is listed") { try total() == number }
            let answer = try scene.gateway.request("GET", "/v1/objects?objectType=t&order=name&limit=10")
            #expect(answer.status == status, "\(answer.text.prefix(200))")
            if status == 422 { #expect(answer.problem == "query-too-expensive") }
        }
    }

    @Test func agentsThatHaveLeftAreBoundedByTheirSetting() throws {
        let scene = try Scene(["--limit", "maximum-departed-agents=1"])
        func offline() throws -> [String] {
            let agents = try scene.gateway.request("GET", "/v1/agents?online=false").json?["agents"]
            return (agents as? [[String: Any]] ?? []).compactMap {
                ($0["identity"] as? [String: Any])?["objectId"] as? String
            }
        }
        for id in ["a", "b"] {
            let identity = #"{"coreType":"Identity","objectType":"coaty.Identity","objectId":"\#(id)","name":"n"}"#
            try scene.agent.publish("coaty/3/-/ADV:Identity/\(id)", #"{"object":\#(identity)}"#)
            try scene.agent.publish("coaty/3/-/DAD/\(id)", #"{"objectIds":["\#(id)"]}"#)
            try waitUntil("only \(id) is listed") { try offline() == [id] }
        }
    }

    @Test func throttledObjectsAreBoundedByTheirSetting() throws {
        let scene = try Scene(["--limit", "maximum-throttled-objects=1"])
        let client = try scene.gateway.frameClient()
        try client.subscribe("t", #""event":"channel","channelId":"c","throttle":60000"#)
        for version in 0..<3 {
            for id in ["a", "b"] {
                try scene.agent.publish("coaty/3/-/CHN:c/source", Self.object(id, "\(version)"))
            }
        }
        let ids = try (0..<4).map { _ in try client.next(of: "t", "event").object["objectId"] as? String }
        #expect(ids == ["a", "b", "b", "b"])
    }

    @Test func answersToADiscoverAreBoundedByTheirSetting() throws {
        let scene = try Scene(["--limit", "maximum-discover-answers=2"])
        let client = try scene.gateway.frameClient()
        try client.subscribe("s", #""event":"discover""#)
        try scene.agent.publish("coaty/3/-/DSC/agent/correlation", #"{"externalId":"x"}"#)
        let asked = try client.next("the request") { $0["correlationId"] == "correlation" }
        #expect(asked["event"] == "discover")
        let data = Self.object(UUID().uuidString.lowercased(), "n", #","externalId":"x""#)
        let members = #""event":"resolve","correlationId":"correlation","data":\#(data)"#
        let statuses = try (0..<3).map { _ in try client.ask("respond", members).json["status"] as? Int }
        #expect(statuses == [nil, nil, 404])
    }

    @Test func connectionsWithoutAProtocolAreBoundedByTheirSetting() throws {
        let scene = try Scene(["--limit", "maximum-undecided-connections=16"])
        let silent = try (0..<16).map { _ in try RawConnection(port: scene.gateway.port) }
        for connection in silent { try connection.send("G") }
        #expect(try !silent[0].isClosedByPeer(within: 0.2))
        let more = try RawConnection(port: scene.gateway.port)
        try more.send("G")
        #expect(try silent[0].readResponse().status == 503)
        #expect(try silent[0].isClosedByPeer())
        #expect(try !silent[1].isClosedByPeer(within: 0.2))
    }

    @Test func ticketsAreBoundedByTheirSetting() throws {
        let scene = try AccessScene(Self.tokens(), ["--limit", "maximum-tickets-per-client=1"])
        func ticket() throws -> String {
            try #require(try scene.post("/v1/tickets", "{}", as: "ann").json?["ticket"] as? String)
        }
        func status(_ ticket: String) throws -> Int {
            let path = "/v1/sse/channel?channelId=c&ticket=\(ticket)"
            return try EventStreamClient(port: scene.gateway.port, path: path).head.status
        }
        let (first, second) = (try ticket(), try ticket())
        #expect(try status(first) == 401)
        #expect(try status(second) == 200)
    }

    @Test func theFrameWithATokenIsBoundedByItsSetting() throws {
        let scene = try AccessScene(Self.tokens(), ["--limit", "maximum-token-size=1024"])
        let long = String(repeating: "x", count: 2000)
        let client = try scene.gateway.frameClient()
        try client.send(#"{"op":"authenticate","id":"1","token":"\#(long)"}"#)
        #expect(try client.closeCode(within: 8) == 4502)
        let other = try scene.gateway.frameClient()
        let frame = #"{"op":"authenticate","id":"1","token":"\#(long.prefix(1500))"}"#
        try other.send(frame)
        #expect(try other.next(of: "1", "error").json["status"] as? Int == 401)
    }

    @Test func refusalsWithoutAFeedOrOnOneConnectionAreCounted() throws {
        let scene = try Scene([
            "--limit", "maximum-feeds=2", "--limit", "maximum-feeds-per-client=3",
            "--limit", "maximum-subscriptions-per-connection=2",
        ])
        func count(_ limit: String, _ scope: String) throws -> Int? {
            let name = #"coaty_gateway_limits_reached_total{limit="\#(limit)",scope="\#(scope)"} "#
            let line = try scene.gateway.request("GET", "/metrics").text.split(separator: "\n").first {
                $0.hasPrefix(name)
            }
            return line.flatMap { Int($0.dropFirst(name.count)) }
        }
        let (client, other) = (try scene.gateway.frameClient(), try scene.gateway.frameClient())
        try client.subscribe("0", #""event":"channel","channelId":"0""#)
        try client.subscribe("1", #""event":"channel","channelId":"0""#)
        #expect(try client.ask("subscribe", #""event":"channel","channelId":"0""#).json["status"] as? Int == 429)
        #expect(try count("subscriptions_per_connection", "own") == 1)
        try other.subscribe("0", #""event":"channel","channelId":"1""#)
        #expect(try other.ask("subscribe", #""event":"channel","channelId":"2""#).json["status"] as? Int == 503)
        #expect(try count("feeds", "all") == 1)
        try waitUntil("the log says so") {
            scene.gateway.log.contains("refused a request: all clients together have used up the resource")
        }
    }
}
