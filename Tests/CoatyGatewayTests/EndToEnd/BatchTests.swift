import Foundation
import TestSupport
import Testing
@testable import Base

@Suite(.exclusive) struct BatchTests {
    private func results(_ response: RawConnection.Response) throws -> [[String: Any]] {
        #expect(response.status == 200 && response.headers["content-type"] == "application/json", "\(response.text)")
        return try #require(response.json?["results"] as? [[String: Any]], "\(response.text)")
    }

    private func postLines(_ scene: Scene, _ lines: String) throws -> RawConnection.Response {
        try scene.gateway.request("POST", "/v1/batch", headers: [("Content-Type", "application/x-ndjson")], body: lines)
    }

    @Test func publishesInOrderWithUnchangedBytes() throws {
        let scene = try Scene()
        try scene.agent.subscribe("raw/#")
        let object = #"{"object": \#(Scene.job("a")), "privateData":{"n":1.50}}"#
        let batch = [
            #"{"event":"channel","channelId":"c","data":\#(object)}"#,
            #"{"event":"raw","topic":"raw/1","data":{"encoding":"base64","value":"AP8="}}"#,
            #"{"data":\#(object),"event":"advertise"}"#,
            #"{"event":"raw","topic":"raw/2","retain":true,"data":{"encoding":"utf8","value":"\u00fc"}}"#,
            #"{"event":"deadvertise","data":{"objectIds":["x"]}}"#,
        ]
        for isArray in [true, false] {
            let seen = scene.agent.messages.count
            let response =
                isArray
                ? try scene.gateway.post("/v1/batch", "[\(batch.joined(separator: ", "))]")
                : try postLines(scene, batch.joined(separator: "\n"))
            let accepted = #"{"status":202,"deferred":false}"#
            #expect(
                response.text == #"{"results":[\#(Array(repeating: accepted, count: 5).joined(separator: ","))]}"#
            )
            try waitUntil("all arrive") { scene.agent.messages.count >= seen + 6 }
            let messages = scene.agent.messages.dropFirst(seen)
            let topics = ["/CHN:c/", "raw/1", "/ADV:Task/", "/ADV::com.example.Job/", "raw/2", "/DAD/"]
            #expect(zip(messages, topics).allSatisfy { $0.topic.contains($1) }, "\(messages)")
            let payloads = [object, object, object, "ü", #"{"objectIds":["x"]}"#].map { Array($0.utf8) }
            #expect(messages.map(\.payload) == [payloads[0], [0, 255]] + payloads[1...])
        }
        let late = try MQTTTestClient(port: scene.broker.port)
        try late.subscribe("raw/#")
        #expect(try late.waitFor(count: 1).map(\.topic) == ["raw/2"])
    }

    @Test func reportsAnOutcomePerPublication() throws {
        let scene = try Scene()
        let good = #"{"event":"deadvertise","data":{"objectIds":["x"]}}"#
        let bad: [(json: String, pointer: String)] = [
            ("7", ""),
            ("{}", "/event"),
            (#"{"event":"associate","data":{}}"#, "/event"),
            (#"{"event":7,"data":{}}"#, "/event"),
            (#"{"event":"advertise"}"#, "/data"),
            (#"{"event":"advertise","data":{"object":{"coreType":"Task"}}}"#, "/data/object/objectType"),
            (#"{"event":"advertise","data":{"object":\#(Scene.job("a"))},"channelId":"c"}"#, "/channelId"),
            (#"{"event":"channel","data":{"objects":[]}}"#, "/channelId"),
            (#"{"event":"channel","channelId":"a/b","data":{"objects":[]}}"#, "/channelId"),
            (#"{"event":"channel","channelId":"c","data":{"objects":[],"object":1}}"#, "/data/object"),
            (#"{"event":"channel","channelId":"c","data":{"objects":[{}]}}"#, "/data/objects/0/coreType"),
            (#"{"event":"deadvertise","data":{"objectIds":["x"]},"id":"1"}"#, "/id"),
            (#"{"event":"raw","topic":"coaty/3","data":{"encoding":"utf8","value":""}}"#, "/topic"),
            (#"{"event":"raw","topic":1,"data":{"encoding":"utf8","value":""}}"#, "/topic"),
            (#"{"event":"raw","data":{"encoding":"utf8","value":""}}"#, "/topic"),
            (#"{"event":"raw","topic":"t","data":{"encoding":"hex","value":""}}"#, "/data/encoding"),
            (#"{"event":"raw","topic":"t","data":{"encoding":"base64","value":"!"}}"#, "/data/value"),
            (#"{"event":"raw","topic":"t","data":{"encoding":"utf8","value":1}}"#, "/data/value"),
            (#"{"event":"raw","topic":"t","data":"x"}"#, "/data"),
            (#"{"event":"raw","topic":"t","retain":1,"data":{"encoding":"utf8","value":""}}"#, "/retain"),
            (#"{"event":"raw","topic":"t","data":{"encoding":"utf8","value":"","n":1}}"#, "/data/n"),
        ]
        let batch = bad.flatMap { [$0.json, good] }
        for response in [
            try scene.gateway.post("/v1/batch", "[\(batch.joined(separator: ","))]"),
            try postLines(scene, batch.joined(separator: "\n")),
        ] {
            let results = try results(response)
            #expect(results.count == batch.count)
            for (index, expected) in bad.enumerated() {
                let result = results[2 * index]
                #expect(result["status"] as? Int == 400, "\(expected)")
                #expect(result["type"] as? String == "urn:coaty-gateway:problem:invalid-value", "\(expected)")
                #expect(result["title"] as? String != nil && result["detail"] as? String != nil, "\(expected)")
                #expect(result["pointer"] as? String == expected.pointer, "\(expected)")
                #expect(results[2 * index + 1]["status"] as? Int == 202, "\(expected)")
            }
        }
        try waitUntil("all good ones arrive") {
            scene.agent.messages.filter { $0.topic.contains("/DAD/") }.count == 2 * bad.count
        }
    }

    @Test func acceptsNewlineDelimitedPublications() throws {
        let scene = try Scene()
        let good = #"{"event":"deadvertise","data":{"objectIds":["x"]}}"#
        let results = try results(postLines(scene, "\n\(good)\r\n \t\r\n{\"event\":\n\(good) x\n\n\(good)"))
        #expect(results.map { $0["status"] as? Int } == [202, 400, 400, 202])
        #expect(results[1]["type"] as? String == "urn:coaty-gateway:problem:malformed-json")
        #expect(try postLines(scene, "").text == #"{"results":[]}"#)
        #expect(try scene.gateway.post("/v1/batch", "[]").text == #"{"results":[]}"#)
    }

    @Test func refusesInvalidBatches() throws {
        let scene = try Scene()
        let malformed = try scene.gateway.post("/v1/batch", #"[{"event":"deadvertise","data":{"objectIds":["x"]}},]"#)
        #expect(malformed.status == 400 && malformed.problem == "malformed-json")
        let object = try scene.gateway.post("/v1/batch", "{}")
        #expect(object.status == 400 && object.problem == "invalid-value" && object.json?["pointer"] as? String == "")
        let text = try scene.gateway.request("POST", "/v1/batch", headers: [("Content-Type", "text/plain")], body: "[]")
        #expect(text.status == 415 && text.problem == "unsupported-media-type")
    }

    @Test func numberOfPublicationsIsBounded() throws {
        let scene = try Scene()
        let most = Array(repeating: "1", count: 10_000)
        #expect(try results(scene.gateway.post("/v1/batch", "[\(most.joined(separator: ","))]")).count == 10_000)
        for response in [
            try scene.gateway.post("/v1/batch", "[\((most + ["1"]).joined(separator: ","))]"),
            try postLines(scene, (most + ["1"]).joined(separator: "\n")),
        ] {
            #expect(response.status == 413 && response.problem == "content-too-large")
        }
    }

    @Test func reportsDeferredAndRefusedPublications() throws {
        let port = try FreePort.tcp()
        let gateway = try GatewayProcess([
            "--broker", "mqtt://127.0.0.1:\(port)", "--limit", "maximum-outbox-publications=4",
        ])
        let good = #"{"event":"deadvertise","data":{"objectIds":["x"]}}"#
        let results = try results(gateway.post("/v1/batch", "[\(good),\(good),\(good)]"))
        #expect(results.map { $0["status"] as? Int } == [202, 202, 429])
        #expect(results[0]["deferred"] as? Bool == true)
        #expect(results[2]["type"] as? String == "urn:coaty-gateway:problem:queue-full")
    }
}
