import Foundation
import TestSupport
import Testing

/// The temperature scenario of the developer guide, changed over REST and observed over REST, WebSocket and MQTT.
@Suite(.exclusive) struct RoutingScenarioTests {
    static let normal = ["None normal 5000", "Sample normal 5000", "Throttle normal 5000"]
    static let emergency = ["None emergency 5000", "Sample emergency 5000", "Throttle emergency 5000"]
    static let toEmergency =
        emergency.map { "+" + $0 } + ["-None normal", "-Sample normal", "-Throttle normal"]
    static let toNormal =
        normal.map { "+" + $0 } + ["-None emergency", "-Sample emergency", "-Throttle emergency"]

    @Test func patchReroutesAllValuesAndBack() throws {
        let scene = try RoutingScene()
        try scene.leaseAll()
        let whole = try scene.context()
        let advertised = try scene.agent.waitFor { $0.topic.hasPrefix("coaty/3/-/ADV:IoContext/") }
        let router = try #require(advertised.topic.split(separator: "/").last.map(String.init))
        #expect(whole["hosted"] as? Bool == true)
        #expect(whole["router"] as? String == router)
        #expect(whole["otherRouters"] as? [String] == [])
        let nodes = try #require(whole["nodes"] as? [[String: Any]])
        #expect(nodes.compactMap { ($0["ioSources"] as? [Any])?.count }.sorted() == [0, 0, 3])
        #expect(nodes.compactMap { ($0["ioActors"] as? [Any])?.count }.sorted() == [0, 1, 1])
        let states = nodes.compactMap {
            ($0["characteristics"] as? [String: String])?["isResponsibleForOperatingState"]
        }
        #expect(states.sorted() == ["emergency", "normal"])
        let listed = try #require(try scene.context("/v1/routing/contexts")["contexts"] as? [[String: Any]])
        #expect(listed as NSArray == [whole] as NSArray)

        try untilValueArrives(scene, "1.5", at: "normal")
        #expect(try scene.gateway.request("GET", value("emergency")).status == 204)

        for (state, before, changes) in [
            ("emergency", "normal", Self.toEmergency), ("normal", "emergency", Self.toNormal),
        ] {
            let count = scene.agent.messages.count
            let response = try scene.send("PATCH", #"{"operatingState":"\#(state)"}"#)
            #expect(response.status == 200, "\(response.text)")
            #expect(RoutingScene.changes(response.json) == changes)
            let context = try #require(response.json?["context"] as? [String: Any])
            #expect(context["operatingState"] as? String == state)
            #expect(context["parentObjectId"] as? String == router)
            #expect(try scene.etag() == response.headers["etag"])
            try waitUntil("the events come") {
                RoutingScene.associates(scene.agent.messages.dropFirst(count)).count == changes.count
            }
            let onTheWire = RoutingScene.associates(scene.agent.messages.dropFirst(count))
            #expect(onTheWire.sorted() == changes)
            #expect(onTheWire.map(\.first) == Array(repeating: "-", count: 3) + Array(repeating: "+", count: 3))
            try scene.untilAssociated(state == "normal" ? Self.normal : Self.emergency)

            try untilDissociated(scene, before)
            let last = try scene.gateway.request("GET", value(before)).text
            try untilValueArrives(scene, "\(count).5", at: state)
            #expect(try scene.gateway.request("GET", value(before)).text == last)
        }
        // An update without a change is not published.
        let count = scene.agent.messages.count
        let same = try scene.send("PATCH", #"{"operatingState":"normal","level":1}"#)
        #expect(RoutingScene.changes(same.json) == [])
        #expect(RoutingScene.associates(scene.agent.messages.dropFirst(count)) == [])
    }

    private func value(_ actor: String) -> String { "/v1/io/actors/\(RoutingScene.ids[actor] ?? "")/value" }

    /// Publishes a value of the source None until it arrives, because a newly associated actor may not be observing
    /// yet.
    private func untilValueArrives(_ scene: RoutingScene, _ text: String, at actor: String) throws {
        try waitUntil("\(text) arrives at \(actor)") {
            let path = "/v1/io/sources/\(RoutingScene.ids["None"] ?? "")/values"
            guard try scene.gateway.post(path, text).status == 202 else { return false }
            return try scene.gateway.request("GET", value(actor)).text == text
        }
    }

    private func untilDissociated(_ scene: RoutingScene, _ actor: String) throws {
        let id = RoutingScene.ids[actor] ?? ""
        let stream = try scene.gateway.stream("iostate?ioPointId=\(id)")
        while case .text(let frame) = try stream.receive() {
            if frame.contains(#""hasAssociations":false"#) { return }
        }
    }

    @Test func sourcesPublishByTheirStrategies() throws {
        let scene = try RoutingScene()
        try scene.lease(
            #""ioSources":[\#(RoutingScene.source("None", rate: nil)),\#(RoutingScene.source("Sample", rate: 700)),"#
                + #"\#(RoutingScene.source("Throttle", rate: 700))]"#
        )
        try scene.leaseActor("normal", rate: 900)
        // The higher rate applies, and the rate of one source does not affect other sources.
        try scene.untilAssociated(["None normal 900", "Sample normal 900", "Throttle normal 900"])
        let values = 60
        for (strategy, id) in RoutingScene.ids.filter({ ["None", "Sample", "Throttle"].contains($0.key) }) {
            try waitUntil("\(strategy) knows its rate") {
                try scene.gateway.post("/v1/io/sources/\(id)/values", "0").text
                    == #"{"hasAssociations":true,"updateRate":900}"#
            }
            let connection = try RawConnection(port: scene.gateway.port)
            let headers = [("Content-Type", "application/json")]
            for number in 1...values {
                let path = "/v1/io/sources/\(id)/values"
                #expect(try connection.request("POST", path, headers: headers, body: "\(number)").status == 202)
            }
            let route = "coaty/3/-/IOV/\(id)"
            _ = try scene.agent.waitFor { $0.topic == route && $0.text == "\(values)" }
            let published = scene.agent.messages.filter { $0.topic == route }.compactMap { Int($0.text) }
                .filter { $0 > 0 }
            #expect(published == published.sorted(), "\(strategy)")
            #expect(strategy == "None" ? published.count == values : published.count < values, "\(strategy)")
        }
    }

    @Test func leasedNodesAreDeadvertisedWhenGatewayIsKilled() throws {
        let scene = try RoutingScene()
        let nodes = [try scene.leaseSources(), try scene.leaseActor("normal"), try scene.leaseActor("emergency")]
        let router = try scene.agent.waitFor { $0.topic.hasPrefix("coaty/3/-/ADV:IoContext/") }
        try scene.gateway.stop(SIGKILL)
        for node in nodes {
            let left = try scene.agent.waitFor { $0.topic == "coaty/3/-/DAD/\(node.identityId)" }
            #expect(left.text.contains(node.id))
        }
        let identity = try #require(router.topic.split(separator: "/").last)
        _ = try scene.agent.waitFor { $0.topic == "coaty/3/-/DAD/\(identity)" }
    }

    @Test func streamReportsAssociationChanges() throws {
        let scene = try RoutingScene()
        let target = "routing?contextId=\(RoutingScene.contextId)"
        let early = try scene.gateway.stream(target)
        #expect(try changes(early) == [])
        try scene.leaseSources()
        try scene.leaseActor("normal")
        #expect(try changes(early) == Self.normal.map { "+" + $0 })
        try scene.leaseActor("emergency")
        try scene.untilNodes(3)
        // A later subscription starts with the current associations.
        let late = try scene.gateway.stream(target)
        #expect(try changes(late) == Self.normal.map { "+" + $0 })
        #expect(try scene.send("PATCH", #"{"operatingState":"emergency"}"#).status == 200)
        let correlation = UUID().uuidString.lowercased()
        try scene.agent.publish(
            "coaty/3/-/UPD:IoContext/\(RoutingScene.foreignAgent)/\(correlation)",
            #"{"object":\#(RoutingScene.context("normal"))}"#
        )
        for stream in [early, late] {
            #expect(try changes(stream) == Self.toEmergency)
            #expect(try changes(stream) == Self.toNormal)
        }
        let wrong: [(String, Int, String?)] = [
            ("", 400, "contextId"), ("?contextId=\(RoutingScene.foreignAgent)", 404, nil),
            ("?contextId=\(RoutingScene.contextId)&contextId=\(RoutingScene.contextId)", 400, "contextId"),
        ]
        for (query, status, parameter) in wrong {
            let response = try WebSocketClient(port: scene.gateway.port).shakeHands(path: "/v1/ws/routing" + query)
            #expect(response.status == status, "\(query)")
            let problem = try JSONSerialization.jsonObject(with: Data(response.body)) as? [String: Any]
            #expect(problem?["parameter"] as? String == parameter, "\(query)")
        }
    }

    /// Returns the changes in the next frame.
    private func changes(_ stream: WebSocketClient) throws -> [String] {
        guard case .text(let text) = try stream.receive(),
            let frame = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
        else { return ["no frame"] }
        #expect(frame["op"] as? String == "event" && frame["event"] as? String == "routing")
        #expect(frame["contextId"] as? String == RoutingScene.contextId)
        return RoutingScene.changes(frame["data"] as? [String: Any])
    }

    // MARK: - Other agents

    @Test func updateOfAnotherAgentReroutesValues() throws {
        let scene = try RoutingScene()
        try scene.leaseSources()
        try scene.leaseActor("normal")
        try scene.advertiseActor("emergency")
        try scene.untilAssociated(Self.normal)
        try scene.untilNodes(3)
        try scene.gateway.untilReceived(by: scene.agent)
        let correlation = UUID().uuidString.lowercased()
        let request = "coaty/3/-/UPD:IoContext/\(RoutingScene.foreignAgent)/\(correlation)"
        try scene.agent.publish(request, #"{"object":\#(RoutingScene.context("emergency", #","by":[1,2.50]"#))}"#)
        let complete = try scene.agent.waitFor {
            $0.topic.contains("/CPL/") && $0.topic.hasSuffix("/\(correlation)")
        }
        #expect(complete.text.contains(#""by":[1,2.5"#))
        let events = Array(scene.agent.messages.drop { $0.topic != request })
        let kinds = events.compactMap { message -> String? in
            switch message.topic.split(separator: "/")[3].prefix(while: { $0 != ":" }) {
            case "ADV": "advertise"
            case "ASC": message.text.contains("associatingRoute") ? "associate" : "dissociate"
            case "CPL": "complete"
            default: nil
            }
        }
        // Objects are advertised for their object type and their core type.
        #expect(
            kinds == ["advertise", "advertise", "dissociate", "dissociate", "dissociate"]
                + ["associate", "associate", "associate", "complete"]
        )
        #expect(RoutingScene.associates(events).sorted() == Self.toEmergency)
        #expect(try scene.state() == "emergency")
        try scene.untilAssociated(Self.emergency)
    }

    @Test func aForeignContextIsListedAndChanged() throws {
        let scene = try RoutingScene()
        let id = "3c9a0c1e-5b2f-4d4e-9a61-7d6f2b1c8e90"
        let path = "/v1/routing/contexts/\(id)"
        func context(_ level: Int) -> String {
            #"{"coreType":"IoContext","objectType":"com.example.Climate","objectId":"\#(id)","name":"Climate","#
                + #""level":\#(level),"serial":9007199254740993}"#
        }
        let router = scene.agent
        let answerer = RoutingScene.foreignAgent
        #expect(try scene.gateway.request("GET", path).status == 404)
        try router.publish("coaty/3/-/ADV:IoContext/\(answerer)", #"{"object":\#(context(1))}"#)
        try waitUntil("it is listed") {
            (try scene.context("/v1/routing/contexts")["contexts"] as? [Any])?.count == 2
        }
        try waitUntil("its associations are known") {
            try router.publish(
                "coaty/3/-/ASC:Climate/\(answerer)",
                #"{"ioSourceId":"\#(RoutingScene.ids["None"] ?? "")","ioActorId":"\#(RoutingScene.ids["normal"] ?? "")","#
                    + #""associatingRoute":"coaty/3/-/IOV/\#(RoutingScene.ids["None"] ?? "")","updateRate":700}"#
            )
            return RoutingScene.associations(try scene.context(path)["associations"]) == ["None normal 700"]
        }
        let whole = try scene.context(path)
        #expect(whole["hosted"] as? Bool == false)
        #expect(whole["router"] as? String == answerer)
        #expect((whole["context"] as? [String: Any])?["level"] as? Int == 1)
        let etag = try scene.etag(path)

        // The context's own router decides about the update.
        let patching = try scene.begin("PATCH", #"{"level":2}"#, to: path)
        let update = try router.waitFor { $0.topic.hasPrefix("coaty/3/-/UPD:IoContext/") }
        #expect(update.text.contains(#""level":2"#) && update.text.contains(#""serial":9007199254740993"#))
        let correlation = try #require(update.topic.split(separator: "/").last)
        try router.publish("coaty/3/-/CPL/\(answerer)/\(correlation)", #"{"object":\#(context(3))}"#)
        let response = try patching.readResponse()
        #expect(response.status == 200, "\(response.text)")
        #expect((response.json?["context"] as? [String: Any])?["level"] as? Int == 3)
        #expect(response.json?["associations"] == nil)
        #expect(response.headers["etag"] != etag)
        // The same applies if the router does not advertise the context.
        #expect(try scene.etag(path) == response.headers["etag"])

        let late = try scene.send("PATCH", #"{"level":4}"#, to: path + "?timeout=100")
        #expect(late.status == 504 && late.problem == "no-answer")
        #expect(late.text.contains("100 ms"))
        for (method, name, body) in [
            ("GET", "rules", nil), ("PUT", "rules", #"{"rules":[]}"#), ("POST", "evaluate", "{}"),
        ] {
            let headers = [("Content-Type", "application/json")]
            let response = try scene.gateway.request(method, "\(path)/\(name)", headers: headers, body: body)
            #expect(response.status == 404 && response.problem == "not-found", "\(method) \(name)")
        }

        // A router that leaves normally first removes its associations.
        try router.publish(
            "coaty/3/-/ASC:Climate/\(answerer)",
            #"{"ioSourceId":"\#(RoutingScene.ids["None"] ?? "")","ioActorId":"\#(RoutingScene.ids["normal"] ?? "")"}"#
        )
        try router.publish("coaty/3/-/DAD/\(answerer)", #"{"objectIds":["\#(answerer)"]}"#)
        try waitUntil("the context is gone", within: 5) { try scene.gateway.request("GET", path).status == 404 }
    }

    @Test func secondRouterIsReported() throws {
        let scene = try RoutingScene()
        try scene.leaseAll()
        let other = RoutingScene.foreignAgent
        try scene.agent.publish(
            "coaty/3/-/ADV:IoContext/\(other)",
            #"{"object":\#(RoutingScene.context("emergency"))}"#
        )
        try waitUntil("it is reported") { try scene.context()["otherRouters"] as? [String] == [other] }
        try waitUntil("it is logged") {
            scene.gateway.log.contains("another agent routes this IO context too") && scene.gateway.log.contains(other)
        }
        let whole = try scene.context()
        #expect(whole["hosted"] as? Bool == true)
        #expect(try scene.state() == "normal")
        #expect(RoutingScene.associations(whole["associations"]) == Self.normal)
        #expect((try scene.context("/v1/routing/contexts")["contexts"] as? [Any])?.count == 1)
        try scene.agent.publish("coaty/3/-/DAD/\(other)", #"{"objectIds":["\#(other)"]}"#)
        try waitUntil("it has gone") { try scene.context()["otherRouters"] as? [String] == [] }
    }

    // MARK: - After a restart

    @Test(arguments: [SIGTERM, SIGKILL])
    func changesSurviveARestart(_ signal: Int32) throws {
        let scene = try RoutingScene(state: true)
        #expect(try scene.send("PATCH", #"{"operatingState":"emergency","level":1.50}"#).status == 200)
        let rules = RoutingScene.rule.replacingOccurrences(of: "by state", with: "changed")
        #expect(try scene.send("PUT", #"{"rules":[\#(rules)]}"#, to: RoutingScene.path + "/rules").status == 200)
        try scene.restart(signal)
        #expect(try scene.state() == "emergency")
        #expect((try scene.context()["context"] as? [String: Any])?["level"] as? Double == 1.5)
        #expect(try scene.gateway.request("GET", RoutingScene.path + "/rules").text.contains("changed"))
        // The restored context determines the routing.
        try scene.leaseSources()
        try scene.leaseActor("emergency")
        try scene.untilAssociated(Self.emergency)
    }

    @Test func previousStateIsUsedIfFileIsTorn() throws {
        let scene = try RoutingScene(state: true)
        for state in ["first", "second"] {
            #expect(try scene.send("PATCH", #"{"operatingState":"\#(state)"}"#).status == 200)
        }
        let file = scene.folder.appending(path: "state/context-\(RoutingScene.contextId).state")
        try scene.gateway.stop(SIGTERM)
        try Data(try Data(contentsOf: file).dropLast(7)).write(to: file)
        try scene.restart(SIGTERM)
        #expect(try scene.state() == "first")
        try scene.gateway.untilLogged("is incomplete or was altered")
    }

    @Test func unsavedChangeIsAppliedAndReported() throws {
        let scene = try RoutingScene(state: true)
        try FileManager.default.removeItem(at: scene.folder.appending(path: "state"))
        let response = try scene.send("PATCH", #"{"operatingState":"emergency"}"#)
        #expect(response.status == 500 && response.problem == "state-not-kept", "\(response.text)")
        #expect(try scene.state() == "emergency")
    }
}
