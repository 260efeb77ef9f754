import Foundation
import TestSupport
import Testing

/// `/v1/objects` and `/v1/agents`: the objects and agents currently in the network.
@Suite(.exclusive) struct ObjectsTests {
    /// The id of an object that a client publishes.
    private static let own = "5b1c1b1e-4c4b-4d0e-9d5a-0d4f1b1c1b1e"

    private static func object(_ id: String, _ coreType: String = "CoatyObject", _ members: String = "") -> String {
        let objectType = coreType == "CoatyObject" ? "com.example.Thing" : "coaty.\(coreType)"
        return #"{"coreType":"\#(coreType)","objectType":"\#(objectType)","objectId":"\#(id)","name":"n"\#(members)}"#
    }

    private static func event(_ object: String) -> String { #"{"object":\#(object)}"# }

    private static func advertise(
        _ id: String,
        _ coreType: String = "CoatyObject",
        _ members: String = "",
        by agent: String,
        on client: MQTTTestClient
    ) throws {
        try client.publish("coaty/3/-/ADV:\(coreType)/\(agent)", event(object(id, coreType, members)))
    }

    private static func ids(_ gateway: GatewayProcess, _ query: String = "") throws -> [String] {
        let response = try gateway.request("GET", "/v1/objects?coreType=CoatyObject\(query)")
        let objects = try #require(response.json?["objects"] as? [[String: Any]], "\(response.text)")
        return objects.compactMap { $0["objectId"] as? String }
    }

    private static func agents(_ gateway: GatewayProcess, _ query: String = "") throws -> [String: Bool] {
        let response = try gateway.request("GET", "/v1/agents\(query)")
        let agents = try #require(response.json?["agents"] as? [[String: Any]], "\(response.text)")
        let known = agents.compactMap { agent -> (String, Bool)? in
            guard let id = (agent["identity"] as? [String: Any])?["objectId"] as? String,
                let isOnline = agent["online"] as? Bool, (agent["since"] as? Int ?? 0) > 1_700_000_000_000
            else { return nil }
            return (id, isOnline)
        }
        #expect(known.count == agents.count)
        return Dictionary(uniqueKeysWithValues: known)
    }

    private static func gatewayId(_ gateway: GatewayProcess) throws -> String {
        let info = try gateway.request("GET", "/v1/info").json
        return try #require((info?["identity"] as? [String: Any])?["objectId"] as? String)
    }

    @Test func advertisedObjectIsListedUntilDeadvertised() throws {
        let scene = try Scene()
        let gateway = scene.gateway
        let id = "an/id \"é\" %"
        let path = "/v1/objects/an%2Fid%20%22%C3%A9%22%20%25"
        #expect(try gateway.request("GET", path).problem == "not-found")
        let text =
            #"{ "coreType":"CoatyObject","objectType":"t","objectId":"an/id \"\u00e9\" %","name":"n", "v":1.50 }"#
        try scene.agent.publish("coaty/3/-/ADV:CoatyObject/agent", Self.event(text))
        try waitUntil("it is listed") { try Self.ids(gateway) == [id] }
        let list = try gateway.request("GET", "/v1/objects?objectType=t")
        #expect(list.text == #"{"objects":[\#(text)],"total":1,"complete":true}"#)
        #expect(list.headers["cache-control"] == "no-store")
        let found = try gateway.request("GET", path)
        #expect(found.status == 200 && found.text.hasPrefix(#"{"object":\#(text),"owner":"agent","since":"#))
        #expect(found.headers["cache-control"] == "no-store")
        #expect((found.json?["changed"] as? Int ?? 0) > 1_700_000_000_000)

        // The gateway also receives its own publications.
        #expect(try gateway.post("/v1/advertise", Self.event(Self.object(Self.own))).status == 202)
        try waitUntil("its own is listed") { try Self.ids(gateway) == [id, Self.own] }
        let owner = try gateway.request("GET", "/v1/objects/\(Self.own)").json?["owner"] as? String
        #expect(try owner == Self.gatewayId(gateway))
        #expect(try gateway.post("/v1/deadvertise", #"{"objectIds":["\#(Self.own)","an/id \"é\" %"]}"#).status == 202)
        try waitUntil("they are gone") { try Self.ids(gateway).isEmpty }
        #expect(try gateway.request("GET", path).status == 404)
    }

    @Test func objectsOfALostAgentAreRemoved() throws {
        let scene = try Scene()
        let gateway = scene.gateway
        let will = (topic: "coaty/3/-/DAD/mortal", payload: Array(#"{"objectIds":["mortal"]}"#.utf8))
        let clientId = "mortal-client"
        let mortal = try MQTTTestClient(port: scene.broker.port, clientID: clientId, will: will)
        try Self.advertise("mortal", "Identity", by: "mortal", on: mortal)
        try Self.advertise("child", "CoatyObject", #","parentObjectId":"mortal""#, by: "other", on: mortal)
        for id in ["one", "two"] { try Self.advertise(id, by: "mortal", on: mortal) }
        try Self.advertise("parent", by: "other", on: mortal)
        try Self.advertise("grown", "CoatyObject", #","parentObjectId":"parent""#, by: "other", on: mortal)
        try waitUntil("all are listed") {
            try Self.ids(gateway) == ["child", "one", "two", "parent", "grown"]
        }
        #expect(try Self.agents(gateway) == [Self.gatewayId(gateway): true, "mortal": true])
        try scene.agent.publish("coaty/3/-/DAD/other", #"{"objectIds":["parent"]}"#)
        try waitUntil("the parent and its child are gone") { try Self.ids(gateway) == ["child", "one", "two"] }

        // A second client with the same client id makes the broker publish the agent's will.
        let usurper = try MQTTTestClient(port: scene.broker.port, clientID: clientId)
        try waitUntil("all of it is gone") { try Self.ids(gateway).isEmpty }
        withExtendedLifetime((mortal, usurper)) {}
        #expect(try Self.agents(gateway, "?online=false") == ["mortal": false])
        #expect(try Self.agents(gateway, "?online=true") == [Self.gatewayId(gateway): true])
    }

    /// The agent has no will, as if it had ended together with its broker node.
    @Test func objectsOfAnAgentThatEndsWithoutNoticeAreRemoved() throws {
        let scene = try Scene(["--agent-check-interval", "1"])
        let gateway = scene.gateway
        let living = try AgentProcess(brokerPort: scene.broker.port)
        do {
            let mortal = try MQTTTestClient(port: scene.broker.port)
            try Self.advertise("mortal", "Identity", by: "mortal", on: mortal)
            for id in ["one", "two"] { try Self.advertise(id, by: "mortal", on: mortal) }
            try waitUntil("all are listed") { try Self.ids(gateway) == ["one", "two"] }
        }
        let own = try Self.gatewayId(gateway)
        #expect(try Self.agents(gateway) == [own: true, living.id: true, "mortal": true])
        try waitUntil("all of it is gone") { try Self.ids(gateway).isEmpty }
        #expect(try Self.agents(gateway) == [own: true, living.id: true, "mortal": false])
        #expect(!scene.agent.messages.contains { $0.topic.contains("/DAD/") })
        // The complete request is not repeated.
        #expect(scene.agent.messages.count { $0.topic.contains("/DSC/") && $0.text.contains("Snapshot") } == 1)
    }

    /// The observer lists the objects of a gateway again when that gateway is back after its will, although it does not
    /// advertise them again, because it has no room to keep them.
    @Test func objectsReturnWhenTheirGatewayReconnects() throws {
        let scene = try Scene(["--limit", "maximum-kept-object-bytes=100"])
        let observer = try GatewayProcess(["--broker", "mqtt://127.0.0.1:\(scene.broker.port)"])
        let gatewayId = try Self.gatewayId(scene.gateway)
        try waitUntil("the gateway is listed") { try Self.agents(observer)[gatewayId] == true }
        #expect(try scene.gateway.post("/v1/advertise", Self.event(Self.object(Self.own))).status == 202)
        try waitUntil("the object is listed") { try Self.ids(observer) == [Self.own] }
        let client = try observer.frameClient()
        try client.subscribe("s", #""event":"advertise","snapshot":true,"objectType":"com.example.Thing""#)
        func change() throws -> String {
            let frame = try client.next(of: "s", "event")
            return "\(frame["change"] ?? "") \(frame.object["objectId"] ?? "")"
        }
        #expect(try change() == "added \(Self.own)")

        // If two clients use the same client id, the broker disconnects the first and publishes its will.
        let clientId = "Coaty" + gatewayId.replacing("-", with: "").prefix(18)
        _ = try MQTTTestClient(port: scene.broker.port, clientID: clientId)
        #expect(try change() == "removed \(Self.own)")
        try waitUntil("the gateway is back") { try Self.agents(observer)[gatewayId] == true }
        #expect(try change() == "added \(Self.own)")
        #expect(try Self.ids(observer) == [Self.own])
        #expect(try observer.request("GET", "/v1/objects/\(Self.own)").json?["owner"] as? String == gatewayId)
        // The object was advertised only once; the observer restored it from its registry.
        let advertised = scene.agent.messages.filter { $0.topic.contains("/ADV:") && $0.text.contains(Self.own) }
        #expect(
            advertised.map(\.topic) == [
                "coaty/3/-/ADV:CoatyObject/\(gatewayId)", "coaty/3/-/ADV::com.example.Thing/\(gatewayId)",
            ]
        )
    }

    @Test func agentsOfLeasedNodesAreListed() throws {
        let scene = try Scene()
        let body = #"{"contextName":"c","ioSources":[{"name":"s","valueType":"t"}]}"#
        let node = try #require(try scene.gateway.post("/v1/io/nodes", body).json)
        let identity = try #require((node["identity"] as? [String: Any])?["objectId"] as? String)
        let id = try #require((node["node"] as? [String: Any])?["objectId"] as? String)
        try waitUntil("it is there") { try Self.agents(scene.gateway)[identity] == true }
        try waitUntil("its node is") { try scene.gateway.request("GET", "/v1/objects/\(id)").status == 200 }
        #expect(try scene.gateway.request("DELETE", "/v1/io/nodes/\(id)").status == 204)
        try waitUntil("it has gone") { try Self.agents(scene.gateway)[identity] == false }
        #expect(try scene.gateway.request("GET", "/v1/objects/\(id)").status == 404)
    }

    @Test func resolvedObjectsAreListed() throws {
        let scene = try Scene()
        let question = try scene.agent.waitFor { $0.topic.contains("/DSC/") && $0.text.contains("Snapshot") }
        #expect(!question.text.contains("Log"))
        let correlationId = try #require(question.topic.split(separator: "/").last)
        let related = #""relatedObjects":[\#(Self.object("y")),\#(Self.object("z"))]"#
        let answer = #"{"object":\#(Self.object("x")),\#(related)}"#
        try scene.agent.publish("coaty/3/-/RSV/agent/\(correlationId)", answer)
        try waitUntil("they are listed") { Set(try Self.ids(scene.gateway)) == ["x", "y", "z"] }
    }

    @Test func objectsGoneDuringAnOutageAreRemoved() throws {
        let scene = try Scene()
        let gateway = scene.gateway
        for agent in ["gone", "back"] {
            try Self.advertise(agent, "Identity", by: agent, on: scene.agent)
            try Self.advertise("of " + agent, by: agent, on: scene.agent)
        }
        try waitUntil("the agents' objects are listed") { try Self.ids(gateway) == ["of gone", "of back"] }
        #expect(try gateway.post("/v1/advertise", Self.event(Self.object(Self.own))).status == 202)
        try waitUntil("all are listed") { try Self.ids(gateway) == ["of gone", "of back", Self.own] }
        scene.broker.kill()
        try waitUntil("the link is lost") { try gateway.request("GET", "/readyz").status == 503 }
        try scene.broker.restart()
        let agent = try MQTTTestClient(port: scene.broker.port)
        try agent.subscribe("coaty/#")
        try gateway.untilReady()
        try waitUntil("the one that is left has shown itself", within: 60) {
            try Self.advertise("back", "Identity", by: "back", on: agent)
            return try Self.agents(gateway)["gone"] == false
        }
        #expect(try Self.ids(gateway) == ["of back", Self.own])
        #expect(try Self.agents(gateway) == [Self.gatewayId(gateway): true, "back": true, "gone": false])
    }

    @Test func filtersOrdersSkipsAndLimits() throws {
        let scene = try Scene()
        let gateway = scene.gateway
        let members = [
            #","rank":2,"a":{"b":"x"},"c.d":1"#, #","rank":10,"a":{"b":"y"},"c.d":3"#,
            #","rank":2,"a":{"b":"z"},"c.d":2"#,
            #","rank":null"#, "",
        ]
        for (number, members) in members.enumerated() {
            try Self.advertise("\(number)", "CoatyObject", members, by: "agent", on: scene.agent)
        }
        try Self.advertise("u", "User", #","names":{"formatted":"U"}"#, by: "agent", on: scene.agent)
        try waitUntil("all are listed") { try gateway.request("GET", "/v1/objects/u").status == 200 }
        func ids(_ query: String) throws -> String { try Self.ids(gateway, query).joined() }
        func filter(_ json: String) -> String {
            "&filter=" + (json.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? "")
        }
        #expect(try ids("") == "01234")
        #expect(try ids("&order=rank") == "43021")
        #expect(try ids("&order=-rank,-a.b") == "12034")
        #expect(try ids("&order=-rank,a.b") == "10234")
        let names = #"-["c.d"],rank"#.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
        #expect(try ids("&order=\(names)") == "12043")
        #expect(try ids(filter(#"["rank",["Equals",2]]"#)) == "02")
        #expect(try ids(filter(#"{"not":["rank",[9]]}"#)) == "4", "operators may be numbers")
        #expect(try ids(filter(#"{"or":[["a.b",["Like","y"]],["rank",["NotExists"]]]}"#) + "&order=-rank") == "14")
        #expect(try ids("&offset=1&limit=2") == "12")
        #expect(try ids("&order=-rank&offset=4&limit=2") == "4")
        let part = try gateway.request("GET", "/v1/objects?offset=1&limit=1\(filter(#"["rank",["Exists"]]"#))").json
        #expect(part?["total"] as? Int == 4 && (part?["objects"] as? [Any])?.count == 1)
        let beyond = try gateway.request("GET", "/v1/objects?coreType=User&offset=7")
        #expect(beyond.text == #"{"objects":[],"total":1,"complete":true}"#)
        #expect(try gateway.request("GET", "/v1/objects?objectType=com.example.thing").json?["total"] as? Int == 0)
        #expect(try gateway.request("GET", "/v1/objects?coreType=Log").json?["total"] as? Int == 0)
    }

    @Test func refusesBadParameters() throws {
        let scene = try Scene()
        for (query, detail) in [
            ("coreType=Thing", "CoatyObject, User"), ("coreType=", "CoatyObject, User"), ("objectType=", "empty"),
            ("objectType=a&objectType=b", "once"), ("filter=%7B", "at byte 1"), ("filter=", "at byte 0"),
            ("filter=%5B%22a%22%2C%5B%22Near%22%2C1%5D%5D", "/1/0"),
            ("filter=%7B%22xor%22%3A%5B%5D%7D", "and, or, not"),
            ("filter=%5B%22a%22%2C%5B%22Equals%22%2C1e999%5D%5D", "/1/1"),
            ("order=", "empty"), ("order=a,,b", "empty"), ("order=-", "empty"), ("order=%5B1%5D", "names"),
            ("order=%5B%22a%22", "names"), ("order=" + Array(repeating: "a", count: 17).joined(separator: ","), "16"),
            ("offset=-1", "from 0"), ("offset=x", "whole"), ("limit=0", "from 1"), ("limit=1001", "to 1000"),
        ] {
            let response = try scene.gateway.request("GET", "/v1/objects?\(query)")
            #expect(response.status == 400 && response.problem == "invalid-parameter", "\(query)")
            #expect(response.json?["parameter"] as? String == String(query.prefix { $0 != "=" }), "\(query)")
            let text = response.json?["detail"] as? String ?? ""
            #expect(text.contains(detail), "\(query): \(text)")
        }
        for query in ["online=", "online=1", "online=true&online=true"] {
            let response = try scene.gateway.request("GET", "/v1/agents?\(query)")
            #expect(response.problem == "invalid-parameter" && response.json?["parameter"] as? String == "online")
        }
        #expect(try scene.gateway.request("POST", "/v1/objects", body: "").status == 405)
    }

    @Test func longListsAreStreamed() throws {
        let scene = try Scene()
        let text = String(repeating: "x", count: 1_000)
        for number in 0..<300 {
            try Self.advertise(
                "\(number)",
                "CoatyObject",
                #","text":"\#(text)","number":\#(number)"#,
                by: "a",
                on: scene.agent
            )
        }
        try waitUntil("all are listed") { try Self.ids(scene.gateway, "&limit=1000").count == 300 }
        let list = try scene.gateway.request(
            "GET",
            "/v1/objects?coreType=CoatyObject&order=-number&limit=1000&offset=100"
        )
        #expect(list.headers["content-length"] == nil && list.headers["content-type"] == "application/json")
        #expect(list.json?["total"] as? Int == 300 && list.json?["complete"] as? Bool == true)
        let objects = try #require(list.json?["objects"] as? [[String: Any]])
        #expect(objects.compactMap { $0["number"] as? Int } == (0..<200).reversed())
        let page = try scene.gateway.request("GET", "/v1/objects?coreType=CoatyObject&limit=2")
        #expect(page.headers["content-length"] != nil)
    }
}
