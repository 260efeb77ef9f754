import Foundation
import TestSupport
import Testing

/// Expiry of a token of an identity provider: connections end within a second of the expiry plus 30 seconds of leeway.
@Suite(.exclusive, .frameChecks) struct TokenExpiryTests {
    private static let channel = #""event":"channel","channelId":"c""#
    private static let leeway = 30.0

    @Test func everyStreamEndsWithinASecond() throws {
        let provider = try IdentityProvider()
        let scene = try AccessScene(provider.file())
        try scene.untilKnown(try provider.token())
        let rest = 3.0
        let token = try provider.token(rest: rest - Self.leeway)
        let access = try scene.gateway.request("GET", "/v1/access", headers: AccessScene.bearer(token))
        let end = try #require(access.json?["expires"] as? Double) / 1000 + Self.leeway
        let gateway = scene.gateway
        let readers = EndingClient.Stream.allCases.map { stream in
            (
                stream,
                ReaderThread { opened in
                    let headers = AccessScene.bearer(token)
                    let client = EndingClient(gateway: gateway, headers: headers, token: token, channel: "c")
                    return try client.read(stream, opened: opened)
                }
            )
        }
        // A user whose token stays valid is not affected.
        let other = try scene.gateway.frameClient(headers: AccessScene.bearer(try provider.token("&sub=bob")))
        try other.subscribe("s", Self.channel)
        let kept = try RawConnection(port: gateway.port)
        #expect(try kept.request("GET", "/v1/access", headers: AccessScene.bearer(token)).status == 200)
        let tickets = try gateway.post("/v1/tickets", "{}", headers: AccessScene.bearer(token))
        let ticket = try #require(tickets.json?["ticket"] as? String)
        try waitUntil("all streams are open") { readers.allSatisfy(\.1.isOpen) }
        #expect(Date().timeIntervalSince1970 < end, "the machine is too slow for this test")
        try waitUntil("all streams end") { readers.allSatisfy { $0.1.end != nil } }
        for (stream, reader) in readers {
            let found = try #require(reader.end)
            #expect(found.text == stream.end(closeCode: 4002), "\(stream)")
            let late = found.date.timeIntervalSince1970 - end
            #expect((-0.01...1).contains(late), "\(stream) \(late)")
        }
        let answer = try kept.request("GET", "/v1/access", headers: AccessScene.bearer(token))
        #expect(answer.status == 401 && answer.problem == "token-expired")
        let path = "/v1/sse/channel?channelId=c&ticket=\(ticket)"
        #expect(try EventStreamClient(port: gateway.port, path: path).head.status == 401)
        try scene.publish("CHN:c", #"{"object":\#(AccessScene.lamp("one", site: nil))}"#)
        #expect(try other.next(of: "s").objectName == "one")
    }

    @Test func aConnectionIsRenewedWithoutAGap() throws {
        let provider = try IdentityProvider()
        let scene = try AccessScene(provider.file())
        try scene.untilKnown(try provider.token())
        let first = try provider.token(rest: 2.5 - Self.leeway)
        let socket = try scene.gateway.frameClient()
        let ok = try socket.ask("authenticate", #""token":"\#(first)""#)
        // The token itself has expired; the leeway compensates for clock differences.
        #expect(ok.op == "ok" && ok.json["validFor"] as? Int == 0)
        let end = try #require(ok.json["expires"] as? Double) / 1000 + Self.leeway
        try socket.subscribe("s", Self.channel)
        try scene.publish("CHN:c", #"{"object":\#(AccessScene.lamp("one", site: nil))}"#)
        #expect(try socket.next(of: "s").objectName == "one")
        // A token of another user is refused, and the connection keeps its token.
        let foreign = try provider.token("&sub=bob")
        #expect(try socket.ask("authenticate", #""token":"\#(foreign)""#).json["status"] as? Int == 403)
        let second = try provider.token()
        #expect(try socket.ask("authenticate", #""token":"\#(second)""#).op == "ok")
        try waitUntil("the first token has expired") { Date().timeIntervalSince1970 > end + 0.5 }
        try scene.publish("CHN:c", #"{"object":\#(AccessScene.lamp("two", site: nil))}"#)
        let next = try socket.next(of: "s")
        #expect(next.op == "event" && next.objectName == "two")
    }
}
