import Foundation
import TestSupport
import Testing

/// Tokens of clients on each transport.
@Suite(.exclusive, .frameChecks) struct TokenTests {
    private static let roles = [
        "viewer": ["{observe: [channel], channels: [\"*\"]}", "{read: [info, status]}"],
        "public": ["{observe: [channel], channels: [\"public\"]}"],
    ]
    private static let channel = #""event":"channel","channelId":"c""#
    private static let page = "https://app.example.com"

    private static func file(anonymous: [String] = []) -> AccessFile {
        AccessFile(
            tokens: [
                .init("ann", "viewer"), .init("bob", "viewer"),
                .init("cid", "viewer", secrets: ["first-secret-of-cid", "second-secret-of-cid"]),
            ],
            anonymous: anonymous,
            roles: roles
        )
    }

    private static func authenticate(_ secret: String) -> String { #""token":"\#(secret)""# }

    private func publish(_ scene: AccessScene, _ name: String, to channel: String = "c") throws {
        try scene.publish("CHN:\(channel)", #"{"object":\#(AccessScene.lamp(name, site: nil))}"#)
    }

    @Test func bearerTokensAreAcceptedOnEveryTransport() throws {
        let scene = try AccessScene(Self.file())
        let gateway = scene.gateway
        func statuses(_ authorization: String?) throws -> [Int] {
            let headers = authorization.map { [("Authorization", $0)] } ?? []
            let socket = try WebSocketClient(port: gateway.port)
            return [
                try gateway.request("GET", "/v1/info", headers: headers).status,
                try EventStreamClient(port: gateway.port, path: "/v1/sse/channel?channelId=c", headers: headers).head
                    .status,
                try socket.shakeHands(path: "/v1/ws/channel?channelId=c", headers: headers).status,
            ]
        }
        let secret = AccessFile.secret(of: "ann")
        for authorization in ["Bearer \(secret)", "bearer \(secret)", "BEARER   \(secret)"] {
            #expect(try statuses(authorization) == [200, 200, 101], "\(authorization)")
        }
        for secret in ["first-secret-of-cid", "second-secret-of-cid"] {
            #expect(try statuses("Bearer \(secret)") == [200, 200, 101])
        }
        #expect(try statuses(nil) == [401, 401, 401])
        #expect(try statuses("Bearer \(secret)x") == [401, 401, 401])
        for authorization in ["Basic \(secret)", "Bearer", secret, "Bearer \(secret) \(secret)"] {
            let headers = [("Authorization", authorization)]
            #expect(try gateway.request("GET", "/v1/info", headers: headers).status == 401, "\(authorization)")
        }
        let client = try scene.socket(as: "ann")
        try client.subscribe("s", Self.channel)
        let wrong = try WebSocketClient(port: gateway.port)
        #expect(try wrong.shakeHands(path: "/v1/ws", headers: [("Authorization", "Bearer x")]).status == 401)
    }

    @Test func eachRequestOfAConnectionHasItsOwnPrincipal() throws {
        let scene = try AccessScene(Self.file())
        let connection = try RawConnection(port: scene.gateway.port)
        func name(_ authorization: String?) throws -> String? {
            let field = authorization.map { "Authorization: \($0)\r\n" } ?? ""
            try connection.send("GET /v1/access HTTP/1.1\r\nHost: localhost\r\n\(field)\r\n")
            let response = try connection.readResponse()
            return response.status == 200 ? response.json?["name"] as? String : "\(response.status)"
        }
        let (ann, bob) = ("Bearer " + AccessFile.secret(of: "ann"), "Bearer " + AccessFile.secret(of: "bob"))
        #expect(try name(ann) == "ann")
        #expect(try name(ann) == "ann")
        #expect(try name(bob) == "bob")
        #expect(try name(nil) == "401")
        #expect(try name(bob) == "bob")
        #expect(try name(String(bob.dropLast()) + "8") == "401")
        #expect(try name(String(bob.dropLast())) == "401")
        #expect(try name(bob) == "bob")
        var file = Self.file()
        file.tokens.removeAll { $0.name == "bob" }
        try scene.reload(file)
        #expect(try name(bob) == "401")
        #expect(try name(ann) == "ann")
    }

    @Test func theFirstFrameAuthenticates() throws {
        let scene = try AccessScene(Self.file())
        let client = try scene.gateway.frameClient()
        for (op, members) in [
            ("subscribe", Self.channel), ("publish", #""event":"deadvertise","data":{"objectIds":["x"]}"#),
            ("request", #""event":"call","operation":"o","data":{}"#),
            ("respond", #""event":"return","correlationId":"c","data":{"result":1}"#), ("identify", #""name":"n""#),
        ] {
            let answer = try client.ask(op, members)
            #expect(answer.op == "error" && answer.json["status"] as? Int == 401, "\(answer)")
            #expect(answer["type"] == "urn:coaty-gateway:problem:unauthorized")
            #expect(answer["detail"]?.contains(#""op":"authenticate""#) == true, "what a page can do")
        }
        #expect(try client.ask("authenticate", Self.authenticate(AccessFile.secret(of: "ann"))).op == "ok")
        try client.subscribe("s", Self.channel)
        try publish(scene, "one")
        #expect(try client.next(of: "s").objectName == "one")
        #expect(!scene.agent.messages.contains { $0.topic.contains("/DAD/") || $0.topic.contains("/CLL:") })
    }

    @Test func aWrongFirstTokenEndsTheConnection() throws {
        let scene = try AccessScene(Self.file())
        let client = try scene.gateway.frameClient()
        let answer = try client.ask("authenticate", Self.authenticate("wrong"))
        #expect(answer.op == "error" && answer.json["status"] as? Int == 401)
        #expect(try client.closeCode() == 4502)
        // A malformed frame does not close the connection.
        let malformed = try scene.gateway.frameClient()
        #expect(try malformed.ask("authenticate")["pointer"] == "/token")
        #expect(try malformed.ask("authenticate", Self.authenticate(AccessFile.secret(of: "ann"))).op == "ok")
    }

    @Test func aTokenIsRenewedInBand() throws {
        let scene = try AccessScene(Self.file())
        let client = try scene.gateway.frameClient()
        #expect(try client.ask("authenticate", Self.authenticate("first-secret-of-cid")).op == "ok")
        try client.subscribe("s", Self.channel)
        #expect(try client.ask("authenticate", Self.authenticate("second-secret-of-cid")).op == "ok")
        let other = try client.ask("authenticate", Self.authenticate(AccessFile.secret(of: "ann")))
        #expect(other.json["status"] as? Int == 403 && other["detail"]?.contains("another subject") ?? false)
        #expect(try client.ask("authenticate", Self.authenticate("wrong")).json["status"] as? Int == 401)
        // The refused frames do not affect the subscription.
        try publish(scene, "one")
        #expect(try client.next(of: "s").objectName == "one")
        // A connection that authenticated in its handshake may renew its token, too.
        let known = try scene.socket(as: "ann")
        #expect(try known.ask("authenticate", Self.authenticate(AccessFile.secret(of: "ann"))).op == "ok")
        #expect(
            try known.ask("authenticate", Self.authenticate(AccessFile.secret(of: "bob"))).json["status"] as? Int == 403
        )
    }

    @Test func anAnonymousConnectionMayAuthenticateOnce() throws {
        let scene = try AccessScene(Self.file(anonymous: ["public"]))
        let client = try scene.gateway.frameClient()
        try client.subscribe("p", #""event":"channel","channelId":"public""#)
        #expect(try client.ask("subscribe", id: "s", Self.channel).json["status"] as? Int == 403)
        #expect(try client.ask("authenticate", Self.authenticate(AccessFile.secret(of: "ann"))).op == "ok")
        try client.subscribe("s", Self.channel)
        try publish(scene, "one", to: "public")
        #expect(try client.next(of: "p").objectName == "one")
        let answer = try client.ask("authenticate", Self.authenticate(AccessFile.secret(of: "bob")))
        #expect(answer.json["status"] as? Int == 403)
        // A client with an invalid token is not anonymous.
        let wrong = [("Authorization", "Bearer wrong")]
        #expect(try scene.gateway.request("GET", "/v1/access", headers: wrong).status == 401)
        #expect(try scene.get("/v1/access", as: nil).status == 200)
    }

    // MARK: - Tickets

    private func ticket(_ scene: AccessScene, _ origin: String? = nil) throws -> String {
        let headers = AccessScene.headers("ann") + (origin.map { [("Origin", $0)] } ?? [])
        let answer = try scene.gateway.post("/v1/tickets", "{}", headers: headers)
        #expect(answer.status == 200 && answer.json?["validFor"] as? Int == 30_000)
        return try #require(answer.json?["ticket"] as? String)
    }

    private func events(_ scene: AccessScene, _ ticket: String, _ headers: [(String, String)] = []) throws -> Int {
        let path = "/v1/sse/channel?channelId=c&ticket=\(ticket)"
        return try EventStreamClient(port: scene.gateway.port, path: path, headers: headers).head.status
    }

    @Test func aTicketOpensOneStream() throws {
        let scene = try AccessScene(Self.file())
        #expect(try scene.post("/v1/tickets", "{}", as: nil).status == 401)
        let first = try ticket(scene)
        #expect(try events(scene, first) == 200)
        #expect(try events(scene, first) == 401)
        for path in ["/v1/ws/channel?channelId=c&", "/v1/ws?"] {
            let ticket = try ticket(scene)
            let target = path + "ticket=\(ticket)"
            #expect(try WebSocketClient(port: scene.gateway.port).shakeHands(path: target).status == 101, "\(path)")
            #expect(try WebSocketClient(port: scene.gateway.port).shakeHands(path: target).status == 401, "\(path)")
        }
        // A ticket replaces the token, so the connection need not authenticate.
        let client = try scene.gateway.frameClient("?ticket=\(try ticket(scene))")
        try client.subscribe("s", Self.channel)
        #expect(try events(scene, "made-up") == 401)
    }

    /// A ticket may end up in a log as a part of a URL, so it can only open streams.
    @Test func aTicketOpensNothingElse() throws {
        let scene = try AccessScene(Self.file())
        for (method, path) in [("GET", "/v1/info"), ("POST", "/v1/tickets"), ("POST", "/v1/deadvertise")] {
            let ticket = try ticket(scene)
            let answer = try scene.gateway.request(
                method,
                "\(path)?ticket=\(ticket)",
                headers: [("Content-Type", "application/json")],
                body: method == "POST" ? #"{"objectIds":["x"]}"# : nil
            )
            #expect(answer.status == 401, "\(path)")
            #expect(try events(scene, ticket) == 200, "\(path) did not use it up")
        }
    }

    @Test func aTicketIsBoundToTheOriginOfItsPage() throws {
        let scene = try AccessScene(Self.file(), ["--allowed-origins", "\(Self.page), https://other.example.com"])
        let own = "http://localhost"
        let origins: [String?] = [nil, own, Self.page, "https://other.example.com"]
        for issued in origins {
            for used in origins {
                let isSame = issued == used || [issued, used].allSatisfy { $0 == nil || $0 == own }
                let status = try events(scene, try ticket(scene, issued), used.map { [("Origin", $0)] } ?? [])
                // Failed attempts are throttled. Ann has authenticated before, but a ticket for another origin does not
                // identify her.
                #expect(isSame ? status == 200 : [401, 429].contains(status), "\(issued ?? "-") \(used ?? "-")")
            }
        }
    }

    // MARK: - Throttling and secrecy

    /// The page can read the refusal, so it must not depend on a token, and must not cost others anything.
    @Test func pagesOfOtherOriginsAreRefusedBeforeAuthentication() throws {
        let scene = try AccessScene(Self.file())
        func refused(_ token: String?, method: String = "GET", _ path: String = "/v1/info") throws {
            let authorization = token.map { [("Authorization", "Bearer \($0)")] } ?? []
            let answer = try scene.gateway.request(
                method,
                path,
                headers: [("Origin", "https://evil.example"), ("Content-Type", "application/json")] + authorization,
                body: method == "POST" ? "{" : nil
            )
            #expect(answer.status == 403 && answer.problem == "origin-not-allowed", "\(answer.text)")
            #expect(answer.headers["www-authenticate"] == nil)
        }
        for _ in 1...12 { try refused("wrong") }
        try refused(nil)
        try refused(AccessFile.secret(of: "ann"))
        try refused(AccessFile.secret(of: "ann"), method: "POST", "/v1/advertise")
        let first = try scene.gateway.request("GET", "/v1/info", headers: [("Authorization", "Bearer wrong")])
        #expect(first.status == 401, "no attempt of the page was counted")
    }

    @Test func failedAttemptsAreThrottledByAddress() throws {
        let scene = try AccessScene(Self.file())
        #expect(try scene.get("/v1/info", as: "ann").status == 200)
        let wrong = [("Authorization", "Bearer wrong")]
        for attempt in 1...10 {
            #expect(try scene.gateway.request("GET", "/v1/info", headers: wrong).status == 401, "\(attempt)")
        }
        let refused = try scene.gateway.request("GET", "/v1/info", headers: wrong)
        #expect(refused.status == 429 && refused.problem == "too-many-attempts")
        let seconds = try #require(refused.headers["retry-after"].flatMap { Int($0) })
        #expect((1...60).contains(seconds))
        // Valid tokens are accepted, because all clients behind a proxy share one address.
        #expect(try scene.get("/v1/info", as: "bob").status == 200)
        let client = try scene.gateway.frameClient()
        let answer = try client.ask("authenticate", Self.authenticate("wrong"))
        #expect(answer.json["status"] as? Int == 429)
        #expect(try client.closeCode() == 4502)
        // A client that has authenticated before is accepted on every transport; a client without credentials gets
        // status 401.
        #expect(try scene.get("/v1/info", as: "ann").status == 200)
        _ = try scene.events("channel?channelId=c", as: "ann")
        let known = try scene.gateway.frameClient()
        #expect(try known.ask("authenticate", Self.authenticate(AccessFile.secret(of: "ann"))).op == "ok")
        #expect(try scene.get("/v1/info", as: nil).status == 401)
        try scene.gateway.untilLogged("authentication failed")
        try waitUntil("the audit log names the address") {
            scene.audit.contains(#""event":"authentication-failed","principal":null,"address":"127.0.0.1""#)
        }
    }

    @Test func noSecretIsLogged() throws {
        let scene = try AccessScene(Self.file(), ["--log-level", "trace", "--request-log", "all"])
        let secret = AccessFile.secret(of: "ann")
        let wrong = "wrong-secret-of-somebody"
        let ticket = try ticket(scene)
        #expect(try events(scene, ticket) == 200)
        #expect(try events(scene, ticket) == 401)
        #expect(try scene.get("/v1/info", as: "ann").status == 200)
        #expect(try scene.get("/v1/info?token=\(secret)", as: nil).status == 401)
        #expect(
            try scene.gateway.request("GET", "/v1/info", headers: [("Authorization", "Bearer \(wrong)")]).status == 401
        )
        #expect(try scene.get("/v1/agents", as: "ann").status == 403)
        let client = try scene.gateway.frameClient()
        #expect(try client.ask("authenticate", Self.authenticate(secret)).op == "ok")
        #expect(try client.ask("identify", #""name":"n""#).json["status"] as? Int == 403)
        let other = try scene.gateway.frameClient()
        #expect(try other.ask("authenticate", Self.authenticate(wrong)).op == "error")
        let reason = try scene.reload(bad: Self.file().yaml.replacing("viewer:", with: "viewers:"))
        #expect(reason.contains("gateway.yaml"))
        try waitUntil("the denials are in the audit log") {
            scene.audit.contains("register identity") && scene.audit.contains("read agents")
        }
        try scene.gateway.stop()
        #expect(scene.audit.contains(#""principal":"ann""#))
        for text in [scene.gateway.log, scene.gateway.output, scene.audit] {
            for secret in [secret, wrong, ticket, "secret-of"] { #expect(!text.contains(secret), "\(text)") }
        }
    }
}
