import Foundation
import TestSupport
import Testing

/// WebSocket clients with an identity.
@Suite(.exclusive, .frameChecks) struct ClientIdentityTests {
    private func identify(_ client: FrameClient, _ name: String, resuming token: String? = nil) throws -> String {
        let resume = token.map { #","resume":"\#($0)""# } ?? ""
        let answer = try client.ask("identify", #""name":"\#(name)""# + resume)
        let identity = try #require(answer.json["identity"] as? [String: Any], "\(answer)")
        #expect(identity["name"] as? String == name && identity["coreType"] as? String == "Identity")
        return try #require(identity["objectId"] as? String)
    }

    @Test func clientEventsCarryTheClientIdentity() throws {
        let scene = try Scene()
        var client: FrameClient? = try scene.gateway.frameClient()
        let id = try identify(#require(client), "Kiosk")
        #expect(try id != scene.gateway.identityId())
        // The identity is advertised before the answer is sent.
        #expect(try scene.agent.waitFor { $0.topic == "coaty/3/-/ADV:Identity/\(id)" }.text.contains("Kiosk"))
        #expect(try client?.ask("identify", #""name":"Another""#).json["status"] as? Int == 409)

        #expect(try client?.ask("publish", #""event":"channel","channelId":"c","data":{"objects":[]}"#).op == "ok")
        _ = try scene.agent.waitFor { $0.topic == "coaty/3/-/CHN:c/\(id)" }
        let request = #""event":"discover","data":{"objectTypes":["com.example.None"]},"timeout":30000"#
        #expect(try client?.ask("request", id: "r", request).op == "ok")
        let asked = try scene.agent.waitFor { $0.topic.hasPrefix("coaty/3/-/DSC/\(id)/") }
        let correlationId = try #require(asked.topic.split(separator: "/").last)
        let answer = Scene.job("answer", objectType: "com.example.None")
        try scene.agent.publish("coaty/3/-/RSV/other/\(correlationId)", #"{"object":\#(answer)}"#)
        #expect(try client?.next(of: "r", "response")["sourceId"] == "other")

        try client?.subscribe("s", #""event":"call","operation":"com.example.open""#)
        let call = UUID().uuidString.lowercased()
        try scene.agent.publish("coaty/3/-/CLL:com.example.open/other/\(call)", "{}")
        #expect(try client?.next(of: "s")["correlationId"] == call)
        let response = #""event":"return","correlationId":"\#(call)","data":{"result":true}"#
        #expect(try client?.ask("respond", response).op == "ok")
        _ = try scene.agent.waitFor { $0.topic == "coaty/3/-/RTN/\(id)/\(call)" }

        client = nil
        let left = try scene.agent.waitFor { $0.topic == "coaty/3/-/DAD/\(id)" }
        #expect(left.text == #"{"objectIds":["\#(id)"]}"#)
    }

    @Test func clientResumesItsIdentity() throws {
        let scene = try Scene()
        var first: FrameClient? = try scene.gateway.frameClient()
        let given = try #require(first).ask("identify", #""name":"Kiosk""#)
        let id = try #require((given.json["identity"] as? [String: Any])?["objectId"] as? String)
        let token = try #require(given["resume"])
        first = nil
        _ = try scene.agent.waitFor { $0.topic == "coaty/3/-/DAD/\(id)" }
        let second = try scene.gateway.frameClient()
        #expect(try identify(second, "Kiosk at the door", resuming: token) == id)
        let resumed = try scene.agent.waitFor { $0.topic == "coaty/3/-/ADV:Identity/\(id)" && $0.text.contains("door") }
        #expect(resumed.topic.hasSuffix(id))

        // The connection that still has it is closed.
        let object = UUID().uuidString.lowercased()
        let advertisement =
            #""event":"advertise","lifetime":"connection","data":{"object":{"coreType":"CoatyObject","#
            + #""objectType":"com.example.Visitor","objectId":"\#(object)","name":"Ann"}}"#
        #expect(try second.ask("publish", advertisement).op == "ok")
        let third = try scene.gateway.frameClient()
        #expect(try identify(third, "Kiosk in the hall", resuming: token) == id)
        #expect(try second.closeCode() == 4506)
        let request = #""event":"channel","channelId":"c","data":{"objects":[]}"#
        #expect(try third.ask("publish", request).op == "ok")
        _ = try scene.agent.waitFor { $0.topic == "coaty/3/-/CHN:c/\(id)" }
        let topics = scene.agent.messages.map(\.topic).filter { $0.hasSuffix("/\(id)") }
        let events = ["DAD", "ADV:Identity", "CHN:c"].map { "coaty/3/-/\($0)/\(id)" }
        #expect(Array(topics.suffix(3)) == events)
        _ = try scene.agent.waitFor { $0.topic.contains("/DAD/") && $0.text.contains(object) }
    }

    @Test func unknownResumeTokensAreRefused() throws {
        let (first, second) = (try Scene(), try Scene())
        let client = try first.gateway.frameClient()
        let token = try #require(client.ask("identify", #""name":"Kiosk""#)["resume"])
        // Another gateway, outside of a cluster.
        let other = try second.gateway.frameClient()
        for unknown in [token, "", "a", String(repeating: "A", count: 100_000)] {
            let refused = try other.ask("identify", #""name":"Kiosk","resume":"\#(unknown)""#)
            #expect(refused.op == "error" && refused.json["status"] as? Int == 404, "\(refused)")
        }
        let invalid = try other.ask("identify", #""name":"Kiosk","resume":5"#)
        #expect(invalid.op == "error" && invalid.json["status"] as? Int == 400)
        #expect(try other.ask("identify", #""name":"Kiosk""#).op == "ok")
    }

    @Test(arguments: [SIGKILL, SIGTERM]) func identitiesAreDeadvertisedWithTheGateway(_ signal: Int32) throws {
        let scene = try Scene()
        let clients = try (0..<3).map { _ in try scene.gateway.frameClient() }
        let ids = try clients.map { try identify($0, "Mortal") }
        scene.gateway.signal(signal)
        for id in ids {
            let left = try scene.agent.waitFor { $0.topic == "coaty/3/-/DAD/\(id)" }
            #expect(left.text == #"{"objectIds":["\#(id)"]}"#)
        }
        #expect(try scene.gateway.waitForEnd() == (signal == SIGTERM ? 0 : -SIGKILL))
    }

    @Test func identifyIsRefusedWhileOffline() throws {
        let scene = try Scene(["--limit", "maximum-identities=1"])
        scene.broker.kill()
        let client = try scene.gateway.frameClient()
        let refused = try client.ask("identify", #""name":"Early""#)
        #expect(refused.op == "error" && refused.json["status"] as? Int == 503, "\(refused)")
        // The refused identity is not kept.
        try scene.broker.restart()
        try waitUntil("it has left") { try client.ask("identify", #""name":"Late""#).op == "ok" }
    }

    @Test func longNamesAreRefused() throws {
        let scene = try Scene()
        let client = try scene.gateway.frameClient()
        let long = String(repeating: "é", count: 129)
        let refused = try client.ask("identify", #""name":"\#(long)""#)
        #expect(refused.op == "error" && refused.json["status"] as? Int == 400, "\(refused)")
        #expect(try client.ask("identify", #""name":"\#(long.dropLast())""#).op == "ok")
    }

    @Test func numberOfIdentitiesIsLimited() throws {
        let scene = try Scene(["--limit", "maximum-identities=1"])
        var first: FrameClient? = try scene.gateway.frameClient()
        let id = try identify(#require(first), "First")
        let second = try scene.gateway.frameClient()
        let refused = try second.ask("identify", #""name":"Second""#)
        #expect(refused.op == "error" && refused.json["status"] as? Int == 429)
        #expect(refused["type"] == "urn:coaty-gateway:problem:too-many-identities")
        #expect(try second.ask("publish", #""event":"channel","channelId":"c","data":{"objects":[]}"#).op == "ok")
        let own = try scene.gateway.identityId()
        _ = try scene.agent.waitFor { $0.topic == "coaty/3/-/CHN:c/\(own)" }
        first = nil
        _ = try scene.agent.waitFor { $0.topic == "coaty/3/-/DAD/\(id)" }
        try waitUntil("there is room") { try second.ask("identify", #""name":"Second""#).op == "ok" }
    }
}
