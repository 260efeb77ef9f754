import Foundation
import TestSupport
import Testing

/// IO nodes of clients, over REST, WebSocket and MQTT.
@Suite(.exclusive) struct IONodeTests {
    private static let router = "0b1e6d0a-9a55-4c6c-b0a4-8d1f6f8f4a21"

    private struct Node {
        let id: String
        let identityId: String
        let sources: [String]
        let actors: [String]
        let json: [String: Any]
    }

    private func register(_ scene: Scene, _ body: String) throws -> Node {
        let response = try scene.gateway.post("/v1/io/nodes", body)
        try #require(response.status == 201, "\(response.text)")
        let json = try #require(response.json)
        let node = try #require(json["node"] as? [String: Any])
        let id = try #require(node["objectId"] as? String)
        #expect(response.headers["location"] == "/v1/io/nodes/\(id)")
        func ids(_ name: String) -> [String] {
            (node[name] as? [[String: Any]])?.compactMap { $0["objectId"] as? String } ?? []
        }
        return Node(
            id: id,
            identityId: try #require((json["identity"] as? [String: Any])?["objectId"] as? String),
            sources: ids("ioSources"),
            actors: ids("ioActors"),
            json: node
        )
    }

    private func associate(_ scene: Scene, _ source: String, _ actor: String, route: String?, rate: Int? = nil) throws {
        var event = #"{"ioSourceId":"\#(source)","ioActorId":"\#(actor)""#
        if let route { event += #","associatingRoute":"\#(route)""# }
        if let rate { event += #","updateRate":\#(rate)"# }
        try scene.agent.publish("coaty/3/-/ASC:Greenhouse/\(Self.router)", event + "}")
    }

    private func states(_ scene: Scene, _ node: Node) throws -> [String: [String: Any]] {
        let json = try #require(try scene.gateway.request("GET", "/v1/io/nodes/\(node.id)").json)
        let states = try #require(json["states"] as? [[String: Any]])
        return Dictionary(uniqueKeysWithValues: states.map { ($0["ioPointId"] as? String ?? "", $0) })
    }

    private func untilAssociated(_ scene: Scene, _ node: Node, _ point: String, _ wanted: Bool = true) throws {
        try waitUntil("\(point) is associated: \(wanted)") {
            try states(scene, node)[point]?["hasAssociations"] as? Bool == wanted
        }
    }

    private func publish(_ scene: Scene, _ source: String, _ value: String) throws -> RawConnection.Response {
        try scene.gateway.post("/v1/io/sources/\(source)/values", value)
    }

    private static func points(strategy: String = "1") -> String {
        """
        {"contextName":"Greenhouse","name":"Door controller","characteristics":{"isOutdoors":false,"zones":[1,2.5]},\
        "ioSources":[{"name":"Probe","valueType":"T","updateStrategy":\(strategy),"externalId":"p1","colour":"red"}],\
        "ioActors":[{"name":"Lamp","valueType":"T","updateRate":10.5}]}
        """
    }

    @Test func nodeIsAdvertisedWithItsOwnIdentity() throws {
        let scene = try Scene()
        let node = try register(scene, Self.points(strategy: #""None""#))
        // The response is sent when the node has been advertised.
        let identity = try scene.agent.waitFor { $0.topic == "coaty/3/-/ADV:Identity/\(node.identityId)" }
        #expect(identity.text.contains("Door controller"))
        let advertised = try scene.agent.waitFor { $0.topic == "coaty/3/-/ADV:IoNode/\(node.identityId)" }
        let payload = try JSONSerialization.jsonObject(with: Data(advertised.payload)) as? [String: Any]
        let object = try #require(payload?["object"] as? [String: Any])
        // The API uses the name of a strategy, Coaty's wire format its number.
        var answered = node.json
        var answeredSources = try #require(answered["ioSources"] as? [[String: Any]])
        #expect(answeredSources[0]["updateStrategy"] as? String == "None")
        answeredSources[0]["updateStrategy"] = 1
        answered["ioSources"] = answeredSources
        #expect(object as NSDictionary == answered as NSDictionary)
        #expect(object["parentObjectId"] as? String == node.identityId)
        #expect(object["name"] as? String == "Greenhouse")
        #expect(object["objectType"] as? String == "coaty.IoNode")
        let characteristics = try #require(object["characteristics"] as? NSDictionary)
        #expect(characteristics == ["isOutdoors": false, "zones": [1, 2.5]] as NSDictionary)
        let source = try #require((object["ioSources"] as? [[String: Any]])?.first)
        #expect(source["coreType"] as? String == "IoSource" && source["objectType"] as? String == "coaty.IoSource")
        #expect(source["updateStrategy"] as? Int == 1)
        #expect(source["externalId"] as? String == "p1" && source["colour"] as? String == "red")
        #expect((object["ioActors"] as? [[String: Any]])?.first?["updateRate"] as? Int == 11)

        // The node answers Discover events, and is listed.
        let found = try scene.gateway.post("/v1/discover?limit=1&timeout=5000", #"{"coreTypes":["IoNode"]}"#)
        #expect(found.text.contains(node.id))
        let list = try #require(try scene.gateway.request("GET", "/v1/io/nodes").json?["nodes"] as? [[String: Any]])
        #expect(list.map { $0["objectId"] as? String } == [node.id])
        #expect(list[0]["ioSourceCount"] as? Int == 1 && list[0]["ioActorCount"] as? Int == 1)

        #expect(try scene.gateway.request("DELETE", "/v1/io/nodes/\(node.id)").status == 204)
        let left = try scene.agent.waitFor { $0.topic == "coaty/3/-/DAD/\(node.identityId)" }
        #expect(left.text == #"{"objectIds":["\#(node.identityId)","\#(node.id)"]}"#)
        for (method, path) in [("GET", ""), ("DELETE", ""), ("POST", "/lease")] {
            let json = [("Content-Type", "application/json")]
            let response = try scene.gateway.request(method, "/v1/io/nodes/\(node.id)\(path)", headers: json)
            #expect(response.status == 404 && response.problem == "not-found")
        }
        #expect(try publish(scene, node.sources[0], "1").status == 404)
        #expect(try scene.gateway.request("GET", "/v1/io/actors/\(node.actors[0])/value").status == 404)
    }

    @Test func valuesFlowWhileAssociated() throws {
        let scene = try Scene()
        let node = try register(scene, Self.points())
        let (source, actor) = (node.sources[0], node.actors[0])
        let route = "coaty/3/-/IOV/\(source)"
        let value = "/v1/io/actors/\(actor)/value"

        let alone = try publish(scene, source, "1")
        #expect(alone.status == 202 && alone.text == #"{"hasAssociations":false}"#)
        #expect(try scene.gateway.request("GET", value).status == 204)

        try associate(scene, source, actor, route: route, rate: 5000)
        try untilAssociated(scene, node, source)
        try untilAssociated(scene, node, actor)
        #expect(try states(scene, node)[source]?["updateRate"] as? Int == 5000)
        // Strategy None: each value is published immediately, whatever the update rate, with exactly the received
        // bytes.
        for text in [#" {"celsius" : 21.50000000000000000001, "at":"\u00e4"} "#, "null", "2.50"] {
            let response = try publish(scene, source, text)
            #expect(response.status == 202 && response.text == #"{"hasAssociations":true,"updateRate":5000}"#)
            #expect(try scene.agent.waitFor { $0.topic == route && $0.text == text }.text == text)
        }
        #expect(!scene.agent.messages.contains { $0.topic == route && $0.text == "1" })
        try waitUntil("the actor has the last") { try scene.gateway.request("GET", value).text == "2.50" }
        let latest = try scene.gateway.request("GET", value)
        #expect(latest.status == 200 && latest.headers["content-type"] == "application/json")
        #expect(latest.headers["io-source-id"] == source)
        let time = try #require(latest.headers["io-value-timestamp"].flatMap(Double.init))
        #expect(abs(time / 1000 - Date().timeIntervalSince1970) < 600)

        // The actor keeps its value when the source is no longer associated, and the source publishes nothing.
        try associate(scene, source, actor, route: nil)
        try untilAssociated(scene, node, source, false)
        #expect(try publish(scene, source, "3").text == #"{"hasAssociations":false}"#)
        #expect(try scene.gateway.request("GET", value).text == "2.50")
        try associate(scene, source, actor, route: route)
        try untilAssociated(scene, node, actor)
        #expect(try scene.gateway.request("GET", value).text == "2.50")
        #expect(try publish(scene, source, "4").text == #"{"hasAssociations":true}"#)
        try waitUntil("the actor has the next") { try scene.gateway.request("GET", value).text == "4" }
        #expect(!scene.agent.messages.contains { $0.topic == route && $0.text == "3" })

        // An external route does not identify the source.
        try associate(scene, source, actor, route: "plant/1")
        try untilAssociated(scene, node, actor)
        try waitUntil("the actor observes the route") {
            try scene.agent.publish("plant/1", "5")
            return try scene.gateway.request("GET", value).text == "5"
        }
        #expect(try scene.gateway.request("GET", value).headers["io-source-id"] == nil)
    }

    @Test func sampledSourcePublishesFewerValues() throws {
        let scene = try Scene()
        let node = try register(scene, Self.points(strategy: #""Sample""#))
        let route = "coaty/3/-/IOV/\(node.sources[0])"
        try associate(scene, node.sources[0], node.actors[0], route: route, rate: 500)
        try untilAssociated(scene, node, node.sources[0])
        let connection = try RawConnection(port: scene.gateway.port)
        let headers = [("Content-Type", "application/json")]
        let path = "/v1/io/sources/\(node.sources[0])/values"
        for number in 1...100 {
            #expect(try connection.request("POST", path, headers: headers, body: "\(number)").status == 202)
        }
        _ = try scene.agent.waitFor { $0.topic == route && $0.text == "100" }
        #expect(scene.agent.messages.count { $0.topic == route } < 100)
    }

    @Test func queuedValuesAreBoundedByTheSetting() throws {
        let scene = try Scene(["--limit", "maximum-agent-publications=2"])
        let node = try register(scene, Self.points())
        try associate(scene, node.sources[0], node.actors[0], route: "coaty/3/-/IOV/\(node.sources[0])")
        try untilAssociated(scene, node, node.sources[0])
        scene.broker.kill()
        try waitUntil("readyz says so") { try scene.gateway.request("GET", "/readyz").status == 503 }
        let refused = try (0..<4).map { try publish(scene, node.sources[0], "\($0)").problem }
        #expect(refused == [nil, nil, "queue-full", "queue-full"])
    }

    @Test func rawValuesAreSentAsBytes() throws {
        let scene = try Scene()
        let node = try register(
            scene,
            """
            {"contextName":"Greenhouse","ioSources":[{"name":"s","valueType":"T","useRawIoValues":true}],\
            "ioActors":[{"name":"a","valueType":"T","useRawIoValues":true}]}
            """
        )
        let json = try register(scene, Self.points())
        let (source, actor) = (node.sources[0], node.actors[0])
        let path = "/v1/io/sources/\(source)/values"
        let octets = [("Content-Type", "application/octet-stream")]
        let refused = try publish(scene, source, "1")
        #expect(refused.status == 415 && refused.problem == "unsupported-media-type")
        #expect(refused.text.contains("application/octet-stream"))
        let other = try scene.gateway.request(
            "POST",
            "/v1/io/sources/\(json.sources[0])/values",
            headers: octets,
            body: "1"
        )
        #expect(other.status == 415 && other.text.contains("application/json"))

        try associate(scene, source, actor, route: "coaty/3/-/IOV/\(source)")
        try untilAssociated(scene, node, source)
        try untilAssociated(scene, node, actor)
        let stream = try scene.gateway.stream("iovalue?ioActorId=\(actor)")
        let connection = try RawConnection(port: scene.gateway.port)
        let bytes: [UInt8] = [0, 0xFF, 0x0A, 0xFE]
        let head =
            "POST \(path) HTTP/1.1\r\nHost: l\r\nContent-Type: application/octet-stream\r\nContent-Length: 4\r\n\r\n"
        try connection.send(Array(head.utf8) + bytes)
        #expect(try connection.readResponse().status == 202)
        #expect(
            try stream.receiveWithoutCursor()
                == #"{"op":"event","event":"iovalue","ioActorId":"\#(actor)","ioSourceId":"\#(source)","data":{"#
                + #""encoding":"base64","value":"AP8K/g=="}}"#
        )
        let latest = try scene.gateway.request("GET", "/v1/io/actors/\(actor)/value")
        #expect(latest.headers["content-type"] == "application/octet-stream")
        #expect(latest.body == bytes)
    }

    @Test func oversizedValuesAreReportedAsGap() throws {
        let scene = try Scene(["--limit", "maximum-agent-event-size=2000"])
        let node = try register(scene, Self.points())
        let (source, actor) = (node.sources[0], node.actors[0])
        let route = "coaty/3/-/IOV/\(source)"
        try associate(scene, source, actor, route: route)
        try untilAssociated(scene, node, actor)
        let values = try scene.gateway.stream("iovalue?ioActorId=\(actor)")
        for value in ["1", #""\#(String(repeating: "x", count: 3000))""#, "2"] {
            try scene.agent.publish(route, value)
        }
        let frames = try (0..<3).map { _ in try values.receiveWithoutCursor() }
        #expect(frames[0].hasSuffix(#"{"value":1}}"#) && frames[2].hasSuffix(#"{"value":2}}"#))
        #expect(frames[1] == #"{"op":"gap","dropped":null}"#)
    }

    @Test func streamsValuesAndStates() throws {
        let scene = try Scene()
        let node = try register(scene, Self.points())
        let (source, actor) = (node.sources[0], node.actors[0])
        let port = scene.gateway.port
        let prefix = #"{"op":"event","event":"iostate","ioPointId":"#
        let ofSource = try scene.gateway.stream("iostate?ioPointId=\(source)")
        let ofActor = try scene.gateway.stream("iostate?ioPointId=\(actor)")
        #expect(try ofSource.receive() == .text(prefix + #""\#(source)","data":{"hasAssociations":false}}"#))
        #expect(try ofActor.receive() == .text(prefix + #""\#(actor)","data":{"hasAssociations":false}}"#))
        let values = try (0..<3).map { _ in try scene.gateway.stream("iovalue?ioActorId=\(actor.uppercased())") }

        try associate(scene, source, actor, route: "coaty/3/-/IOV/\(source)", rate: 700)
        let associated = prefix + #""\#(source)","data":{"hasAssociations":true,"updateRate":700}}"#
        #expect(try ofSource.receive() == .text(associated))
        #expect(try ofActor.receive() == .text(prefix + #""\#(actor)","data":{"hasAssociations":true}}"#))
        // A later subscription starts with the current state.
        let late = try scene.gateway.stream("iostate?ioPointId=\(source)")
        #expect(try late.receive() == .text(associated))

        #expect(try publish(scene, source, #"{"a": 1}"#).status == 202)
        for client in values {
            #expect(
                try client.receiveWithoutCursor()
                    == #"{"op":"event","event":"iovalue","ioActorId":"\#(actor)","ioSourceId":"\#(source)","#
                    + #""data":{"value":{"a": 1}}}"#
            )
        }

        #expect(try scene.gateway.request("DELETE", "/v1/io/nodes/\(node.id)").status == 204)
        for client in values + [ofSource, late, ofActor] {
            var event = try client.receive()
            // Before the streams end, the points lose their associations and the node's connection closes.
            while case .text(let text) = event, text.contains("iostate") || text.contains("gap") {
                event = try client.receive()
            }
            #expect(event == .text(#"{"op":"done","reason":"withdrawn"}"#))
            #expect(try client.receive() == .close(code: 4500, reason: "withdrawn"))
        }
        let refused: [(String, Int, String?)] = [
            ("iovalue", 400, "ioActorId"), ("iovalue?ioActorId=lamp", 400, "ioActorId"),
            ("iovalue?ioActorId=\(actor)", 404, nil),
            ("iovalue?ioActorId=\(actor)&ioActorId=\(actor)", 400, "ioActorId"),
            ("iostate?ioActorId=\(actor)", 400, "ioActorId"), ("iostate", 400, "ioPointId"),
            ("iostate?ioPointId=\(source)", 404, nil),
        ]
        for (query, status, parameter) in refused {
            let response = try WebSocketClient(port: port).shakeHands(path: "/v1/ws/\(query)")
            #expect(response.status == status, "\(query)")
            let problem = try JSONSerialization.jsonObject(with: Data(response.body)) as? [String: Any]
            #expect(problem?["parameter"] as? String == parameter, "\(query)")
        }
        // A source has no values that can be observed.
        let other = try register(scene, Self.points())
        let response = try WebSocketClient(port: port).shakeHands(path: "/v1/ws/iovalue?ioActorId=\(other.sources[0])")
        #expect(response.status == 404)
    }

    @Test func nodeIsRemovedWhenItsLeaseExpires() throws {
        let scene = try Scene()
        let body = Self.points().dropLast() + #","leaseDuration":1000}"#
        let silent = try register(scene, String(body))
        let other = try register(scene, Self.points())
        let renewed = try scene.gateway.post("/v1/io/nodes/\(other.id)/lease", #"{"leaseDuration":3600000}"#)
        #expect(renewed.status == 200)
        #expect((renewed.json?["lease"] as? [String: Any])?["duration"] as? Int == 3_600_000)
        let json = [("Content-Type", "application/json")]
        let plain = try scene.gateway.request("POST", "/v1/io/nodes/\(other.id)/lease", headers: json)
        #expect(plain.status == 200 && (plain.json?["lease"] as? [String: Any])?["duration"] as? Int == 3_600_000)

        let left = try scene.agent.waitFor { $0.topic == "coaty/3/-/DAD/\(silent.identityId)" }
        #expect(left.text == #"{"objectIds":["\#(silent.identityId)","\#(silent.id)"]}"#)
        #expect(try scene.gateway.request("GET", "/v1/io/nodes/\(silent.id)").status == 404)
        #expect(try scene.gateway.request("GET", "/v1/io/nodes/\(other.id)").status == 200)

        let path = "/v1/io/nodes/\(other.id)/lease"
        for (body, problem) in [
            (#"{"leaseDuration":999}"#, "invalid-value"), (#"{"leaseDuration":3600001}"#, "invalid-value"),
            (#"{"leaseDuration":1000.5}"#, "invalid-value"), (#"{"leaseDuration":"1000"}"#, "invalid-value"),
            (#"{"leaseDuration":null}"#, "invalid-value"), (#"{"lease":1000}"#, "invalid-value"),
            ("[]", "invalid-value"), ("{", "malformed-json"),
        ] {
            let response = try scene.gateway.post(path, body)
            #expect(response.status == 400 && response.problem == problem, "\(body)")
        }
        #expect(try scene.gateway.request("POST", path, body: "{}").status == 415)
    }

    @Test(arguments: [SIGKILL, SIGTERM])
    func nodesAreDeadvertisedWithTheGateway(_ signal: Int32) throws {
        let scene = try Scene()
        let nodes = try (0..<5).map { _ in try register(scene, Self.points()) }
        let stream = try scene.gateway.stream("iovalue?ioActorId=\(nodes[0].actors[0])")
        scene.gateway.signal(signal)
        if signal == SIGTERM {
            guard case .close(4000, _) = try stream.receive() else {
                Issue.record("expected a close with 4000")
                return
            }
        }
        for node in nodes {
            let left = try scene.agent.waitFor { $0.topic == "coaty/3/-/DAD/\(node.identityId)" }
            #expect(left.text == #"{"objectIds":["\#(node.identityId)","\#(node.id)"]}"#)
        }
        #expect(try scene.gateway.waitForEnd() == (signal == SIGTERM ? 0 : -SIGKILL))
        // Each node deadvertises once: a normal disconnect does not publish the will.
        for node in nodes {
            #expect(scene.agent.messages.count { $0.topic == "coaty/3/-/DAD/\(node.identityId)" } == 1)
        }
    }

    @Test func idsAreUniqueAndNodesAreLimited() throws {
        let scene = try Scene(["--limit", "maximum-io-nodes=2", "--limit", "maximum-io-nodes-per-client=2"])
        let first = try register(scene, Self.points())
        let taken: [(String, String)] = [
            (#"{"contextName":"c","objectId":"\#(first.id)","ioActors":[{"name":"a","valueType":"t"}]}"#, "/objectId"),
            (
                #"{"contextName":"c","ioActors":[{"name":"a","valueType":"t"},"#
                    + #"{"name":"b","valueType":"t","objectId":"\#(first.sources[0].uppercased())"}]}"#,
                "/ioActors/1/objectId"
            ),
        ]
        for (body, pointer) in taken {
            let response = try scene.gateway.post("/v1/io/nodes", body)
            #expect(response.status == 409 && response.problem == "conflict", "\(body)")
            #expect(response.json?["pointer"] as? String == pointer)
        }
        let second = try register(scene, Self.points())
        let refused = try scene.gateway.post("/v1/io/nodes", Self.points())
        #expect(refused.status == 429 && refused.problem == "too-many-io-nodes")
        #expect(refused.headers["retry-after"] != nil)
        #expect(try scene.gateway.request("DELETE", "/v1/io/nodes/\(first.id)").status == 204)
        let same = #"{"contextName":"c","objectId":"\#(first.id)","ioActors":[{"name":"a","valueType":"t"}]}"#
        #expect(try register(scene, same).id == first.id)
        let list = try #require(try scene.gateway.request("GET", "/v1/io/nodes").json?["nodes"] as? [[String: Any]])
        #expect(list.map { $0["objectId"] as? String } == [second.id, first.id])
        // Each node is published over its own connection.
        let advertised = { scene.agent.messages.count { $0.topic.contains("/ADV:IoNode/") } }
        try waitUntil("all are advertised") { advertised() >= 3 }
        #expect(advertised() == 3)
    }

    @Test func badNodesAreRefusedWithPointer() throws {
        let scene = try Scene()
        func pointer(_ members: String) throws -> String? {
            let body = members.hasPrefix("{") || members.hasPrefix("[") ? members : #"{"contextName":"c",\#(members)}"#
            let response = try scene.gateway.post("/v1/io/nodes", body)
            #expect(
                response.status == 400 && response.problem == "invalid-value",
                "\(body.prefix(200)) \(response.text)"
            )
            return response.json?["pointer"] as? String
        }
        let point = #"{"name":"p","valueType":"t"}"#
        func source(_ members: String) -> String {
            #""ioSources":[\#(point),{"valueType":"t","name":"n",\#(members)}]"#
        }
        let id = "8d1f6f8f-4a21-4c6c-b0a4-0b1e6d0a9a55"
        let wrong: [(String, String)] = [
            ("[]", ""),
            (#"{"ioSources":[\#(point)]}"#, "/contextName"),
            (#"{"contextName":"","ioSources":[\#(point)]}"#, "/contextName"),
            (#"{"contextName":"a/b","ioSources":[\#(point)]}"#, "/contextName"),
            (#"{"contextName":7,"ioSources":[\#(point)]}"#, "/contextName"),
            (#""ioSources":[\#(point)],"leaze":1"#, "/leaze"),
            (#""ioSources":[\#(point)],"leaseDuration":999"#, "/leaseDuration"),
            (#""ioSources":[\#(point)],"leaseDuration":1e99"#, "/leaseDuration"),
            (#""ioSources":[\#(point)],"objectId":"door""#, "/objectId"),
            (#""ioSources":[\#(point)],"name":1"#, "/name"),
            (#""ioSources":[\#(point)],"characteristics":[]"#, "/characteristics"),
            (#""ioSources":[\#(point)],"characteristics":{"a":[0,1e999]}"#, "/characteristics/a/1"),
            (
                #""ioActors":[\#(point)],"characteristics":{"a":\#(String(repeating: "[", count: 8))"#
                    + String(repeating: "]", count: 8) + "}",
                "/characteristics/a" + String(repeating: "/0", count: 7)
            ),
            (#""characteristics":{}"#, "/ioActors"),
            (#""ioSources":[],"ioActors":[]"#, "/ioActors"),
            (#""ioSources":{}"#, "/ioSources"),
            (#""ioActors":[1]"#, "/ioActors/0"),
            (#""ioSources":[{"valueType":"t"}]"#, "/ioSources/0/name"),
            (#""ioSources":[{"name":"n"}]"#, "/ioSources/0/valueType"),
            (#""ioActors":[{"name":"n","valueType":""}]"#, "/ioActors/0/valueType"),
            (source(#""objectId":7"#), "/ioSources/1/objectId"),
            (source(#""objectId":"\#(id)""#) + #","objectId":"\#(id)""#, "/ioSources/1/objectId"),
            (source(#""coreType":"IoActor""#), "/ioSources/1/coreType"),
            (source(#""objectType":"""#), "/ioSources/1/objectType"),
            (source(#""updateStrategy":"Often""#), "/ioSources/1/updateStrategy"),
            (source(#""updateStrategy":4"#), "/ioSources/1/updateStrategy"),
            (source(#""updateRate":-1"#), "/ioSources/1/updateRate"),
            (source(#""updateRate":1e12"#), "/ioSources/1/updateRate"),
            (source(#""updateRate":"1""#), "/ioSources/1/updateRate"),
            (source(#""useRawIoValues":1"#), "/ioSources/1/useRawIoValues"),
            (source(#""externalRoute":"a/#""#), "/ioSources/1/externalRoute"),
            (source(#""externalRoute":"coaty/3/-/IOV/x""#), "/ioSources/1/externalRoute"),
            (source(#""externalRoute":"$SYS/x""#), "/ioSources/1/externalRoute"),
            (source(#""x":[[[[]]]]"#), "/ioSources/1/x/0/0/0"),
            (source(#""x":{"y":[-1e999]}"#), "/ioSources/1/x/y/0"),
            (source(#""externalRoute":1"#), "/ioSources/1/externalRoute"),
            (#""ioActors":[\#(Array(repeating: point, count: 1001).joined(separator: ","))]"#, "/ioActors"),
        ]
        for (body, expected) in wrong { #expect(try pointer(body) == expected, "\(body.prefix(200))") }
        #expect(try scene.gateway.post("/v1/io/nodes", "{").problem == "malformed-json")
        #expect(try scene.gateway.request("POST", "/v1/io/nodes", body: "{}").status == 415)

        let large = try scene.gateway.post("/v1/io/nodes", String(repeating: " ", count: 256 << 10) + "{}")
        #expect(large.status == 413 && large.problem == "content-too-large")

        // No invalid node was published, and a node at the limits is accepted.
        let points = Array(repeating: point, count: 500).joined(separator: ",")
        let most = try register(
            scene,
            #"{"contextName":"c","ioActors":[\#(points)],"ioSources":[\#(points)],"leaseDuration":1000}"#
        )
        #expect(most.sources.count == 500 && most.actors.count == 500)
        let isNode: (MQTTTestClient.Message) -> Bool = { $0.topic.contains("/ADV:IoNode/") }
        try waitUntil("the node is advertised") { scene.agent.messages.contains(where: isNode) }
        #expect(scene.agent.messages.count(where: isNode) == 1)

        let bad = try publish(scene, most.sources[0], "{")
        #expect(bad.status == 400 && bad.problem == "malformed-json")
        for path in ["sources/\(most.actors[0])/values", "sources/\(id)/values", "sources/x/values"] {
            #expect(try scene.gateway.post("/v1/io/\(path)", "1").status == 404, "\(path)")
        }
        for path in ["actors/\(most.sources[0])/value", "actors/\(id)/value", "actors/%2F/value", "nodes/x"] {
            #expect(try scene.gateway.request("GET", "/v1/io/\(path)").status == 404, "\(path)")
        }
    }

    @Test func aNodeNeedsTheBroker() throws {
        let gateway = try GatewayProcess(["--broker", "mqtt://127.0.0.1:\(FreePort.tcp())"])
        let refused = try gateway.post("/v1/io/nodes", Self.points())
        #expect(refused.status == 503 && refused.problem == "broker-unavailable")
        #expect(refused.headers["retry-after"] != nil)
        #expect(try gateway.request("GET", "/v1/io/nodes").text == #"{"nodes":[]}"#)
    }

    @Test func aNodeSurvivesTheLossOfTheBroker() throws {
        let scene = try Scene()
        let node = try register(scene, Self.points())
        scene.broker.kill()
        try waitUntil("readyz says so") { try scene.gateway.request("GET", "/readyz").status == 503 }
        try scene.broker.restart()
        let observer = try MQTTTestClient(port: scene.broker.port)
        try observer.subscribe("coaty/#")
        try waitUntil("the node answers") {
            try observer.publish(
                "coaty/3/-/DSC/\(Self.router)/\(UUID().uuidString.lowercased())",
                #"{"coreTypes":["IoNode"]}"#
            )
            return observer.messages.contains {
                $0.topic.contains("/RSV/\(node.identityId)") && $0.text.contains(node.id)
            }
        }
        #expect(try scene.gateway.request("GET", "/v1/io/nodes/\(node.id)").status == 200)
    }
}
