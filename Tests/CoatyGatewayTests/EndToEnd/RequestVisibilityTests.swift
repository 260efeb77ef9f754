import Foundation
import TestSupport
import Testing

/// Access of the clients of one site: responses from another site, routing, raw topics and core types.
@Suite(.exclusive, .frameChecks) struct RequestVisibilityTests {
    private func lamp(_ name: String, _ site: String, _ members: String = "") -> String {
        AccessScene.lamp(name, site: site, members)
    }

    /// A request of a client that the gateway has published and the test answers.
    private struct Asked {
        let connection: RawConnection
        private let agent: MQTTTestClient
        private let correlationId: String

        init(_ scene: AccessScene, _ target: String, _ body: String, accept: String = "application/json") throws {
            connection = try RawConnection(port: scene.gateway.port)
            agent = scene.agent
            let seen = agent.messages.count
            let fields = AccessScene.headers("hall-1").map { "\($0.0): \($0.1)\r\n" }.joined()
            try connection.send(
                "POST \(target) HTTP/1.1\r\nHost: l\r\nContent-Type: application/json\r\nAccept: \(accept)\r\n\(fields)"
                    + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
            )
            correlationId = try agent.request(body, after: seen)
        }

        func answer(_ event: String, _ payload: String) throws {
            try agent.publish("coaty/3/-/\(event)/agent/\(correlationId)", payload)
        }

        /// Returns the names of the objects in the responses, the reason of the end, and whether responses may have
        /// been hidden.
        func result() throws -> (names: [String?], reason: String?, isFiltered: Bool) {
            let answer = try connection.readResponse()
            #expect(answer.status == 200, "\(answer.text)")
            let responses = try #require(answer.json?["responses"] as? [[String: Any]])
            let names = responses.map { response in
                let data = response["data"] as? [String: Any]
                let object = data?["object"] as? [String: Any] ?? (data?["objects"] as? [[String: Any]])?.first
                return object?["name"] as? String
            }
            return (names, answer.json?["reason"] as? String, answer.json?["filtered"] as? Bool ?? false)
        }
    }

    private static let discover = #"{"objectTypes":["com.example.Lamp"]}"#

    @Test func hiddenAnswersNeitherCountNorEndARequest() throws {
        let scene = try AccessScene(VisibilityTests.file)
        let limited = try Asked(scene, "/v1/discover?limit=1&timeout=20000", Self.discover)
        try limited.answer("RSV", #"{"object":\#(lamp("other", "hall-2"))}"#)
        try limited.answer(
            "RSV",
            #"{"object":\#(lamp("own", "hall-1")),"relatedObjects":[\#(lamp("other", "hall-2"))]}"#
        )
        try limited.answer("RSV", #"{"object":\#(lamp("own", "hall-1"))}"#)
        #expect(try limited.result() == (["own"], "limit", true))

        let until = #"["secret",["Exists"]]"#.percentEncoded
        let awaited = try Asked(scene, "/v1/query?limit=0&timeout=20000&until=\(until)", Self.discover)
        try awaited.answer("RTV", #"{"objects":[\#(lamp("other", "hall-2", VisibilityTests.secret))]}"#)
        try awaited.answer(
            "RTV",
            #"{"objects":[\#(lamp("a", "hall-1")),\#(lamp("b", "hall-2", VisibilityTests.secret))]}"#
        )
        try awaited.answer("RTV", #"{"objects":[]}"#)
        try awaited.answer("RTV", #"{"objects":[\#(lamp("own", "hall-1", VisibilityTests.secret))]}"#)
        // The hidden object of a response is left out.
        #expect(try awaited.result() == (["a", "own"], "until", true))

        let plain = try Asked(scene, "/v1/discover?limit=1&timeout=20000", Self.discover)
        try plain.answer("RSV", #"{"object":\#(lamp("own", "hall-1"))}"#)
        // The flag only states that responses may have been hidden.
        #expect(try plain.result() == (["own"], "limit", true))
    }

    /// A request whose responses are all hidden was answered, so it does not fail with a timeout.
    @Test func requestWithOnlyHiddenAnswersDoesNotFail() throws {
        let scene = try AccessScene(VisibilityTests.file)
        let id = AccessScene.id()
        for (target, event, body) in [
            ("update", "CPL", #"{"object":\#(AccessScene.lamp("own", site: "hall-1", id: id))}"#),
            ("discover", "RSV", Self.discover),
        ] {
            let asked = try Asked(scene, "/v1/\(target)?limit=0&timeout=500", body)
            try asked.answer(event, #"{"object":\#(AccessScene.lamp("other", site: "hall-2", id: id))}"#)
            #expect(try asked.result() == ([], "timeout", true), "\(target)")
        }
        let asked = try Asked(
            scene,
            "/v1/discover?limit=0&timeout=500",
            Self.discover,
            accept: "application/x-ndjson"
        )
        try asked.answer("RSV", #"{"object":\#(lamp("other", "hall-2"))}"#)
        #expect(try asked.connection.readResponse().text == #"{"op":"done","reason":"timeout","filtered":true}"# + "\n")
        let client = try scene.socket(as: "hall-1")
        let seen = scene.agent.messages.count
        let request = #""event":"discover","limit":0,"timeout":500,"data":\#(Self.discover)"#
        #expect(try client.ask("request", id: "r", request).op == "ok")
        let correlationId = try scene.agent.request(Self.discover, after: seen)
        try scene.publish("RSV/\(correlationId)", #"{"object":\#(lamp("other", "hall-2"))}"#)
        let done = try client.next(of: "r")
        #expect(done.op == "done" && done["reason"] == "timeout" && done.json["filtered"] as? Bool == true, "\(done)")
        // A request that no grant covers is refused immediately.
        for body in [#"{"objectTypes":["org.other.Lamp"]}"#, #"{"coreTypes":["Task"]}"#, #"{"objectId":"x"}"#] {
            let refused = try scene.post("/v1/discover?timeout=20000", body, as: "hall-1")
            #expect(refused.status == 403 && refused.problem == "forbidden", "\(body)")
        }
        #expect(try scene.post("/v1/call/o", "{}", as: "hall-1").status == 403)
    }

    // MARK: - Routing

    @Test func contextsAreAuthorizedByName() throws {
        let (own, other) = (RoutingScene.contextId, AccessScene.id())
        func context(_ id: String, _ name: String) -> String {
            #"{coreType: IoContext, objectType: t, objectId: "\#(id)", name: \#(name), state: s3cret}"#
        }
        let file = AccessFile(
            tokens: [
                .init("reader", "reader"), .init("router", "router"), .init("nobody", "nobody"),
                .init("admin", "admin"),
            ],
            roles: [
                "reader": ["{read: [contexts], contexts: [Own]}", "{observe: [routing], contexts: [Own]}"],
                "router": ["{route: [Own]}"], "nobody": ["{read: [info]}"],
            ]
        )
        let scene = try AccessScene(
            file,
            settings: """
                routing:
                  contexts:
                    - context: \(context(own, "Own"))
                    - context: \(context(other, "Other"))

                """
        )
        let path = "/v1/routing/contexts"
        func names(_ name: String) throws -> [String] {
            let contexts = try scene.get(path, as: name).json?["contexts"] as? [[String: Any]]
            return try #require(contexts).compactMap { ($0["context"] as? [String: Any] ?? $0)["name"] as? String }
        }
        #expect(try names("admin") == ["Own", "Other"])
        #expect(try names("reader") == ["Own"])
        let points = "explain?ioSourceId=\(AccessScene.id())&ioActorId=\(AccessScene.id())"
        for (method, suffix) in [("GET", ""), ("GET", "/rules"), ("GET", "/" + points), ("POST", "/evaluate")] {
            func answer(_ id: String, _ name: String) throws -> RawConnection.Response {
                let headers = AccessScene.headers(name) + [("Content-Type", "application/json")]
                let body = method == "POST" ? #"{"rules":[]}"# : nil
                return try scene.gateway.request(method, "\(path)/\(id)\(suffix)", headers: headers, body: body)
            }
            let seen = try answer(own, "reader")
            #expect(seen.problem != "forbidden" && !seen.text.contains("No IO context"), "\(suffix) \(seen.text)")
            let unknown = AccessScene.id()
            let (hidden, missing) = (try answer(other, "reader"), try answer(unknown, "reader"))
            #expect(hidden.status == 404 && hidden.text.replacing(other, with: unknown) == missing.text, "\(suffix)")
            for name in ["router", "nobody"] {
                let (known, missing) = (try answer(own, name), try answer(unknown, name))
                #expect(known.status == 403 && known.text == missing.text, "\(suffix) \(name)")
            }
        }
        func put(_ id: String, _ name: String) throws -> Int {
            let headers = AccessScene.headers(name) + [("Content-Type", "application/json")]
            return try scene.gateway.request("PUT", "\(path)/\(id)/rules", headers: headers, body: #"{"rules":[]}"#)
                .status
        }
        #expect(try put(own, "router") == 200)
        #expect(try put(other, "router") == 404)
        #expect(try put(own, "reader") == 403)
        #expect(try scene.get("/v1/sse/routing?contextId=\(other)", as: "reader").status == 404)
        _ = try scene.events("routing?contextId=\(own)", as: "reader")
        #expect(try scene.get("/v1/sse/routing?contextId=\(own)", as: "router").status == 403)
    }

    // MARK: - Topics and core types

    @Test func rawTopicsNeedContainment() throws {
        let file = AccessFile(
            tokens: [.init("raw", "raw")],
            roles: [
                "raw": [
                    "{observe: [raw], topics: [\"a/+\"]}", "{publish: [raw], topics: [\"a/+\"]}",
                    "{publish: [raw], topics: [\"kept/#\"], retain: true}",
                ]
            ]
        )
        let scene = try AccessScene(file)
        try scene.agent.subscribe("#")
        func observe(_ filter: String) throws -> Int {
            let path = "/v1/sse/raw?topic=\(filter.percentEncoded)"
            return try EventStreamClient(port: scene.gateway.port, path: path, headers: AccessScene.headers("raw")).head
                .status
        }
        for (filter, status) in [
            ("a/+", 200), ("a/b", 200), ("a/#", 403), ("#", 403), ("+/b", 403), ("a/b/c", 403), ("a", 403),
            ("A/b", 403),
            ("+/+", 403), ("a/b/#", 403),
        ] {
            #expect(try observe(filter) == status, "\(filter)")
        }
        func publish(_ topic: String, _ query: String = "") throws -> Int {
            let headers = AccessScene.headers("raw") + [("Content-Type", "application/octet-stream")]
            let target = "/v1/raw/\(topic.percentEncoded)\(query)"
            return try scene.gateway.request("POST", target, headers: headers, body: "x").status
        }
        for (topic, query, status) in [
            ("a/b", "", 202), ("a/b", "?retain=false", 202), ("a/b", "?retain=true", 403), ("a/b/c", "", 403),
            ("a", "", 403),
            ("kept/x", "?retain=true", 202), ("kept/x", "", 202),
        ] {
            #expect(try publish(topic, query) == status, "\(topic)\(query)")
        }
        let element = #"{"event":"raw","topic":"a/z","retain":true,"data":{"encoding":"utf8","value":"x"}}"#
        let batch = try scene.post("/v1/batch", "[\(element)]", as: "raw").json?["results"] as? [[String: Any]]
        #expect(batch?.first?["status"] as? Int == 403, "\(batch ?? [])")
        try scene.agent.waitFor { $0.topic == "kept/x" }
        let late = try MQTTTestClient(port: scene.broker.port)
        try late.subscribe("#")
        try late.waitFor { $0.topic == "kept/x" && $0.retain }
        #expect(!late.messages.contains { $0.topic.hasPrefix("a/") })
    }

    /// A wildcard does not cover core types of agents and of IO routing.
    @Test func reservedCoreTypesNeedTheirNames() throws {
        let file = AccessFile(
            tokens: [.init("all", "all"), .init("named", "named")],
            roles: [
                "all": [
                    "{publish: [advertise], types: [\"*\"], others: true}",
                    "{request: [update], types: [\"*\"], others: true}",
                ],
                "named": [
                    "{publish: [advertise], types: [IoNode]}", "{request: [update], types: [\"coaty.test.Context\"]}",
                ],
            ]
        )
        let scene = try AccessScene(file)
        func object(_ coreType: String) -> String {
            #"{"object":{"coreType":"\#(coreType)","objectType":"coaty.test.Context","objectId":"\#(AccessScene.id())","#
                + #""name":"n","ioSources":[],"ioActors":[],"valueType":"t"}}"#
        }
        for coreType in ["Identity", "IoNode", "IoSource", "IoActor", "IoContext"] {
            for path in ["/v1/advertise", "/v1/update?timeout=200"] {
                let answer = try scene.post(path, object(coreType), as: "all")
                #expect(answer.status == 403 && answer.problem == "forbidden", "\(path) \(coreType) \(answer.text)")
                let missing = answer.json?["missing"] as? String ?? ""
                #expect(missing.contains(#"types: ["\#(coreType)"]"#), "\(missing)")
            }
        }
        #expect(try scene.post("/v1/update?timeout=200", object("IoContext"), as: "named").status == 403)
        #expect(try scene.post("/v1/advertise", object("CoatyObject"), as: "all").status == 202)
        #expect(try scene.post("/v1/update?timeout=200", object("CoatyObject"), as: "all").status == 200)
        #expect(try scene.post("/v1/advertise", object("IoNode"), as: "named").status != 403)
        #expect(
            !scene.agent.messages.contains { $0.topic.contains("IoContext/") && $0.text.contains("coaty.test.Context") }
        )
    }
}

extension MQTTTestClient {
    /// Waits for a request with a payload, and returns its correlation id.
    ///
    /// - Parameter count: number of messages received before the request.
    fileprivate func request(_ payload: String, after count: Int) throws -> String {
        var message: Message?
        try waitUntil("\(payload) is published") {
            // The gateway inserts a filter at the beginning of a Query event.
            message = messages.dropFirst(count).last { $0.text.hasSuffix(payload.dropFirst()) }
            return message != nil
        }
        return try #require(message?.topic.split(separator: "/").last.map(String.init))
    }
}
