import Foundation
import TestSupport
import Testing

/// A gateway that an operator pauses and resumes.
@Suite(.exclusive, .frameChecks) struct PauseTests {
    private static let pausePath = "/v1/admin/pause"
    private static let resumePath = "/v1/admin/resume"
    private static let channel = #""event":"channel","channelId":"c""#
    private static let publication = channel + #","data":{"object":\#(Scene.job("n"))}"#

    /// Returns the names and states of a node and its descendants.
    private func states(_ node: [String: Any]) -> [String] {
        let children = node["children"] as? [[String: Any]] ?? []
        return ["\(node["name"] ?? "") \(node["state"] ?? "")"] + children.flatMap(states)
    }

    @Test func pausedGatewayCompletesStartedWorkOnly() throws {
        let scene = try Scene()
        let gateway = scene.gateway
        let client = try gateway.frameClient()
        try client.subscribe("s", Self.channel)
        let events = try gateway.eventStream("channel?channelId=c")
        let single = try gateway.frameClient("channel?channelId=c")
        #expect(try single.next().op == "ok")
        let question = try Question(scene, "/v1/call/op?limit=1&timeout=30000", "{}", topic: "/CLL:op/")
        let ndjson = "application/x-ndjson"
        let lines = try Question(scene, "/v1/call/op?limit=1&timeout=30000", "{}", accept: ndjson, topic: "/CLL:op/")
        #expect(try lines.client.readHead().status == 200)

        let paused = try gateway.request("POST", Self.pausePath)
        #expect(paused.status == 200 && paused.text == #"{"state":"paused","pendingRequests":2}"#, "\(paused.text)")

        // Every stream gets a notice.
        for frame in [try client.next("a notice") { $0.op == "notice" }, try single.next()] {
            #expect(frame.text == #"{"op":"notice","state":"paused"}"#)
        }
        let notice = try #require(try events.next())
        #expect(notice.name == "notice" && notice.json["state"] as? String == "paused")
        let line = String(decoding: try lines.client.readChunk(), as: UTF8.self)
        #expect(line == #"{"op":"notice","state":"paused"}"# + "\n")

        // Load balancers stop sending clients, but the process is not restarted.
        let ready = try gateway.request("GET", "/readyz")
        #expect(ready.status == 503 && ready.problem == "paused")
        #expect(try gateway.request("GET", "/healthz").status == 200)

        // New requests are refused.
        for (path, body) in [
            ("/v1/advertise", #"{"object":\#(Scene.job("n"))}"#), ("/v1/discover", #"{"objectTypes":["t"]}"#),
            ("/v1/io/nodes", #"{"contextName":"c","ioSources":[\#(RoutingScene.source("None", rate: nil))]}"#),
        ] {
            let response = try gateway.post(path, body)
            #expect(response.status == 503 && response.problem == "paused", "\(path): \(response.text)")
            #expect(response.headers["retry-after"] != nil)
        }
        let refused = try RawConnection(port: gateway.port)
        try refused.send("GET /v1/sse/channel?channelId=c HTTP/1.1\r\nHost: l\r\n\r\n")
        #expect(try refused.readHead().status == 503)
        for (op, members) in [
            ("publish", Self.publication), ("subscribe", Self.channel), ("identify", #""name":"n""#),
            ("request", #""event":"discover","data":{"objectTypes":["t"]}"#),
        ] {
            let frame = try client.ask(op, members)
            #expect(frame.op == "error" && frame.json["status"] as? Int == 503, "\(frame)")
            #expect(frame["type"]?.hasSuffix(":paused") == true)
        }
        // A new connection gets a notice, too.
        #expect(try gateway.frameClient().next().text == #"{"op":"notice","state":"paused"}"#)

        // Existing subscriptions and requests continue.
        try scene.agent.publish("coaty/3/-/CHN:c/a", #"{"object":\#(Scene.job("1"))}"#)
        #expect(try client.next(of: "s").object["name"] as? String == "1")
        #expect(try single.next().object["name"] as? String == "1")
        #expect(try #require(try events.next()).name == "event")
        try question.answer("RTN", from: "a", #"{"result":1}"#)
        #expect(try question.client.readResponse().status == 200)
        try lines.answer("RTN", from: "a", #"{"result":1}"#)
        #expect(String(decoding: try lines.client.readChunk(), as: UTF8.self).contains(#""op":"response""#))

        // Read requests are still served.
        #expect(try gateway.request("GET", "/v1/status").status == 200)
        #expect(try gateway.request("GET", "/v1/objects").status == 200)
        let tree = states(try #require(try gateway.request("GET", "/v1/admin/tree").json))
        #expect(tree.first == "gateway paused" && tree.contains("listener paused"), "\(tree)")
        #expect(try gateway.request("POST", Self.pausePath).text == #"{"state":"paused","pendingRequests":0}"#)

        let resumed = try gateway.request("POST", Self.resumePath)
        #expect(resumed.text == #"{"state":"active","pendingRequests":0}"#)
        for frame in [try client.next("a notice") { $0.op == "notice" }, try single.next()] {
            #expect(frame.text == #"{"op":"notice","state":"active"}"#)
        }
        #expect(try #require(try events.next()).json["state"] as? String == "active")
        #expect(try gateway.request("GET", "/readyz").status == 200)
        #expect(try client.ask("publish", Self.publication).op == "ok")
        #expect(try client.next(of: "s").object["name"] as? String == "n")
        let active = states(try #require(try gateway.request("GET", "/v1/admin/tree").json))
        #expect(active.count > 8 && active.allSatisfy { $0.hasSuffix(" active") }, "\(active)")
    }

    @Test func aPausedGatewayStops() throws {
        let scene = try Scene()
        #expect(try scene.gateway.request("POST", Self.pausePath).status == 200)
        #expect(try scene.gateway.stop() == 0)
    }

    @Test func pauseAndResumeRequireAGrant() throws {
        let file = AccessFile(
            tokens: [.init("operator", "operators"), .init("reader", "readers")],
            roles: ["operators": ["{ administer: [gateway] }"], "readers": ["{ read: [status] }"]]
        )
        let scene = try AccessScene(file)
        for path in [Self.pausePath, Self.resumePath] {
            let refused = try scene.post(path, "", as: "reader")
            #expect(refused.status == 403 && refused.problem == "forbidden", "\(refused.text)")
            #expect(refused.json?["missing"] as? String == "- administer: [\"gateway\"]\n", "\(refused.text)")
            #expect(try scene.post(path, "", as: nil).status == 401)
        }
        #expect(try scene.get("/v1/admin/tree", as: "reader").status == 403)
        #expect(try scene.get("/readyz", as: nil).status == 200)
        #expect(try scene.post(Self.pausePath, "", as: "operator").status == 200)
        #expect(try scene.get("/readyz", as: nil).problem == "paused")
        // A client without permission does not learn that the gateway is paused.
        #expect(try scene.post("/v1/deadvertise", #"{"objectIds":["x"]}"#, as: "reader").status == 403)
        #expect(try scene.get("/v1/admin/tree", as: "operator").status == 200)
        #expect(try scene.get("/v1/status", as: "operator").status == 403)
        #expect(try scene.post(Self.resumePath, "", as: "operator").status == 200)
        #expect(try scene.get("/readyz", as: nil).status == 200)
        let performed =
            #""principal":"operator","credentials":"token","address":"127.0.0.1","needs":["administer gateway"]"#
        #expect(scene.audit.contains(performed), "\(scene.audit)")
        try scene.gateway.untilLogged("paused: new work is refused")
        try scene.gateway.untilLogged("resumed")
    }
}
