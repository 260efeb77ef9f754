import Foundation
import TestSupport
import Testing
@testable import Base

/// Query, Update and Call events that the test answers.
@Suite(.exclusive) struct TwoWayTests {
    private func responses(_ response: RawConnection.Response) throws -> [[String: Any]] {
        try #require(response.json?["responses"] as? [[String: Any]], "\(response.text)")
    }

    private func data(_ response: RawConnection.Response) throws -> [[String: Any]] {
        try responses(response).map { try #require($0["data"] as? [String: Any]) }
    }

    @Test func queriesWithFiltersByNameAndJoins() throws {
        let scene = try Scene()
        let joins = #"{"localProperty":"assigneeObjectId","asProperty":"assignee","isOneToOneRelation":true}"#
        let body = { (less: String, like: String) in
            #"{"objectTypes":["com.example.Job"], "objectFilter":{"conditions":{"and":[["status",[\#(less),3]],"#
                + #"[["a","b.c"],[\#(like),"x%"]]]},"take":2},"objectJoinConditions":\#(joins)}"#
        }
        let question = try Question(
            scene,
            "/v1/query?limit=2&timeout=20000",
            body(#""LessThan""#, #""Like""#),
            topic: "/QRY/"
        )
        #expect(question.request.text == body("0", "6"))
        let found = #"{"objects":[\#(Scene.job("a"))],"privateData":{"n":1.50}}"#
        try question.answer("RTV", from: "agent-1", found)
        try question.answer(
            "RTV",
            from: "misfit",
            #"{"objects":[\#(Scene.job("b", objectType: "com.example.Other"))]}"#
        )
        try question.answer("RTV", from: "agent-1", #"{"objects":[]}"#)
        let response = try question.client.readResponse()
        #expect(response.status == 200 && response.headers["content-type"] == "application/json")
        #expect(response.json?["reason"] as? String == "limit")
        #expect(response.text.contains(#""data":\#(found)}"#), "the bytes are unchanged")
        #expect(try responses(response).map { $0["sourceId"] as? String } == ["agent-1", "agent-1"])
        let times = try responses(response).map { try #require($0["ms"] as? Int) }
        #expect(times[0] >= 0 && times[0] <= times[1])
    }

    @Test func updatesAnObjectOfACustomType() throws {
        let scene = try Scene()
        let job = Scene.job("a")
        let question = try Question(scene, "/v1/update?timeout=20000", #"{"object":\#(job)}"#, topic: "/UPD:Task/")
        let published = scene.agent.messages.filter { $0.topic.contains("/UPD:") }
        #expect(published.count == 2 && published[0].topic.contains("/UPD::com.example.Job/"))
        #expect(published.allSatisfy { $0.text == #"{"object":\#(job)}"# })
        let answer = #"{"object":\#(job),"privateData":{"litres":12.5}}"#
        try question.answer("CPL", from: "agent-1", answer)
        let response = try question.client.readResponse()
        #expect(response.text.contains(#"{"responses":[{"sourceId":"agent-1","ms":"#))
        #expect(response.text.hasSuffix(#","data":\#(answer)}],"reason":"limit"}"#))
    }

    @Test func callsAnOperation() throws {
        let scene = try Scene()
        let body = { (equals: String) in
            #"{"parameters":{"on":true},"filter":{"conditions":["floor",[\#(equals),6]]}}"#
        }
        let question = try Question(
            scene,
            "/v1/call/com.example.light%20on?limit=2&timeout=20000",
            body(#""Equals""#),
            topic: "/CLL:com.example.light on/"
        )
        #expect(question.request.text == body("7"))
        try question.answer("RTN", from: "lamp-1", #"{"result":null,"executionInfo":{"lightId":"l"}}"#)
        try question.answer("RTN", from: "lamp-2", #"{"error":{"code":-32602,"message":"Invalid params"}}"#)
        let response = try question.client.readResponse()
        #expect(response.status == 200)
        let data = try data(response)
        #expect(data[0]["result"] is NSNull)
        #expect((data[0]["executionInfo"] as? [String: Any])?["lightId"] as? String == "l")
        #expect((data[1]["error"] as? [String: Any])?["code"] as? Int == -32602)

        let plain = try Question(scene, "/v1/call/op?timeout=20000", "{}", topic: "/CLL:op/")
        #expect(plain.request.text == "{}")
        try plain.answer("RTN", from: "lamp-1", #"{"result":1}"#)
        #expect(try plain.client.readResponse().status == 200)
    }

    @Test func missingAnswersAreReported() throws {
        let scene = try Scene()
        let job = #"{"object":\#(Scene.job("a"))}"#
        let types = #"{"coreTypes":["Task"]}"#
        for (target, body) in [("update", job), ("call/op", "{}"), ("discover", types), ("query", types)] {
            let empty = try scene.gateway.post("/v1/\(target)?timeout=50", body)
            #expect(empty.status == 200 && empty.text == #"{"responses":[],"reason":"timeout"}"#, "\(target)")
            let few = try scene.gateway.post("/v1/\(target)?timeout=50&min=1", body)
            #expect(few.status == 504 && few.problem == "no-answer" && few.text.contains("0 responses"), "\(target)")
        }
    }

    @Test func fewerAnswersThanTheMinimumAreAProblem() throws {
        let scene = try Scene()
        for (minimum, status) in [(1, 200), (2, 504)] {
            let path = "/v1/call/op\(minimum)?limit=0&timeout=1500&min=\(minimum)"
            let question = try Question(scene, path, "{}", topic: "/CLL:op\(minimum)/")
            try question.answer("RTN", from: "a", #"{"result":1}"#)
            #expect(try question.client.readResponse().status == status)
        }
        for (query, reason) in [
            ("min=3", "must not exceed limit"), ("min=-1", "whole number"), ("min=x", "whole number"),
        ] {
            let refused = try scene.gateway.post("/v1/discover?\(query)", #"{"coreTypes":["Task"]}"#)
            #expect(refused.status == 400 && refused.text.contains(reason), "\(refused.text)")
        }
        let stream = try scene.gateway.request(
            "POST",
            "/v1/discover?min=1",
            headers: [("Content-Type", "application/json"), ("Accept", "application/x-ndjson")],
            body: #"{"coreTypes":["Task"]}"#
        )
        #expect(stream.status == 400 && stream.text.contains("NDJSON"))
    }

    @Test func timeoutReturnsEarlierAnswers() throws {
        let scene = try Scene()
        let question = try Question(scene, "/v1/call/op?limit=0&timeout=1500", "{}", topic: "/CLL:op/")
        try question.answer("RTN", from: "a", #"{"result":1}"#)
        let response = try question.client.readResponse()
        #expect(response.json?["reason"] as? String == "timeout")
        #expect(try responses(response).count == 1)
    }

    @Test(arguments: [
        ("discover", "/DSC/", "RSV", #"{"object":OBJECT}"#),
        ("discover", "/DSC/", "RSV", #"{"relatedObjects":[OTHER,OBJECT]}"#),
        ("query", "/QRY/", "RTV", #"{"objects":[OTHER,OBJECT]}"#),
        ("update", "/UPD:Task/", "CPL", #"{"object":OBJECT}"#),
    ])
    func endsWithTheAwaitedObject(_ event: String, topic: String, answer: String, payload: String) throws {
        let scene = try Scene()
        let asked = Scene.job("other")
        let awaited = asked.replacing(#""name":"other""#, with: #""name":"awaited""#)
        let until = "%7B%22and%22:[[%22name%22,[%22Equals%22,%22awaited%22]]]%7D"
        let body =
            event == "update" ? #"{"object":\#(asked)}"# : #"{"objectTypes":["com.example.Job"]}"#
        let question = try Question(scene, "/v1/\(event)?limit=0&timeout=20000&until=\(until)", body, topic: topic)
        for (agent, object) in [("a", asked), ("b", awaited)] {
            try question.answer(
                answer,
                from: agent,
                payload.replacing("OBJECT", with: object).replacing("OTHER", with: asked)
            )
        }
        let response = try question.client.readResponse()
        #expect(response.json?["reason"] as? String == "until")
        #expect(try responses(response).count == 2)
    }

    @Test func endsWithTheAwaitedReturn() throws {
        let scene = try Scene()
        let until = "[%22executionInfo.progress%22,[3,100]]"
        let question = try Question(scene, "/v1/call/op?limit=0&timeout=20000&until=\(until)", "{}", topic: "/CLL:op/")
        for progress in [10, 50, 100, 100] {
            try question.answer("RTN", from: "a", #"{"result":0,"executionInfo":{"progress":\#(progress)}}"#)
        }
        let response = try question.client.readResponse()
        #expect(response.json?["reason"] as? String == "until")
        #expect(try responses(response).count == 3)
    }

    @Test func answerWithGatewayIdentityCounts() throws {
        let scene = try Scene()
        let info = try scene.gateway.request("GET", "/v1/info").json
        let own = try #require((info?["identity"] as? [String: Any])?["objectId"] as? String)
        let body = #"{"coreTypes":["Task"]}"#
        let question = try Question(scene, "/v1/discover?timeout=20000", body, topic: "/DSC/")
        try question.answer("RSV", from: own, #"{"object":\#(Scene.job("a"))}"#)
        #expect(try question.client.readResponse().json?["reason"] as? String == "limit")
    }

    @Test func brokerLossIsReported() throws {
        let scene = try Scene()
        let none = try Question(scene, "/v1/query?timeout=30000", #"{"coreTypes":["Task"]}"#, topic: "/QRY/")
        let one = try Question(scene, "/v1/call/op?limit=0&timeout=30000", "{}", topic: "/CLL:op/")
        try one.answer("RTN", from: "a", #"{"result":1}"#)
        // This question is answered after the other one on the same connection.
        let behind = try Question(scene, "/v1/call/op2?timeout=30000", "{}", topic: "/CLL:op2/")
        try behind.answer("RTN", from: "a", #"{"result":1}"#)
        #expect(try behind.client.readResponse().status == 200)
        scene.broker.kill()
        let nothing = try none.client.readResponse()
        #expect(nothing.status == 503 && nothing.problem == "broker-unavailable")
        let some = try one.client.readResponse()
        #expect(some.status == 200 && some.json?["reason"] as? String == "offline")
        #expect(try responses(some).count == 1)
    }

    @Test func refusesBadParameters() throws {
        let scene = try Scene()
        for (query, name) in [
            ("until=%7B", "until"), ("until=", "until"), ("until=%7B%22and%22:[[1]]%7D", "until"),
            ("until=[%22a%22,[%22Nearly%22,1]]", "until"), ("until=[%22a%22,[7,1e999]]", "until"),
            ("until=[%22a%22,[7,1]]&until=[%22a%22,[7,1]]", "until"), ("limit=-1", "limit"), ("timeout=0", "timeout"),
        ] {
            let response = try scene.gateway.post("/v1/call/op?\(query)", "{}")
            #expect(response.status == 400 && response.problem == "invalid-parameter", "\(query)")
            #expect(response.json?["parameter"] as? String == name, "\(query)")
        }
        for operation in ["a%2Fb", "%23", "a%2B"] {
            let response = try scene.gateway.post("/v1/call/\(operation)", "{}")
            #expect(response.status == 400 && response.json?["parameter"] as? String == "operation", "\(operation)")
        }
    }

    @Test(arguments: [
        ("query", "", "malformed-json", nil),
        ("query", "{}", "invalid-value", ""),
        ("query", #"{"coreTypes":["Task"],"objectTypes":["t"]}"#, "invalid-value", "/coreTypes"),
        (
            "query", #"{"coreTypes":["Task"],"objectFilter":{"conditions":["a",["Nearly",1]]}}"#, "invalid-value",
            "/objectFilter/conditions/1/0"
        ),
        ("update", #"{"object":{"coreType":"Task"}}"#, "invalid-value", "/object/objectType"),
        ("call/op", "", "malformed-json", nil),
        ("call/op", #"{"parameters":1}"#, "invalid-value", "/parameters"),
        ("call/op", #"{"filter":{"conditions":{"not":["a",[7,1]]}}}"#, "invalid-value", "/filter/conditions/not"),
    ])
    func refusesBadBodies(_ target: String, body: String, problem: String, pointer: String?) throws {
        let scene = try Scene()
        for accept in ["*/*", "application/x-ndjson"] {
            let response = try scene.gateway.request(
                "POST",
                "/v1/\(target)",
                headers: [("Content-Type", "application/json"), ("Accept", accept)],
                body: body
            )
            #expect(response.status == 400 && response.problem == problem, "\(response.text)")
            #expect(response.json?["pointer"] as? String == pointer, "\(response.text)")
        }
        #expect(try scene.gateway.request("POST", "/v1/\(target)", body: body).status == 415)
    }
}
