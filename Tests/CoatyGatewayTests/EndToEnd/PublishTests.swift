import Foundation
import TestSupport
import Testing
@testable import Base

@Suite(.exclusive) struct PublishTests {
    @Test func publishesUnchangedBytes() throws {
        let scene = try Scene()
        let body = """
            {  "object": \(Scene.job("Grüße \\u00e4 \\/")), "privateData":{"digits":1.000000000000000000001, "free":[1]} }
            """
        let response = try scene.gateway.post("/v1/advertise", body)
        #expect(response.status == 202)
        #expect(response.text == #"{"deferred":false}"#)
        let first = try scene.agent.waitFor { $0.topic.contains("/ADV:Task/") }
        let second = try scene.agent.waitFor { $0.topic.contains("/ADV::com.example.Job/") }
        #expect(first.text == body)
        #expect(second.text == body)
        #expect(!first.retain)

        #expect(try scene.gateway.post("/v1/deadvertise", #"{"objectIds":["a","b"]}"#).status == 202)
        #expect(try scene.agent.waitFor { $0.topic.contains("/DAD/") }.text == #"{"objectIds":["a","b"]}"#)

        let channel = #"{"objects":[\#(Scene.job("one"))]}"#
        #expect(try scene.gateway.post("/v1/channel/com.example%20chan%C3%A4", channel).status == 202)
        #expect(try scene.agent.waitFor { $0.topic.contains("/CHN:com.example chanä/") }.text == channel)
    }

    @Test func badInputIsRefusedWithPointer() throws {
        let scene = try Scene()
        let gateway = scene.gateway
        func pointer(_ path: String, _ body: String) throws -> String? {
            let response = try gateway.post(path, body)
            #expect(response.status == 400 && response.problem == "invalid-value", "\(body) \(response.text)")
            return response.json?["pointer"] as? String
        }
        #expect(try pointer("/v1/advertise", "{}") == "/object")
        #expect(try pointer("/v1/advertise", "[]") == "")
        #expect(try pointer("/v1/advertise", #"{"object":{"coreType":"Foo"}}"#) == "/object/coreType")
        #expect(try pointer("/v1/advertise", #"{"object":{"coreType":"Task","objectType":"t"}}"#) == "/object/objectId")
        #expect(
            try pointer("/v1/advertise", #"{"object":\#(Scene.job("n", objectType: "a/b"))}"#) == "/object/objectType"
        )
        #expect(
            try pointer("/v1/advertise", #"{"object":\#(Scene.job("n", objectType: "a\\u0001"))}"#)
                == "/object/objectType"
        )
        #expect(try pointer("/v1/advertise", #"{"object":\#(Scene.job("n")),"privateData":null}"#) == "/privateData")
        #expect(try pointer("/v1/deadvertise", #"{"objectIds":["a",""]}"#) == "/objectIds/1")
        #expect(try pointer("/v1/channel/c", "{}") == "/object")
        #expect(try pointer("/v1/discover", #"{"coreTypes":["Task","Tsk"]}"#) == "/coreTypes/1")

        let long = String(repeating: "x", count: 70_000)
        #expect(
            try pointer("/v1/advertise", #"{"object":\#(Scene.job("n", objectType: long))}"#) == "/object/objectType"
        )

        for malformed in ["", "{", "{\"object\":}", "\u{FEFF}", "\u{FEFF}\u{FEFF}{}", "nul"] {
            let response = try gateway.post("/v1/advertise", malformed)
            #expect(response.status == 400 && response.problem == "malformed-json", "\(malformed)")
            #expect(response.json?["detail"] as? String != nil)
        }
        let connection = try RawConnection(port: gateway.port)
        try connection.send(
            Array(
                "POST /v1/advertise HTTP/1.1\r\nHost: l\r\nContent-Type: application/json\r\nContent-Length: 3\r\n\r\n"
                    .utf8
            )
                + [0x22, 0xFF, 0x22]
        )
        #expect(try connection.readResponse().problem == "malformed-json")

        let deep = String(repeating: "[", count: 100_000)
        #expect(try gateway.post("/v1/advertise", deep).problem == "malformed-json")

        #expect(try gateway.request("POST", "/v1/advertise", body: "{}").problem == "unsupported-media-type")
        let text = [("Content-Type", "text/plain")]
        #expect(try gateway.request("POST", "/v1/discover", headers: text, body: "{}").status == 415)
        let charset = [("Content-Type", "Application/JSON; charset=utf-8")]
        #expect(
            try gateway.request("POST", "/v1/deadvertise", headers: charset, body: #"{"objectIds":[]}"#).status == 202
        )

        #expect(try gateway.request("GET", "/nothing").problem == "not-found")
        let wrong = try gateway.request("GET", "/v1/advertise")
        #expect(wrong.problem == "method-not-allowed" && wrong.status == 405)
        #expect(wrong.headers["allow"]?.contains("POST") == true)
        #expect(
            try gateway.request("POST", "/v1/channel/a%2Fb", headers: charset, body: "{}").problem
                == "invalid-parameter"
        )
        #expect(try gateway.request("POST", "/v1/channel/a%00b", headers: charset, body: "{}").problem == "bad-request")
        #expect(try gateway.request("POST", "/v1/channel/a%ZZ", headers: charset, body: "{}").problem == "bad-request")

        let large = try gateway.post("/v1/advertise", String(repeating: " ", count: (1 << 20) + 1))
        #expect(large.status == 413 && large.problem == "content-too-large")
        let header = [("X-Large", String(repeating: "x", count: 12_000))]
        let tooLarge = try gateway.request("GET", "/healthz", headers: header)
        #expect(tooLarge.status == 431 && tooLarge.problem == "header-fields-too-large")
        // No refused event was published, and the next one is.
        #expect(try gateway.post("/v1/advertise", #"{"object":\#(Scene.job("last"))}"#).status == 202)
        _ = try scene.agent.waitFor { $0.text.contains("last") }
        #expect(scene.agent.messages.filter { $0.topic.contains("/ADV:Task/") }.count == 1)
    }

    @Test func servesHealthInfoAndContract() throws {
        let scene = try Scene(["--namespace", "com.example", "--name", "Gate \"1\""])
        let gateway = scene.gateway
        #expect(try gateway.request("GET", "/healthz").text == #"{"status":"ok"}"#)
        #expect(try gateway.request("GET", "/readyz").text == #"{"status":"ready"}"#)
        let info = try #require(try gateway.request("GET", "/v1/info").json)
        #expect(info["namespace"] as? String == "com.example")
        #expect((info["identity"] as? [String: Any])?["name"] as? String == "Gate \"1\"")
        let link = try #require(info["broker"] as? [String: Any])
        #expect(link["state"] as? String == "online")
        #expect(link["embedded"] as? Bool == false)
        #expect(link["address"] as? String == "mqtt://127.0.0.1:\(scene.broker.port)")
        let contract = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../../openapi.yaml")
        #expect(try gateway.request("GET", "/openapi.yaml").text == String(contentsOf: contract, encoding: .utf8))
        #expect(try gateway.request("HEAD", "/healthz").status == 200)
        let identity = try scene.agent.waitFor { $0.topic.hasPrefix("coaty/3/com.example/ADV:Identity/") }
        #expect(identity.text.contains(#"Gate \"1\""#))
    }
}
