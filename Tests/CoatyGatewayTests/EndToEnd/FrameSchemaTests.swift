import Foundation
import TestSupport
import Testing
@testable import Base

/// Frames of every kind, checked against the schemas.
@Suite(.exclusive, .frameChecks) struct FrameSchemaTests {
    private static let job = Scene.job("j")

    /// Two-way events: members of the subscription besides the event, members of the request, the response's event, and
    /// its data.
    private static let requests = [
        ("discover", "", #""data":{"objectTypes":["com.example.Job"]}"#, "resolve", #"{"object":\#(job)}"#),
        ("query", "", #""data":{"coreTypes":["Task"]}"#, "retrieve", #"{"objects":[\#(job)]}"#),
        (
            "update", #","objectType":"com.example.Job""#, #""data":{"object":\#(job)}"#, "complete",
            #"{"object":\#(job)}"#
        ),
        (
            "call", #","operation":"o""#, #""operation":"o","data":{"parameters":{"a":1}}"#, "return", #"{"result":1}"#
        ),
    ]

    @Test func allFramesMatchTheirSchemas() throws {
        let scene = try RoutingScene()
        let client = try scene.gateway.frameClient()
        // Access is unrestricted, so any token is accepted.
        #expect(try client.ask("authenticate", #""token":"none""#).op == "ok")
        #expect(try client.ask("identify", #""name":"All""#).op == "ok")

        // Published events, observed with all options.
        let options =
            #","filter":{"not":["x",["Exists"]]},"fields":["name"],"throttle":1,"buffer":9,"overflow":"latest","encoding":"binary""#
        try client.subscribe("advertise", #""event":"advertise","coreType":"Task""# + options)
        try client.subscribe("snapshot", #""event":"advertise","snapshot":true,"objectType":"com.example.Job""#)
        try client.subscribe("channel", #""event":"channel","channelId":"c","since":"0-1""#)
        try client.subscribe("deadvertise", #""event":"deadvertise""#)
        try client.subscribe("raw", #""event":"raw","topic":"raw/#","encoding":"binary""#)
        try client.subscribe("traffic", #""event":"traffic""#)
        try client.subscribe(
            "return",
            #""event":"traffic","events":["return","iovalue"],"fields":["value"],"buffer":9"#
        )
        try client.subscribe("base64", #""event":"raw","topic":"raw/#""#)
        for publication in [
            #""event":"advertise","data":{"object":\#(Self.job)}"#,
            #""event":"channel","channelId":"c","data":{"object":\#(Self.job)}"#,
            #""event":"deadvertise","data":{"objectIds":["none"]}"#,
            #""event":"raw","topic":"raw/1","retain":false,"data":{"encoding":"utf8","value":"x"}"#,
        ] { #expect(try client.ask("publish", publication).op == "ok") }
        for id in ["advertise", "snapshot", "channel", "deadvertise", "raw", "base64"] {
            _ = try client.next(of: id, "event")
        }
        #expect(try client.next(of: "channel").op == "gap")

        for (event, observed, asked, responding, response) in Self.requests {
            try client.subscribe(event, #""event":"\#(event)""# + observed)
            #expect(
                try client.ask("request", id: "r", #""event":"\#(event)",\#(asked),"limit":1,"timeout":30000"#).op
                    == "ok"
            )
            let request = try client.next("a \(event)") {
                $0.id == event && ($0["event"] != "discover" || $0.text.contains("com.example.Job"))
            }
            let answer =
                #""event":"\#(responding)","correlationId":"\#(request["correlationId"] ?? "")","data":\#(response)"#
            #expect(try client.ask("respond", answer).op == "ok")
            #expect(try client.next(of: "r").op == "response")
            #expect(try client.next(of: "r").op == "done")
        }
        #expect(try client.ask("request", id: "r", #""event":"discover","data":{"objectTypes":["none"]}"#).op == "ok")
        #expect(try client.ask("cancel", id: "r").op == "ok")

        // IO routing.
        try scene.leaseSources()
        let actor = try #require(RoutingScene.ids["normal"])
        try scene.leaseActor("normal")
        try client.subscribe("iovalue", #""event":"iovalue","ioActorId":"\#(actor)""#)
        try client.subscribe("iostate", #""event":"iostate","ioPointId":"\#(actor)""#)
        try client.subscribe("routing", #""event":"routing","contextId":"\#(RoutingScene.contextId)""#)
        try client.subscribe("associate", #""event":"associate","contextName":"TemperatureMeasurement""#)
        // The source's node learns of its association over its own connection, and publishes no value before.
        let source = try #require(RoutingScene.ids["None"])
        try client.subscribe("sourcestate", #""event":"iostate","ioPointId":"\#(source)""#)
        for id in ["iostate", "sourcestate"] {
            _ = try client.next("an association") { $0.id == id && $0.text.contains(#""hasAssociations":true"#) }
        }
        _ = try client.next(of: "routing")
        #expect(try scene.gateway.post("/v1/io/sources/\(source)/values", "21.5").status == 202)
        _ = try client.next(of: "iovalue", "event")
        _ = try client.next("the value on its way") { $0.id == "return" && $0["event"] == "iovalue" }
        #expect(try scene.send("PATCH", #"{"operatingState":"emergency"}"#).status == 200)
        _ = try client.next(of: "associate")

        #expect(try client.ask("ping").op == "pong")
        #expect(try client.ask("unsubscribe", id: "raw").op == "ok")
        #expect(try client.ask("unsubscribe", id: "raw").op == "error")

        var kinds: Set = ["gateway ok ", "gateway pong ", "gateway error ", "gateway gap ", "gateway done "]
        for event in [
            "advertise", "associate", "call", "channel", "deadvertise", "discover", "iostate", "iovalue", "query",
            "raw",
            "routing", "update",
        ] { kinds.formUnion(["gateway event \(event)", "client subscribe \(event)"]) }
        kinds.insert("client subscribe traffic")
        for (event, _, _, response, _) in Self.requests {
            kinds.insert("gateway event \(response)")
            kinds.formUnion(["client request \(event)", "client respond \(response)", "gateway response \(response)"])
        }
        kinds.formUnion(["advertise", "channel", "deadvertise", "raw"].map { "client publish \($0)" })
        kinds.formUnion(["authenticate", "cancel", "identify", "ping", "unsubscribe"].map { "client \($0) " })
        #expect(kinds.subtracting(FrameLog.shared.kinds.map { $0.replacing(" true", with: "") }).isEmpty)
    }

    /// Examples in the documentation without an ellipsis are valid.
    @Test func theExamplesAreValid() throws {
        let page = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appending(path: "../../../docs/websocket.md")
        let text = try String(contentsOf: page, encoding: .utf8)
        var examples = 0
        for match in text.matches(of: /([<>] |`)(\{"op":[^`…\n]*\})(`|\n)/) {
            let frame = String(match.2)
            try #require(try JSONSerialization.jsonObject(with: Data(frame.utf8)) is [String: Any], "\(frame)")
            if match.1 == "> " { FrameLog.shared.sent(frame, isValid: true) } else { FrameLog.shared.received(frame) }
            examples += 1
        }
        #expect(examples >= 8)
    }
}
