import Foundation
import TestSupport
import Testing

/// Nodes, objects and pending answers that belong to one principal.
@Suite(.exclusive, .frameChecks) struct OwnershipTests {
    private static let grants = [
        "{register: [nodes], contexts: [\"*\"]}", "{read: [nodes], contexts: [\"*\"]}",
        "{publish: [iovalue], contexts: [\"*\"]}", "{observe: [iovalue, iostate], contexts: [\"*\"]}",
        "{publish: [advertise, deadvertise], types: [\"com.example.*\"]}",
        "{observe: [call], operations: [op]}", "{answer: [call], operations: [op]}",
        "{observe: [discover], types: [\"*\"]}", "{answer: [discover], types: [\"*\"]}",
    ]

    private static func file() -> AccessFile {
        let others = grants.filter { !$0.contains("call") && !$0.contains("discover") }
            .map { $0.replacing("}", with: ", others: true}") }
        return AccessFile(
            tokens: [.init("ann", "maker"), .init("bob", "maker"), .init("keeper", "keeper"), .init("poor", "poor")],
            anonymous: ["guest"],
            roles: [
                "maker": grants, "keeper": others + ["{read: [objects], types: [\"*\"]}"],
                "poor": ["{register: [nodes], contexts: [Room]}"],
                "guest": ["{observe: [call], operations: [op]}", "{answer: [call], operations: [op]}"],
            ]
        )
    }

    private static let json = [("Content-Type", "application/json")]

    // MARK: - IO nodes

    private struct Node {
        let id: String
        let source: String
        let actor: String
    }

    private func register(_ scene: AccessScene, as name: String) throws -> Node {
        let body =
            #"{"contextName":"Room","name":"n","ioSources":[{"name":"s","valueType":"t"}],"#
            + #""ioActors":[{"name":"a","valueType":"t"}]}"#
        let answer = try scene.post("/v1/io/nodes", body, as: name)
        try #require(answer.status == 201, "\(answer.text)")
        let node = try #require(answer.json?["node"] as? [String: Any])
        func point(_ key: String) -> String? { (node[key] as? [[String: Any]])?.first?["objectId"] as? String }
        return Node(
            id: try #require(node["objectId"] as? String),
            source: try #require(point("ioSources")),
            actor: try #require(point("ioActors"))
        )
    }

    private func nodes(_ scene: AccessScene, as name: String) throws -> [String] {
        let answer = try scene.get("/v1/io/nodes", as: name)
        let nodes = try #require(answer.json?["nodes"] as? [[String: Any]], "\(answer.text)")
        return nodes.compactMap { $0["objectId"] as? String }
    }

    /// Sends each request on a node and its points, and returns the responses.
    private func requests(_ scene: AccessScene, _ node: Node, as name: String) throws -> [(
        String, RawConnection.Response
    )] {
        let headers = AccessScene.headers(name) + Self.json
        return try [
            ("GET", "/v1/io/nodes/\(node.id)", nil), ("POST", "/v1/io/nodes/\(node.id)/lease", ""),
            ("POST", "/v1/io/sources/\(node.source)/values", "1"), ("GET", "/v1/io/actors/\(node.actor)/value", nil),
            ("DELETE", "/v1/io/nodes/\(node.id)", nil),
        ].map { method, path, body in
            (method + " " + path, try scene.gateway.request(method, path, headers: headers, body: body))
        }
    }

    @Test func nodesOfOtherClientsAreNotFound() throws {
        let scene = try AccessScene(Self.file())
        let (ann, bob) = (try register(scene, as: "ann"), try register(scene, as: "bob"))
        #expect(try nodes(scene, as: "ann") == [ann.id])
        #expect(try nodes(scene, as: "bob") == [bob.id])
        #expect(try nodes(scene, as: "keeper") == [ann.id, bob.id])
        let nobody = Node(id: AccessScene.id(), source: AccessScene.id(), actor: AccessScene.id())
        let (hidden, missing) = (try requests(scene, ann, as: "bob"), try requests(scene, nobody, as: "bob"))
        for ((request, hidden), (_, missing)) in zip(hidden, missing) {
            #expect(hidden.status == 404 && hidden.text == missing.text, "\(request) \(hidden.text)")
        }
        for (request, answer) in try requests(scene, ann, as: "poor") where !request.contains("lease") {
            #expect(answer.status == (request.hasPrefix("DELETE") ? 404 : 403), "\(request) \(answer.text)")
        }
        let client = try scene.socket(as: "bob")
        let owner = try scene.socket(as: "ann")
        for (event, name, id, unknown) in [
            ("iovalue", "ioActorId", ann.actor, nobody.actor), ("iostate", "ioPointId", ann.source, nobody.source),
        ] {
            func subscribe(_ client: FrameClient, _ id: String) throws -> [String: Any] {
                let answer = try client.ask("subscribe", #""event":"\#(event)","\#(name)":"\#(id)""#)
                return answer.json.filter { $0.key != "id" }
            }
            let (refused, missing) = try (subscribe(client, id), subscribe(client, unknown))
            #expect(refused["status"] as? Int == 404, "\(refused)")
            #expect(refused as NSDictionary == missing as NSDictionary)
            #expect(try subscribe(owner, id)["op"] as? String == "ok")
        }
        // The owner may use the node, and so may a role with access to the nodes of others.
        for (node, name) in [(ann, "ann"), (bob, "keeper")] {
            for (request, answer) in try requests(scene, node, as: name) {
                #expect((200...204).contains(answer.status), "\(request) \(answer.text)")
            }
        }
        #expect(try nodes(scene, as: "keeper").isEmpty)
    }

    /// A node publishes on external routes, and its actors receive values, so the client needs grants for both.
    @Test func registrationRequiresGrantsForItsPoints() throws {
        let scene = try AccessScene(Self.file())
        func status(_ points: String, context: String = "Room", as name: String) throws -> Int {
            try scene.post("/v1/io/nodes", #"{"contextName":"\#(context)","name":"n",\#(points)}"#, as: name).status
        }
        let source = #""ioSources":[{"name":"s","valueType":"t"}]"#
        #expect(try status(source, as: "poor") == 201)
        #expect(try status(source, context: "Other", as: "poor") == 403)
        #expect(try status(#""ioActors":[{"name":"a","valueType":"t"}]"#, as: "poor") == 403)
        #expect(try status(#""ioSources":[{"name":"s","valueType":"t","externalRoute":"a/b"}]"#, as: "ann") == 403)
        #expect(try status(#""ioActors":[{"name":"a","valueType":"t"}]"#, as: "ann") == 201)
    }

    // MARK: - Advertised objects

    @Test func objectsOfOthersAreProtected() throws {
        let scene = try AccessScene(Self.file())
        let id = AccessScene.id()
        func advertise(_ name: String, _ who: String) throws -> RawConnection.Response {
            try scene.post("/v1/advertise", #"{"object":\#(AccessScene.lamp(name, site: nil, id: id))}"#, as: who)
        }
        func deadvertise(_ who: String) throws -> RawConnection.Response {
            try scene.post("/v1/deadvertise", #"{"objectIds":["\#(id)"]}"#, as: who)
        }
        #expect(try advertise("first", "ann").status == 202)
        for isKnown in [false, true] {
            for (refused, hasType) in [(try advertise("taken", "bob"), true), (try deadvertise("bob"), isKnown)] {
                #expect(refused.status == 403 && refused.problem == "forbidden")
                // The type of an object that the registry does not have yet is unknown, so that a grant for all types
                // may be what is missing.
                guard hasType else { continue }
                #expect((refused.json?["missing"] as? String)?.contains("others: true") ?? false, "\(refused.text)")
            }
            // The status is the same when the registry has the object.
            try waitUntil("the object is known") { try scene.get("/v1/objects/\(id)", as: "keeper").status == 200 }
        }
        // The same applies to other transports.
        let object = AccessScene.lamp("taken", site: nil, id: id)
        let batch = try scene.post("/v1/batch", #"[{"event":"advertise","data":{"object":\#(object)}}]"#, as: "bob")
        #expect((batch.json?["results"] as? [[String: Any]])?.first?["status"] as? Int == 403)
        let client = try scene.socket(as: "bob")
        let frame = try client.ask("publish", #""event":"deadvertise","data":{"objectIds":["\#(id)"]}"#)
        #expect(frame.json["status"] as? Int == 403)
        #expect(try advertise("second", "ann").status == 202)
        #expect(try advertise("third", "keeper").status == 202)
        // Ann owns the object until it is deadvertised.
        #expect(try deadvertise("bob").status == 403)
        #expect(try deadvertise("keeper").status == 202)
        #expect(try advertise("fourth", "bob").status == 202)
        #expect(try deadvertise("ann").status == 403)
        #expect(!scene.agent.messages.contains { $0.text.contains("taken") })
    }

    // MARK: - Right to answer

    private static let call = #""event":"call","operation":"op""#

    private func answer(_ client: FrameClient, _ id: String?, _ event: String = "return") throws -> Int {
        let data = event == "return" ? #"{"result":1}"# : #"{"object":\#(AccessScene.lamp("n", site: nil))}"#
        let members = #""event":"\#(event)","correlationId":"\#(id ?? "")","data":\#(data)"#
        let answer = try client.ask("respond", members)
        return answer.op == "ok" ? 200 : answer.json["status"] as? Int ?? 0
    }

    @Test func onlyTheClientThatReceivedACallAnswersItOnce() throws {
        let scene = try AccessScene(Self.file())
        let (ann, bob) = (try scene.socket(as: "ann"), try scene.socket(as: "bob"))
        try ann.subscribe("s", Self.call)
        // A filter that excludes the call, or a subscription to another event, gives no right to answer.
        try bob.subscribe("s", Self.call + #","filter":["parameters.a",["Equals",2]]"#)
        try bob.subscribe("d", #""event":"discover""#)
        let id = AccessScene.id()
        try scene.publish("CLL:op/\(id)", #"{"parameters":{"a":1}}"#)
        #expect(try ann.next(of: "s")["correlationId"] == id)
        #expect(try answer(bob, id) == 404)
        #expect(try answer(ann, AccessScene.id()) == 404)
        #expect(try answer(ann, id, "resolve") == 400)
        #expect(try answer(ann, id) == 200)
        #expect(try answer(ann, id) == 404)
        try scene.publish("CLL:op/late", "{}")
        _ = try ann.next(of: "s")
        // A later subscription only gives a right to answer later calls.
        let late = try scene.socket(as: "bob")
        try late.subscribe("s", Self.call)
        #expect(try answer(late, "late") == 404)
        #expect(try answer(ann, "late") == 200)
        try scene.agent.waitFor { $0.topic.hasSuffix("/late") && $0.topic.contains("/RTN/") }
        #expect(scene.agent.messages.count { $0.topic.contains("/RTN/") } == 2)
    }

    @Test func aTokenMayReconnectBeforeItAnswers() throws {
        let scene = try AccessScene(Self.file())
        for (name, after) in [("ann", 200), (nil, 404)] {
            let id = AccessScene.id()
            var client: FrameClient? = try scene.socket(as: name)
            let other = try scene.socket(as: name)
            try client?.subscribe("s", Self.call)
            try scene.publish("CLL:op/\(id)", "{}")
            #expect(try client?.next(of: "s")["correlationId"] == id)
            if name == nil { #expect(try answer(other, id) == 404) }
            client = nil
            let again = try scene.socket(as: name)
            #expect(try answer(again, id) == after)
            // All connections with one token share one right.
            #expect(try answer(other, id) == 404)
        }
    }

    /// An agent may answer a Discover event several times, once for each object.
    @Test func aDiscoverEventIsAnsweredSeveralTimes() throws {
        let scene = try AccessScene(Self.file())
        let (ann, bob) = (try scene.socket(as: "ann"), try scene.socket(as: "bob"))
        try ann.subscribe("s", #""event":"discover""#)
        let id = AccessScene.id()
        try scene.publish("DSC/\(id)", #"{"objectTypes":["com.example.Lamp"]}"#)
        _ = try ann.next("the request") { $0["correlationId"] == id }
        for _ in 0..<3 { #expect(try answer(ann, id, "resolve") == 200) }
        #expect(try answer(bob, id, "resolve") == 404)
    }
}
