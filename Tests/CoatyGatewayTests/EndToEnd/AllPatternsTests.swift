import Foundation
import TestSupport
import Testing
@testable import Base

/// Every communication pattern in both directions, between clients of REST and streams and an agent in another process.
@Suite(.exclusive, .frameChecks) struct AllPatternsTests {
    private static let part = #"{"objectTypes":["com.example.Part"]}"#
    private static let thing = #"{"objectTypes":["com.example.Thing"]}"#

    private func name(_ line: [String: Any]) -> String? {
        ((line["data"] as? [String: Any])?["object"] as? [String: Any])?["name"] as? String
    }

    // MARK: - To the agent

    @Test func agentsReceiveEventsFromREST() throws {
        let scene = try Scene()
        let agent = try AgentProcess(brokerPort: scene.broker.port)
        let id = try scene.gateway.identityId()
        #expect(try scene.gateway.post("/v1/advertise", #"{"object":\#(Scene.job("rest"))}"#).status == 202)
        let advertised = try agent.waitFor("event", "advertise")
        #expect(name(advertised) == "rest" && advertised["sourceId"] as? String == id)
        #expect(try scene.gateway.post("/v1/deadvertise", #"{"objectIds":["rest-id"]}"#).status == 202)
        try agent.waitFor("event", "deadvertise") {
            ($0["data"] as? [String: [String]])?["objectIds"] == ["rest-id"]
        }
        #expect(try scene.gateway.post("/v1/channel/news", #"{"object":\#(Scene.job("extra"))}"#).status == 202)
        #expect(name(try agent.waitFor("event", "channel")) == "extra")
        let found = try scene.gateway.post("/v1/discover", Self.thing)
        let responses = try #require(found.json?["responses"] as? [[String: Any]])
        #expect(responses.count == 1 && found.json?["reason"] as? String == "limit")
        #expect(name(responses[0]) == "resolved" && responses[0]["sourceId"] as? String == agent.id)
    }

    @Test func agentsReceiveEventsFromWebSocket() throws {
        let scene = try Scene()
        let agent = try AgentProcess(brokerPort: scene.broker.port)
        let id = try scene.gateway.identityId()
        let client = try scene.gateway.frameClient()
        for publication in [
            #""event":"advertise","data":{"object":\#(Scene.job("socket"))}"#,
            #""event":"deadvertise","data":{"objectIds":["socket-id"]}"#,
            #""event":"channel","channelId":"news","data":{"objects":[\#(Scene.job("news"))]}"#,
            #""event":"raw","topic":"example/t","data":{"encoding":"utf8","value":"grüße"}"#,
            #""event":"raw","topic":"example/b","retain":true,"data":{"encoding":"base64","value":"aGk="}"#,
        ] {
            let answer = try client.ask("publish", publication)
            #expect(answer.op == "ok" && answer.json["deferred"] as? Bool == false, "\(answer)")
        }
        let advertised = try agent.waitFor("event", "advertise")
        #expect(name(advertised) == "socket" && advertised["sourceId"] as? String == id)
        try agent.waitFor("event", "deadvertise") {
            ($0["data"] as? [String: [String]])?["objectIds"] == ["socket-id"]
        }
        let delivered = try agent.waitFor("event", "channel")["data"] as? [String: [[String: Any]]]
        #expect(delivered?["objects"]?.first?["name"] as? String == "news")
        #expect(
            try agent.waitFor("event", "raw") { $0["topic"] as? String == "example/t" }["text"] as? String == "grüße"
        )
        #expect(try agent.waitFor("event", "raw") { $0["topic"] as? String == "example/b" }["text"] as? String == "hi")
        let late = try MQTTTestClient(port: scene.broker.port)
        try late.subscribe("example/b")
        #expect(try late.waitFor { $0.retain }.text == "hi")
    }

    @Test func agentsAnswerRequestsFromWebSocket() throws {
        let scene = try Scene()
        let agent = try AgentProcess(brokerPort: scene.broker.port)
        let client = try scene.gateway.frameClient()
        func one(_ members: String, _ event: String) throws -> FrameClient.Frame {
            let (responses, reason) = try client.request(members)
            let response = try #require(responses.first, "\(members)")
            #expect(responses.count == 1 && reason == "limit", "\(members)")
            #expect(response["event"] == event && response["sourceId"] == agent.id, "\(response)")
            #expect(try #require(response.json["ms"] as? Int) >= 0)
            return response
        }
        let resolved = try one(#""event":"discover","data":\#(Self.thing)"#, "resolve")
        #expect(resolved.object["name"] as? String == "resolved")
        let retrieved = try one(
            #""event":"query","data":{"objectTypes":["com.example.Thing"],"objectFilter":{"conditions":["name",["Like","f%"]]}}"#,
            "retrieve"
        )
        #expect((retrieved.data["objects"] as? [Any])?.count == 2)
        let object = Scene.job("updated", objectType: "com.example.Thing")
        let completed = try one(#""event":"update","data":{"object":\#(object)}"#, "complete")
        #expect(completed.object["name"] as? String == "updated")
        let call = #""event":"call","operation":"com.example.add","data":"#
        #expect(try one(call + #"{"parameters":[1,2]}"#, "return").data["result"] as? Int == 3)
        let failed = try one(call + #"{"parameters":["1"]}"#, "return").data["error"] as? [String: Any]
        #expect(failed?["code"] as? Int == -32602)

        // The other reasons why a request ends.
        let query = #""event":"query","data":\#(Self.thing),"limit":0,"timeout":60000,"#
        let (matching, until) = try client.request(query + #""until":["name",["Equals","second"]]"#)
        #expect(matching.count == 1 && until == "until")
        // The id is free again when the request has ended.
        for _ in 0..<50 {
            #expect(try client.ask("request", id: "again", #""event":"discover","data":\#(Self.thing)"#).op == "ok")
            #expect(try client.next(of: "again").op == "response")
            #expect(try client.next(of: "again").op == "done")
        }
        let (none, timeout) = try client.request(#""event":"discover","data":\#(Self.part),"timeout":50"#)
        #expect(none.isEmpty && timeout == "timeout")
        #expect(try client.ask("request", id: "r", query.dropLast() + "").op == "ok")
        #expect(try client.next(of: "r")["event"] == "retrieve")
        #expect(try client.ask("cancel", id: "r").op == "ok")
        #expect(try client.next(of: "r")["reason"] == "cancelled")
        #expect(try client.ask("cancel", id: "r").json["status"] as? Int == 404)
    }

    // MARK: - From the agent

    /// An event that the agent publishes, and its subscription.
    private struct Pattern {
        let event: String
        /// Parameters besides the event, for a query and for a frame.
        var parameters: [(String, String)] = []
        /// The rest of the agent's instruction, after the event.
        let instruction: String
        /// A member that the frames have besides the common ones.
        var member: (String, String)?

        var isRequest: Bool { ["discover", "query", "update", "call"].contains(event) }

        var target: String {
            event + "?" + parameters.map { "\($0.0)=\($0.1.percentEncoded)" }.joined(separator: "&")
        }

        var members: String {
            #""event":"\#(event)""# + parameters.map { #","\#($0.0)":"\#($0.1)""# }.joined()
        }
    }

    private static let patterns = [
        Pattern(
            event: "advertise",
            parameters: [("objectType", "com.example.Job")],
            instruction: #","data":{"object":\#(Scene.job("advertised"))}"#
        ),
        Pattern(
            event: "advertise",
            parameters: [("coreType", "Task")],
            instruction: #","data":{"object":\#(Scene.job("advertised"))}"#
        ),
        Pattern(event: "deadvertise", instruction: #","data":{"objectIds":["a","b"]}"#),
        Pattern(
            event: "channel",
            parameters: [("channelId", "a b")],
            instruction: #","channelId":"a b","data":{"objects":[\#(Scene.job("x")),\#(Scene.job("y"))]}"#,
            member: ("channelId", "a b")
        ),
        Pattern(
            event: "raw",
            parameters: [("topic", "plant/+/#")],
            instruction: #","topic":"plant/1/x","data":"octets""#,
            member: ("topic", "plant/1/x")
        ),
        Pattern(event: "discover", instruction: #","data":\#(part)"#),
        Pattern(event: "query", instruction: #","data":\#(part)"#),
        Pattern(
            event: "update",
            parameters: [("objectType", "com.example.Part")],
            instruction: #","data":{"object":\#(Scene.job("u", objectType: "com.example.Part"))}"#
        ),
        Pattern(
            event: "update",
            parameters: [("coreType", "Task")],
            instruction: #","data":{"object":\#(Scene.job("u", objectType: "com.example.Part"))}"#
        ),
        Pattern(
            event: "call",
            parameters: [("operation", "com.example.multiply")],
            instruction: #","operation":"com.example.multiply","data":{"parameters":[6,7]}"#,
            member: ("operation", "com.example.multiply")
        ),
    ]

    @Test func eventsReachAllKindsOfStreams() throws {
        let scene = try Scene()
        let agent = try AgentProcess(brokerPort: scene.broker.port)
        let all = try scene.gateway.frameClient()
        for (number, pattern) in Self.patterns.enumerated() {
            let id = "s\(number)"
            try all.subscribe(id, pattern.members)
            let single = try scene.gateway.frameClient(pattern.target)
            #expect(try single.next().op == "ok")
            let events = try scene.gateway.eventStream(pattern.target)
            try agent.send(
                #"{"\#(pattern.isRequest ? "request" : "publish")":"\#(pattern.event)"\#(pattern.instruction)}"#
            )

            let isWanted = { (json: [String: Any]) in pattern.event == "raw" || json["sourceId"] as? String == agent.id
            }
            let frame = try all.next("\(pattern.members)") { $0.id == id && isWanted($0.json) }
            let alone = try single.next("\(pattern.target)") { isWanted($0.json) }
            var event = try #require(try events.next())
            while !isWanted(event.json) { event = try #require(try events.next()) }

            #expect(frame["event"] == pattern.event && (frame.json["correlationId"] != nil) == pattern.isRequest)
            if let (name, value) = pattern.member { #expect(frame[name] == value, "\(frame)") }
            if pattern.event == "raw" {
                #expect(frame.data as? [String: String] == ["encoding": "base64", "value": "b2N0ZXRz"])
            }
            // Each transport delivers the same text; only frames of connections with many subscriptions have an id.
            #expect(alone.text == frame.text.replacing(#","id":"\#(id)""#, with: ""))
            #expect(event.text == alone.text && event.name == "event" && event.id == frame["cursor"])
            #expect(frame["cursor"] != nil)
        }
        // Only IO routers publish Associate events.
        try all.subscribe("asc", #""event":"associate","contextName":"Greenhouse""#)
        let association = #"{"ioSourceId":"s","ioActorId":"a","associatingRoute":"r"}"#
        try scene.agent.publish("coaty/3/-/ASC:Greenhouse/router", association)
        let associated = try all.next(of: "asc")
        #expect(associated["sourceId"] == "router" && associated.text.contains(association))
    }

    @Test func webSocketClientAnswersAgentRequests() throws {
        let scene = try Scene()
        let agent = try AgentProcess(brokerPort: scene.broker.port)
        let client = try scene.gateway.frameClient()
        try serve(client, of: agent.id) { event, instruction in
            try agent.send(#"{"request":"\#(event)"\#(instruction)}"#)
        } check: { response, data in
            let line = try agent.waitFor("response", response)
            #expect(try line["sourceId"] as? String == scene.gateway.identityId())
            #expect((line["data"] as? NSDictionary) == (data as NSDictionary))
        }
    }

    @Test func webSocketClientAnswersAnotherClient() throws {
        let scene = try Scene()
        let client = try scene.gateway.frameClient()
        let asking = try scene.gateway.frameClient()
        let id = try scene.gateway.identityId()
        var requests: [String] = []
        try serve(client, of: id) { event, instruction in
            requests.append("r\(requests.count)")
            let members = #""event":"\#(event)"\#(instruction),"timeout":30000"#
            let answer = try asking.ask("request", id: requests.last, members)
            #expect(answer.op == "ok")
        } check: { response, data in
            let frame = try asking.next(of: requests.last ?? "", "response")
            #expect(frame["event"] == response && frame["sourceId"] == id)
            #expect(frame.data as NSDictionary == data as NSDictionary)
            #expect(try asking.next(of: requests.last ?? "", "done")["reason"] == "limit")
        }
    }

    /// Observes and answers requests of all kinds; sends refused answers first.
    private func serve(
        _ client: FrameClient,
        of source: String,
        ask: (_ event: String, _ instruction: String) throws -> Void,
        check: (_ response: String, _ data: [String: Any]) throws -> Void
    ) throws {
        let object = Scene.job("part", objectType: "com.example.Part")
        let responses = [
            "discover": ("resolve", #"{"object":\#(object)}"#, #"{"object":\#(Scene.job("other"))}"#),
            "query": ("retrieve", #"{"objects":[\#(object)]}"#, #"{"objects":[\#(Scene.job("other"))]}"#),
            "update": ("complete", #"{"object":\#(object)}"#, #"{"object":\#(Scene.job("other id"))}"#),
            "call": ("return", #"{"result":42,"executionInfo":{"by":"client"}}"#, #"{"result":1,"error":{}}"#),
        ]
        for pattern in Self.patterns where pattern.isRequest {
            let (event, data, misfit) = try #require(responses[pattern.event])
            try client.subscribe("s", pattern.members)
            try ask(pattern.event, pattern.event == "update" ? #","data":\#(data)"# : pattern.instruction)
            let request = try client.next("\(pattern.members)") {
                $0["event"] == pattern.event && $0["sourceId"] == source
                    && (pattern.event != "discover" || $0.text.contains("com.example.Part"))
            }
            let correlationId = try #require(request["correlationId"])
            func respond(_ event: String, _ data: String, to id: String = correlationId) throws -> FrameClient.Frame {
                try client.ask("respond", #""event":"\#(event)","correlationId":"\#(id)","data":\#(data)"#)
            }
            let wrong = try respond(event == "return" ? "resolve" : "return", #"{"object":\#(object)}"#)
            #expect(wrong.op == "error" && wrong.json["status"] as? Int == 400, "\(wrong)")
            let unfit = try respond(event, misfit)
            #expect(unfit.op == "error" && unfit["pointer"]?.hasPrefix("/data") == true, "\(unfit)")
            let unknown = try respond(event, data, to: UUID().uuidString.lowercased())
            #expect(unknown.op == "error" && unknown.json["status"] as? Int == 404, "\(unknown)")
            let answered = try respond(event, data)
            #expect(answered.op == "ok" && answered.json["deferred"] as? Bool == false, "\(answered)")
            let json = try JSONSerialization.jsonObject(with: Data(data.utf8)) as? [String: Any]
            try check(event, try #require(json))
            #expect(try client.ask("unsubscribe", id: "s").op == "ok")
        }
    }

}
