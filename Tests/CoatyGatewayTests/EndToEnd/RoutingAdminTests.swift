import Foundation
import TestSupport
import Testing

/// Requests of the routing API: versions, rules, dry runs, explanations, and refused requests.
@Suite(.exclusive) struct RoutingAdminTests {
    private static let rulesPath = RoutingScene.path + "/rules"

    @Test func ifMatchPreventsLostUpdates() throws {
        let scene = try RoutingScene()
        let old = try scene.etag()
        let body = #"{"operatingState":"emergency"}"#
        let first = try scene.send("PATCH", body, headers: [("If-Match", old)])
        #expect(first.status == 200)
        let new = try #require(first.headers["etag"])
        #expect(new != old)
        let updates = { scene.agent.messages.count { $0.topic.contains("/UPD:") } }
        // One event for the core type and one for the object type.
        try waitUntil("the change is published") { updates() == 2 }
        let count = updates()
        for (method, body) in [("PATCH", #"{"operatingState":"normal"}"#), ("PUT", RoutingScene.context("normal"))] {
            for tag in [old, #""other""#, #""a", "b""#, #"W/\#(new)"#, #""a,\#(new.dropFirst())"#] {
                let response = try scene.send(method, body, headers: [("If-Match", tag)])
                #expect(response.status == 412 && response.problem == "precondition-failed", "\(method) \(tag)")
                #expect(response.headers["etag"] == new)
            }
        }
        #expect(updates() == count)
        #expect(try scene.state() == "emergency")
        // A list of tags, and `*`.
        let list = try scene.send("PATCH", #"{"level":1}"#, headers: [("If-Match", #""a,b",, \#(new)"#)])
        #expect(list.status == 200)
        let put = try scene.send("PUT", RoutingScene.context("normal"), headers: [("If-Match", "*")])
        #expect(put.status == 200)
        let context = try #require(put.json?["context"] as? [String: Any])
        #expect(context["operatingState"] as? String == "normal")
        #expect(context["level"] == nil)
        // The tag depends only on the context, not on its associations.
        let tag = try scene.etag()
        #expect(tag == put.headers["etag"])
        try scene.leaseAll()
        #expect(try scene.etag() == tag)

        let rules = try scene.etag(Self.rulesPath)
        let none = #"{"rules":[]}"#
        #expect(try scene.send("PUT", none, to: Self.rulesPath, headers: [("If-Match", tag)]).status == 412)
        #expect(try scene.send("PUT", none, to: Self.rulesPath, headers: [("If-Match", rules)]).status == 200)
        #expect(try scene.send("PUT", none, to: Self.rulesPath, headers: [("If-Match", rules)]).status == 412)
    }

    /// RFC 9562, section 4. What the gateway publishes and returns keeps the spelling of the context.
    @Test func contextsAreFoundInAnotherCase() throws {
        let scene = try RoutingScene()
        try scene.leaseAll()
        let path = "/v1/routing/contexts/\(RoutingScene.contextId.uppercased())"
        #expect(path != RoutingScene.path)
        let same = { (found: [String: Any]) in
            (found["context"] as? [String: Any])?["objectId"] as? String == RoutingScene.contextId
        }
        #expect(same(try scene.context(path)))
        #expect(try scene.etag(path) == scene.etag())
        #expect(try scene.etag(path + "/rules") == scene.etag(Self.rulesPath))
        let stream = try scene.gateway.stream("routing?contextId=\(RoutingScene.contextId.uppercased())")
        let frame = try stream.receive()
        #expect("\(frame)".contains(RoutingScene.contextId), "\(frame)")
        let patched = try scene.send("PATCH", #"{"operatingState":"emergency"}"#, to: path)
        #expect(patched.status == 200 && same(patched.json ?? [:]), "\(patched.text)")
        #expect(try scene.state() == "emergency")
        let put = try scene.send("PUT", RoutingScene.context("normal"), to: path)
        #expect(put.status == 200 && same(put.json ?? [:]), "\(put.text)")
        let published = scene.agent.messages.filter { $0.topic.contains("/UPD:") }.map(\.text)
        #expect(!published.contains { $0.contains(RoutingScene.contextId.uppercased()) })
    }

    /// Other agents see a change as the Update event of an agent, which its router completes.
    @Test func changeIsPublishedAsAnUpdateThatIsCompleted() throws {
        let scene = try RoutingScene()
        try scene.leaseAll()
        let count = scene.agent.messages.count
        #expect(try scene.send("PATCH", #"{"operatingState":"emergency"}"#).status == 200)
        try waitUntil("it is completed") {
            scene.agent.messages.dropFirst(count).contains { $0.topic.contains("/CPL/") }
        }
        let messages = Array(scene.agent.messages.dropFirst(count))
        let patterns = messages.map { $0.topic.split(separator: "/")[3].prefix(3) }
        // The Associate events: three end, three begin. Update and Advertise events name the core and the object type.
        #expect(patterns == ["UPD", "UPD", "ADV", "ADV"] + Array(repeating: "ASC", count: 6) + ["CPL"])
        let ids = messages.compactMap { message -> [Substring]? in
            let levels = message.topic.split(separator: "/")
            return ["UPD", "CPL"].contains(levels[3].prefix(3)) ? Array(levels.suffix(2)) : nil
        }
        #expect(Set(ids).count == 1, "the agent and the correlation id: \(ids)")
        for message in messages where !message.topic.contains("/ASC:") {
            #expect(message.text.contains(#""operatingState":"emergency""#), "\(message)")
        }
        try expectNoLaterChange(scene)
    }

    /// The gateway receives its own Update event, but the change is made.
    private func expectNoLaterChange(_ scene: RoutingScene) throws {
        let etag = try scene.etag()
        try scene.gateway.untilReceived(by: scene.agent)
        let updates = scene.agent.messages.filter { $0.topic.contains("/UPD:") }.count
        let completes = scene.agent.messages.filter { $0.topic.contains("/CPL/") }.count
        // By another agent, so that the gateway has received everything before it.
        try scene.agent.publish(
            "coaty/3/-/UPD:IoContext/\(RoutingScene.foreignAgent)/\(UUID().uuidString.lowercased())",
            #"{"object":\#(RoutingScene.context("theirs"))}"#
        )
        try waitUntil("it is completed") {
            scene.agent.messages.filter { $0.topic.contains("/CPL/") }.count > completes
        }
        #expect(scene.agent.messages.filter { $0.topic.contains("/UPD:") }.count == updates + 1)
        #expect(scene.agent.messages.filter { $0.topic.contains("/CPL/") }.count == completes + 1)
        #expect(try scene.state() == "theirs")
        #expect(try scene.etag() != etag)
    }

    /// A change concerns only the gateway's own memory, so it is stored and answered without the broker.
    @Test(arguments: [SIGSTOP, SIGKILL])
    func changesAreMadeWithoutTheBroker(_ signal: Int32) throws {
        let scene = try RoutingScene(state: true)
        try scene.leaseAll()
        kill(try #require(scene.broker.pid), signal)
        if signal == SIGKILL {
            try waitUntil("the gateway knows") { try scene.gateway.request("GET", "/readyz").status == 503 }
        }
        let isDeferred = signal == SIGKILL
        for (state, changes) in [
            ("emergency", RoutingScenarioTests.toEmergency), ("normal", RoutingScenarioTests.toNormal),
            ("emergency", RoutingScenarioTests.toEmergency),
        ] {
            let response = try scene.send("PATCH", #"{"operatingState":"\#(state)"}"#)
            #expect(response.status == 200 && response.json?["deferred"] as? Bool == isDeferred, "\(response.text)")
            #expect(RoutingScene.changes(response.json) == changes)
            #expect(try scene.etag() == response.headers["etag"])
        }
        let preview = try scene.send("POST", #"{"rules":[]}"#, to: RoutingScene.path + "/evaluate")
        #expect(RoutingScene.changes(preview.json).count == 3, "\(preview.text)")
        let rules = #"{"rules":[\#(RoutingScene.rule.replacingOccurrences(of: "by state", with: "changed"))]}"#
        for rules in [#"{"rules":[]}"#, rules] {
            let replaced = try scene.send("PUT", rules, to: Self.rulesPath)
            #expect(replaced.status == 200 && replaced.json?["deferred"] as? Bool == isDeferred, "\(replaced.text)")
            #expect(RoutingScene.changes(replaced.json).count == 3)
        }
        let count = scene.agent.messages.count
        // Stored before the answer.
        let folder = scene.folder.appending(path: "state")
        let stored = try String(
            contentsOf: folder.appending(path: "context-\(RoutingScene.contextId).state"),
            encoding: .utf8
        )
        #expect(stored.contains("emergency") && stored.contains("changed"))

        guard isDeferred else {
            kill(try #require(scene.broker.pid), SIGCONT)
            try waitUntil("all are completed") {
                scene.agent.messages.dropFirst(count).filter { $0.topic.contains("/CPL/") }.count == 3
            }
            return
        }
        // The other agents are there before the gateway returns.
        scene.gateway.signal(SIGSTOP)
        try scene.broker.restart()
        let observer = try MQTTTestClient(port: scene.broker.port)
        try observer.subscribe("coaty/#")
        scene.gateway.signal(SIGCONT)
        try waitUntil("the last state is published") { observer.messages.contains { $0.topic.contains("/CPL/") } }
        let messages = observer.messages
        let contexts = messages.filter { $0.text.contains(RoutingScene.contextId) && !$0.topic.contains("/DSC/") }
        #expect(contexts.allSatisfy { $0.text.contains(#""operatingState":"emergency""#) }, "\(contexts)")
        // Agents that have joined ask for contexts.
        let changes = contexts.filter { !$0.topic.contains("/RSV/") }
        #expect(changes.map { $0.topic.split(separator: "/")[3].prefix(3) } == ["UPD", "UPD", "ADV", "ADV", "CPL"])
        // The pairs in their last state; again for a node that returns later.
        #expect(Set(RoutingScene.associates(messages)) == Set(RoutingScenarioTests.toEmergency))
    }

    @Test func mergePatchRemovesNullMembers() throws {
        let scene = try RoutingScene()
        let put = RoutingScene.context("normal", #","site":{"floor":1,"room":2},"level":9007199254740993"#)
        #expect(try scene.send("PUT", put).status == 200)
        let headers = [("Content-Type", "application/merge-patch+json")]
        let body = #"{"site":{"floor":null,"wing":["a"]},"operatingState":"emergency"}"#
        let response = try scene.gateway.request("PATCH", RoutingScene.path, headers: headers, body: body)
        #expect(response.status == 200, "\(response.text)")
        let context = try #require(response.json?["context"] as? [String: Any])
        #expect(context["site"] as? NSDictionary == ["room": 2, "wing": ["a"]] as NSDictionary)
        #expect(response.text.contains(#""level":9007199254740993"#))
    }

    @Test func rulesAreReplacedAtomically() throws {
        let scene = try RoutingScene()
        try scene.leaseAll()
        let rules = try scene.gateway.request("GET", Self.rulesPath)
        let list = try #require(rules.json?["rules"] as? [[String: Any]])
        #expect(list.map { $0["name"] as? String } == ["by state"])
        #expect(list[0]["valueType"] as? String == RoutingScene.valueType)

        let wrong = #"{"rules":[{"name":"all","condition":["source.name",["Exists"]]},{"name":"","condition":[]}]}"#
        #expect(try scene.send("PUT", wrong, to: Self.rulesPath).status == 400)
        #expect(try scene.gateway.request("GET", Self.rulesPath).text == rules.text)
        try scene.untilAssociated(RoutingScenarioTests.normal)
        try scene.gateway.untilReceived(by: scene.agent)

        let count = scene.agent.messages.count
        let none = try scene.send("PUT", #"{"rules":[]}"#, to: Self.rulesPath)
        #expect(none.status == 200 && (none.json?["rules"] as? [Any])?.isEmpty == true)
        #expect(RoutingScene.changes(none.json) == ["-None normal", "-Sample normal", "-Throttle normal"])
        try waitUntil("the events come") {
            RoutingScene.associates(scene.agent.messages.dropFirst(count)).sorted() == RoutingScene.changes(none.json)
        }
        let all = #"{"rules":[{"name":"all","condition":["source.name",["Exists"]]}]}"#
        let answer = try scene.send("PUT", all, to: Self.rulesPath)
        #expect(RoutingScene.changes(answer.json).count == 6)
        #expect(try scene.etag(Self.rulesPath) == answer.headers["etag"])
        try scene.untilAssociated((RoutingScenarioTests.normal + RoutingScenarioTests.emergency).sorted())
        let again = try scene.send("PUT", all, to: Self.rulesPath)
        #expect(RoutingScene.changes(again.json) == [])
        // A rule without a value type applies to values that no other rule covers.
        let both = #"{"rules":[\#(RoutingScene.rule),{"name":"all","condition":["source.name",["Exists"]]}]}"#
        #expect(
            RoutingScene.changes(try scene.send("PUT", both, to: Self.rulesPath).json)
                == ["-None emergency", "-Sample emergency", "-Throttle emergency"]
        )
    }

    @Test func evaluatingChangesNothing() throws {
        let scene = try RoutingScene()
        try scene.leaseAll()
        let path = RoutingScene.path + "/evaluate"
        let before = try scene.gateway.request("GET", RoutingScene.path).text
        let rules = try scene.gateway.request("GET", Self.rulesPath).text
        let count = scene.agent.messages.count
        func changes(_ body: String) throws -> [String] {
            let response = try scene.send("POST", body, to: path)
            #expect(response.status == 200, "\(response.text)")
            return RoutingScene.changes(response.json)
        }
        #expect(try changes("{}") == [])
        #expect(
            try changes(#"{"context":\#(RoutingScene.context("emergency"))}"#) == RoutingScenarioTests.toEmergency
        )
        #expect(try changes(#"{"rules":[]}"#) == ["-None normal", "-Sample normal", "-Throttle normal"])
        #expect(
            try changes(#"{"context":\#(RoutingScene.context("emergency")),"rules":[]}"#)
                == ["-None normal", "-Sample normal", "-Throttle normal"]
        )
        #expect(try scene.gateway.request("GET", RoutingScene.path).text == before)
        #expect(try scene.gateway.request("GET", Self.rulesPath).text == rules)
        // This event is published after everything that the gateway had to publish.
        #expect(try scene.gateway.post("/v1/channel/end", #"{"objects":[]}"#).status == 202)
        _ = try scene.agent.waitFor { $0.topic.contains("/CHN:end/") }
        #expect(scene.agent.messages.dropFirst(count).allSatisfy { $0.topic.contains("/CHN:end/") })
    }

    @Test func anExplanationNamesTheConditionThatFailed() throws {
        let scene = try RoutingScene()
        try scene.leaseAll()
        func explain(_ source: String, _ actor: String) throws -> RawConnection.Response {
            let (source, actor) = (RoutingScene.ids[source] ?? source, RoutingScene.ids[actor] ?? actor)
            let query = "ioSourceId=\(source)&ioActorId=\(actor)"
            return try scene.gateway.request("GET", "\(RoutingScene.path)/explain?\(query)")
        }
        let response = try explain("None", "emergency")
        #expect(response.status == 200, "\(response.text)")
        let failed = try #require(response.json)
        #expect(failed["associated"] as? Bool == false && failed["compatible"] as? Bool == true)
        #expect(failed["decidedBy"] == nil)
        let rule = try #require((failed["rules"] as? [[String: Any]])?.first)
        #expect(rule["name"] as? String == "by state" && rule["holds"] as? Bool == false)
        #expect(
            rule["condition"] as? NSDictionary
                == [
                    "holds": false, "property": "actorNode.characteristics.isResponsibleForOperatingState",
                    "value": "emergency", "operator": "Equals",
                    "operands": [["property": "context.operatingState", "value": "normal"]],
                ] as NSDictionary
        )
        let held = try #require(try explain("Sample", "normal").json)
        #expect(held["associated"] as? Bool == true && held["updateRate"] as? Int == 5000)
        #expect(held["decidedBy"] as? String == "by state")

        let nobody = "8d1f6f8f-4a21-4c6c-b0a4-0b1e6d0a9a55"
        for (source, actor) in [(nobody, "normal"), ("None", nobody), ("normal", "None")] {
            let response = try explain(source, actor)
            #expect(response.status == 404 && response.problem == "not-found", "\(source) \(actor)")
        }
        let id = RoutingScene.ids["None"] ?? ""
        for (query, parameter) in [
            ("", "ioSourceId"), ("?ioSourceId=\(id)", "ioActorId"), ("?ioActorId=\(id)", "ioSourceId"),
            ("?ioSourceId=\(id)&ioSourceId=\(id)&ioActorId=\(id)", "ioSourceId"),
            ("?ioSourceId=\(id)&ioActorId=", "ioActorId"),
        ] {
            let response = try scene.gateway.request("GET", "\(RoutingScene.path)/explain\(query)")
            #expect(response.status == 400 && response.problem == "invalid-parameter", "\(query)")
            #expect(response.json?["parameter"] as? String == parameter, "\(query)")
        }
    }

    @Test func tooExpensiveRulesAreNotEvaluated() throws {
        let scene = try RoutingScene()
        let text = #""characteristics":{"text":"\#(String(repeating: "x", count: 200_000))"}"#
        try scene.lease(#""ioSources":[\#(RoutingScene.source("None"))],\#(text)"#)
        try scene.lease(#""ioActors":[\#(RoutingScene.actor("normal"))],\#(text)"#)
        let condition = #"["actorNode.characteristics.text",["Equals",{"property":"sourceNode.characteristics.text"}]]"#
        let rules = #"{"rules":[{"name":"costly","condition":\#(condition)}]}"#
        try waitUntil("both nodes are routed, and evaluating the rule takes too much work") {
            let evaluation = try scene.send("POST", rules, to: RoutingScene.path + "/evaluate")
            return evaluation.status == 422 && evaluation.problem == "rules-too-expensive"
        }
        // When the rule is in force, it associates nothing, and the explanation contains the reason.
        #expect(try scene.send("PUT", rules, to: Self.rulesPath).status == 200)
        let ids = ["None", "normal"].map { RoutingScene.ids[$0] ?? "" }
        let query = "ioSourceId=\(ids[0])&ioActorId=\(ids[1])"
        let explanation = try scene.gateway.request("GET", "\(RoutingScene.path)/explain?\(query)").json
        #expect(explanation?["associated"] as? Bool == false)
        let rule = try #require((explanation?["rules"] as? [[String: Any]])?.first)
        #expect(rule["tooExpensive"] as? Bool == true && rule["holds"] as? Bool == false)
    }

    // MARK: - Refused requests

    @Test func wrongContextsAreRefusedWithPointer() throws {
        let scene = try RoutingScene()
        let other = "3c9a0c1e-5b2f-4d4e-9a61-7d6f2b1c8e90"
        let context = RoutingScene.context("normal")
        func put(_ old: String, _ new: String) -> String { context.replacingOccurrences(of: old, with: new) }
        let wrong: [(String, String, String)] = [
            ("PATCH", "[]", ""), ("PATCH", "1", ""), ("PATCH", "null", ""),
            ("PATCH", #"{"objectId":"\#(other)"}"#, "/objectId"), ("PATCH", #"{"objectId":null}"#, "/objectId"),
            ("PATCH", #"{"name":"Other"}"#, "/name"), ("PATCH", #"{"name":null}"#, "/name"),
            ("PATCH", #"{"coreType":"Task"}"#, "/coreType"), ("PATCH", #"{"objectType":""}"#, "/objectType"),
            ("PATCH", #"{"externalId":7}"#, "/externalId"),
            ("PATCH", #"{"a":{"b":[0,1e999]}}"#, "/a/b/1"),
            ("PUT", put(#""normal""#, "-1e999"), "/operatingState"),
            ("PUT", "[]", ""), ("PUT", "{}", "/coreType"),
            ("PUT", put(RoutingScene.contextId, other), "/objectId"),
            ("PUT", put("TemperatureMeasurement", "Other"), "/name"),
            ("PUT", put(#""IoContext""#, #""IoNode""#), "/coreType"),
            ("PUT", put(#""objectType":"coaty.test.TemperatureIoContext","#, ""), "/objectType"),
            ("PUT", put("coaty.test.TemperatureIoContext", "a/b"), "/objectType"),
        ]
        for (method, body, pointer) in wrong {
            let response = try scene.send(method, body)
            #expect(response.status == 400 && response.problem == "invalid-value", "\(method) \(body) \(response.text)")
            #expect(response.json?["pointer"] as? String == pointer, "\(method) \(body) \(response.text)")
            let path = RoutingScene.path + "/evaluate"
            guard method == "PUT" else { continue }
            let evaluated = try scene.send("POST", #"{"context":\#(body)}"#, to: path)
            #expect(evaluated.status == 400 && evaluated.problem == "invalid-value", "\(body) \(evaluated.text)")
            #expect(evaluated.json?["pointer"] as? String == "/context" + pointer, "\(body) \(evaluated.text)")
        }
        for method in ["PATCH", "PUT"] {
            #expect(try scene.send(method, "{").problem == "malformed-json")
            let headers = [("Content-Type", "text/plain")]
            let plain = try scene.gateway.request(method, RoutingScene.path, headers: headers, body: context)
            #expect(plain.status == 415 && plain.problem == "unsupported-media-type")
            for (query, parameter) in [
                ("timeout=0", "timeout"), ("timeout=60001", "timeout"), ("timeout=soon", "timeout"),
                ("timeout=1&timeout=1", "timeout"),
            ] {
                let response = try scene.send(method, context, to: RoutingScene.path + "?" + query)
                #expect(response.status == 400 && response.problem == "invalid-parameter", "\(query)")
                #expect(response.json?["parameter"] as? String == parameter, "\(query)")
            }
            for tag in ["abc", #""open"#, #""a" "b""#, "", #"*, "a""#] {
                let response = try scene.send(method, context, headers: [("If-Match", tag)])
                #expect(response.status == 400 && response.problem == "invalid-parameter", "\(tag) \(response.text)")
                #expect(response.json?["parameter"] as? String == "If-Match", "\(tag)")
            }
        }
        #expect(try scene.gateway.request("GET", "/v1/routing/contexts/\(other)").problem == "not-found")
        #expect(try scene.send("PATCH", "{}", to: "/v1/routing/contexts/\(other)").status == 404)
        let nobody = put(RoutingScene.contextId, other)
        let path = "/v1/routing/contexts/\(other)?timeout=100"
        #expect(try scene.send("PUT", nobody, to: path).problem == "no-answer")
        #expect(try scene.send("PUT", nobody, to: path, headers: [("If-Match", "*")]).status == 412)
        #expect(try scene.gateway.request("DELETE", RoutingScene.path).status == 405)
        #expect(try scene.state() == "normal")
    }

    @Test func wrongRulesAreRefusedWithPointer() throws {
        let scene = try RoutingScene()
        let before = try scene.gateway.request("GET", Self.rulesPath).text
        let good = #"{"name":"a","condition":["source.name",["Exists"]]}"#
        func condition(_ condition: String) -> String { #"[\#(good),{"name":"b","condition":\#(condition)}]"# }
        let wrong: [(String, String)] = [
            ("{}", ""), (#"[\#(good),1]"#, "/1"), (#"[{"condition":["source.name",["Exists"]]}]"#, "/0/name"),
            (#"[{"name":"a"}]"#, "/0/condition"), (#"[\#(good),{"name":"b","kondition":1}]"#, "/1/kondition"),
            (#"[{"name":"a","valueType":1,"condition":["source.name",["Exists"]]}]"#, "/0/valueType"),
            (condition(#"["source.name",["Exist"]]"#), "/1/condition/1/0"),
            (condition(#"["context.x",["Equals",1e999]]"#), "/1/condition/1/1"),
            (condition(#"["sauce.name",["Exists"]]"#), "/1/condition/0"),
            (condition(#"["source.name",["Equals",{"property":"sauce"}]]"#), "/1/condition/1/1/property"),
            (
                condition(#"{"and":[["source.name",["Exists"]],{"not":["x.y",["Exists"]]}]}"#),
                "/1/condition/and/1/not/0"
            ),
            ("[\(Array(repeating: good, count: 1001).joined(separator: ","))]", ""),
        ]
        for (rules, pointer) in wrong {
            for (method, path) in [("PUT", Self.rulesPath), ("POST", RoutingScene.path + "/evaluate")] {
                let response = try scene.send(method, #"{"rules":\#(rules)}"#, to: path)
                #expect(
                    response.status == 400 && response.problem == "invalid-value",
                    "\(rules.prefix(100)) \(response.text)"
                )
                #expect(
                    response.json?["pointer"] as? String == "/rules" + pointer,
                    "\(rules.prefix(100)) \(response.text)"
                )
            }
        }
        for (method, path, body, pointer) in [
            ("PUT", Self.rulesPath, "[]", ""), ("PUT", Self.rulesPath, "{}", "/rules"),
            ("PUT", Self.rulesPath, #"{"rules":[],"more":1}"#, "/more"),
            ("POST", RoutingScene.path + "/evaluate", "[]", ""),
            ("POST", RoutingScene.path + "/evaluate", #"{"kontext":{}}"#, "/kontext"),
        ] {
            let response = try scene.send(method, body, to: path)
            #expect(response.status == 400 && response.problem == "invalid-value", "\(method) \(body)")
            #expect(response.json?["pointer"] as? String == pointer, "\(method) \(body) \(response.text)")
        }
        let tagged = try scene.send("PUT", #"{"rules":[]}"#, to: Self.rulesPath, headers: [("If-Match", "abc")])
        #expect(tagged.status == 400 && tagged.json?["parameter"] as? String == "If-Match")
        #expect(try scene.send("PUT", "[", to: Self.rulesPath).problem == "malformed-json")
        #expect(try scene.gateway.request("GET", Self.rulesPath).text == before)
    }
}
