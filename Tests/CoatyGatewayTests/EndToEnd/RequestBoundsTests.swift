import TestSupport
import Testing

/// Configured limits for the contents of one request.
@Suite(.exclusive) struct RequestBoundsTests {
    @Test(arguments: [
        ("maximum-buffered-events", "/v1/sse/channel?channelId=c&buffer=3", "buffer"),
        ("maximum-fields", "/v1/sse/channel?channelId=c&fields=a,b,c", "fields"),
        (
            "maximum-filter-properties",
            "/v1/sse/channel?channelId=c&filter="
                + #"{"and":[["a",["Exists"]],["b",["Exists"]],["c",["Exists"]]]}"#.percentEncoded,
            "filter"
        ),
        ("maximum-timeout", "/v1/discover?timeout=3", "timeout"),
        ("maximum-listed-objects", "/v1/objects?limit=3", "limit"),
    ])
    func parametersAreBoundedByTheirSetting(setting: String, target: String, parameter: String) throws {
        let scene = try Scene(["--limit", "\(setting)=2"])
        let isRead = !target.hasPrefix("/v1/discover")
        let answer = try isRead ? scene.gateway.request("GET", target) : scene.gateway.post(target, "{}")
        #expect(answer.status == 400 && answer.json?["parameter"] as? String == parameter, "\(answer.text)")
        #expect((answer.json?["detail"] as? String)?.contains("2") == true, "\(answer.text)")
    }

    @Test func bodiesAreBoundedByTheirSettings() throws {
        let scene = try Scene([
            "--limit", "maximum-batch-publications=2", "--limit", "maximum-io-node-points=1",
            "--limit", "maximum-io-node-size=2000", "--limit", "maximum-agent-name-size=3",
            "--limit", "maximum-deadvertised-ids=2",
        ])
        for (ids, status) in [(#""x","y""#, 202), (#""x","y","x""#, 400)] {
            let event = #"{"objectIds":[\#(ids)]}"#
            let answer = try scene.gateway.post("/v1/deadvertise", event)
            #expect(answer.status == status)
            if status == 400 { #expect(answer.json?["pointer"] as? String == "/objectIds") }
            let batch = try scene.gateway.post("/v1/batch", #"[{"event":"deadvertise","data":\#(event)}]"#)
            #expect(batch.text.contains(#""status":\#(status)"#), "\(batch.text)")
        }
        let one = #"{"event":"deadvertise","data":{"objectIds":["x"]}}"#
        #expect(try scene.gateway.post("/v1/batch", "[\(one),\(one)]").status == 200)
        #expect(try scene.gateway.post("/v1/batch", "[\(one),\(one),\(one)]").problem == "content-too-large")

        func node(points: Int, name: String = "n") throws -> RawConnection.Response {
            let list = (0..<points).map { #"{"name":"s\#($0)","valueType":"t"}"# }.joined(separator: ",")
            let body = #"{"contextName":"c","name":"\#(name)","ioSources":[\#(list)]}"#
            return try scene.gateway.post("/v1/io/nodes", body)
        }
        #expect(try node(points: 1).status == 201)
        #expect(try node(points: 2).json?["pointer"] as? String == "/ioSources")
        #expect(try node(points: 1, name: "long").json?["pointer"] as? String == "/name")
        #expect(try node(points: 200).problem == "content-too-large")
    }

    @Test func failedAttemptsAreBoundedByTheirSetting() throws {
        let scene = try AccessScene(
            AccessFile(tokens: [.init("reader", "admin")]),
            ["--limit", "maximum-failed-attempts=2"]
        )
        let statuses = try (0..<3).map { _ in try scene.get("/v1/status", as: "nobody").status }
        #expect(statuses == [401, 401, 429])
    }

    @Test func timeToAuthenticateIsASetting() throws {
        let scene = try AccessScene(
            AccessFile(tokens: [.init("reader", "admin")]),
            ["--limit", "handshake-timeout=1"]
        )
        #expect(try scene.gateway.frameClient().closeCode(within: 8) == 4502)
    }

    @Test func responsesAreBoundedByTheirSetting() throws {
        let scene = try Scene(["--limit", "maximum-response-bytes=3000"])
        let discover = try scene.pendingDiscover("limit=0&timeout=60000")
        let filling = String(repeating: "x", count: 2000)
        let known = #""coreType":"CoatyObject","objectType":"t","objectId":"o","name":"n","externalId":"x""#
        let object = #"{\#(known),"filling":"\#(filling)"}"#
        for number in 0..<3 {
            let topic = "coaty/3/-/RSV/agent-\(number)/\(discover.correlationID)"
            try scene.agent.publish(topic, #"{"object":\#(object)}"#)
        }
        let answer = try discover.connection.readResponse()
        // The second response exceeds the limit, either while it is queued after the first or in the final response.
        let count = (answer.json?["responses"] as? [Any])?.count ?? 0
        #expect(answer.json?["reason"] as? String == "overflow" && (1...2).contains(count))
    }
}
