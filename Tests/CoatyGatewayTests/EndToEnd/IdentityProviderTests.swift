import Foundation
import TestSupport
import Testing

/// Tokens in the format of Keycloak and Auth0, and key rotation.
@Suite(.exclusive, .frameChecks) struct IdentityProviderTests {
    private static let channel = #""event":"channel","channelId":"c""#

    @Test(arguments: [("keycloak", "claims.realm_access.roles"), ("auth0", "roles")])
    func tokensOfAProviderAreAcceptedOnEveryTransport(shape: String, roles: String) throws {
        let provider = try IdentityProvider()
        var file = provider.file(roles: roles)
        if shape == "auth0" {
            file.jwt = file.jwt?.replacing("\"roles\"", with: "[\"https://coaty.example/roles\"]")
        }
        let scene = try AccessScene(file)
        let token = try provider.token(shape)
        try scene.untilKnown(token)
        let access = try #require(
            try scene.gateway.request("GET", "/v1/access", headers: AccessScene.bearer(token)).json
        )
        #expect(access["name"] as? String == "f:1:ann" && access["roles"] as? [String] == ["viewer"])
        let expires = try #require(access["expires"] as? Double) / 1000
        #expect((295...301).contains(expires - Date().timeIntervalSince1970))
        let attributes = try #require(access["attributes"] as? [String: Any])
        #expect(attributes[shape == "auth0" ? "https://coaty.example/site" : "site"] as? String == "hall-2")
        #expect(attributes["exp"] == nil && attributes["jti"] == nil && attributes["aud"] == nil)

        let socket = try scene.gateway.frameClient()
        let ok = try socket.ask("authenticate", #""token":"\#(token)""#)
        #expect(ok.op == "ok" && ok.json["expires"] as? Double == expires * 1000)
        #expect((1...300_000).contains(ok.json["validFor"] as? Int ?? 0))
        try socket.subscribe("s", Self.channel)
        let events = try scene.gateway.eventStream("channel?channelId=c", headers: AccessScene.bearer(token))
        let answer = try scene.gateway.post("/v1/tickets", "{}", headers: AccessScene.bearer(token))
        let ticket = try #require(answer.json?["ticket"] as? String)
        let single = try scene.gateway.frameClient("channel?channelId=c&ticket=\(ticket)")
        #expect(try single.next().op == "ok")
        try scene.publish("CHN:c", #"{"object":\#(AccessScene.lamp("one", site: nil))}"#)
        #expect(try socket.next(of: "s").objectName == "one")
        #expect(try single.next().objectName == "one")
        #expect(try events.next()?.objectName == "one")
        // No role of the token allows this.
        let denied = try scene.gateway.post(
            "/v1/deadvertise",
            #"{"objectIds":["x"]}"#,
            headers: AccessScene.bearer(token)
        )
        #expect(denied.status == 403)
        try waitUntil("the audit log names the issuer") {
            scene.audit.contains(#""principal":"f:1:ann","issuer":"\#(provider.issuer)""#)
        }
        #expect(!scene.audit.contains(token) && !scene.gateway.log.contains(token))
    }

    @Test func claimsAreAttributesInConditions() throws {
        let provider = try IdentityProvider()
        let scene = try AccessScene(provider.file())
        let token = try provider.token()
        try scene.untilKnown(token)
        let socket = try scene.gateway.frameClient(headers: AccessScene.bearer(token))
        try socket.subscribe("s", #""event":"advertise","objectType":"com.example.Lamp""#)
        for (name, site) in [("other", "hall-1"), ("own", "hall-2")] {
            try scene.advertise(AccessScene.lamp(name, site: site))
        }
        #expect(try socket.next(of: "s").objectName == "own")
    }

    @Test func badTokensAreRefused() throws {
        let provider = try IdentityProvider()
        let scene = try AccessScene(provider.file())
        let good = try provider.token()
        try scene.untilKnown(good)
        func answer(_ token: String) throws -> RawConnection.Response {
            try scene.gateway.request("GET", "/v1/access", headers: AccessScene.bearer(token))
        }
        let expired = try answer(try provider.token(rest: -31))
        #expect(expired.status == 401 && expired.problem == "token-expired")
        for (query, reason) in [
            ("&audience=other", "another audience"), ("&issuer=https://evil.example", "iss"), ("&sub=%0A", "sub"),
        ] {
            let refused = try answer(try provider.token(query))
            #expect(refused.status == 401 && refused.problem == "unauthorized")
            #expect(refused.json?["detail"].map { "\($0)".contains(reason) } == true, "\(refused.text)")
            #expect(refused.headers["www-authenticate"]?.hasPrefix(#"Bearer error="invalid_token""#) == true)
        }
        let forged = good.prefix { $0 != "." } + ".e30." + good.split(separator: ".")[2]
        // The provider might have a new key.
        #expect(try answer(String(forged)).problem == "keys-not-loaded")
        try waitUntil("the keys were fetched again") { try answer(String(forged)).status == 401 }
        #expect(try answer(good).status == 200)
    }

    // MARK: - Keys

    @Test func aRotatedKeyIsFetchedAndARetiredOneEndsItsStreams() throws {
        let provider = try IdentityProvider()
        let scene = try AccessScene(provider.file())
        let old = try provider.token()
        try scene.untilKnown(old)
        let socket = try scene.gateway.frameClient(headers: AccessScene.bearer(old))
        try socket.subscribe("s", Self.channel)
        let single = try scene.gateway.frameClient("channel?channelId=c", headers: AccessScene.bearer(old))
        #expect(try single.next().op == "ok")
        let kept = try RawConnection(port: scene.gateway.port)
        #expect(try kept.request("GET", "/v1/access", headers: AccessScene.bearer(old)).status == 200)

        try provider.post("/rotate")
        let new = try provider.token()
        let begin = Date()
        let first = try scene.gateway.request("GET", "/v1/access", headers: AccessScene.bearer(new))
        #expect(first.status == 503 && first.problem == "keys-not-loaded")
        #expect((1...10).contains(first.headers["retry-after"].flatMap { Int($0) } ?? 0))
        try scene.untilKnown(new)
        #expect(Date().timeIntervalSince(begin) < 11)
        // The provider serves both keys, so both tokens are valid, and no stream ends.
        #expect(try scene.gateway.request("GET", "/v1/access", headers: AccessScene.bearer(old)).status == 200)
        try scene.publish("CHN:c", #"{"object":\#(AccessScene.lamp("one", site: nil))}"#)
        #expect(try socket.next(of: "s").objectName == "one")

        try provider.post("/rotate")
        try provider.post("/retire")
        let newest = try provider.token()
        try scene.untilKnown(newest)
        #expect(try socket.closeCode(within: 5) == 4002)
        // The answer may be 429: a second new key within a minute counts as a failed attempt for each request that
        // needs it.
        let refused = try kept.request("GET", "/v1/access", headers: AccessScene.bearer(old)).status
        #expect([401, 429].contains(refused))
        #expect(try single.next().objectName == "one")
        #expect(try single.next().json["status"] as? Int == 401)
        #expect(try single.closeCode() == 4002)
        // An unknown key is looked up once and then refused, and lookups are at least ten seconds apart.
        let requests = try provider.requests()
        #expect(requests == 3)
    }

    @Test func fetchesForUnknownKeysAreThrottled() throws {
        let provider = try IdentityProvider()
        let scene = try AccessScene(provider.file())
        try scene.untilKnown(try provider.token())
        let other = try IdentityProvider()
        let foreign = try other.token("keycloak", "&issuer=\(provider.issuer)")
        let begin = Date()
        var statuses: [Int] = []
        try waitUntil("the foreign token is refused") {
            let headers = AccessScene.bearer(foreign)
            let status = try scene.gateway.request("GET", "/v1/access", headers: headers).status
            statuses.append(status)
            return status == 401
        }
        #expect(Set(statuses) == [503, 401])
        // One request for the initial keys, and one for the token, at least ten seconds later.
        #expect(try provider.requests() == 2)
        #expect(Date().timeIntervalSince(begin) > 5)
    }

    @Test func tokensGet503WithoutKeys() throws {
        let provider = try IdentityProvider()
        try provider.post("/down")
        let scene = try AccessScene(provider.file())
        let token = try provider.token()
        let answer = try scene.gateway.request("GET", "/v1/access", headers: AccessScene.bearer(token))
        #expect(answer.status == 503 && answer.problem == "keys-not-loaded" && answer.headers["retry-after"] == "1")
        let socket = try scene.gateway.frameClient()
        #expect(try socket.ask("authenticate", #""token":"\#(token)""#).json["status"] as? Int == 503)
        // Clients reconnect after this close code.
        #expect(try socket.closeCode() == 1013)
        // Other kinds of tokens do not need the provider.
        #expect(try scene.get("/v1/access", as: "ops").status == 200)
        try waitUntil("the failure is logged") {
            scene.gateway.log.contains("the keys for tokens could not be loaded")
        }
        try provider.post("/up")
        try scene.untilKnown(token)
    }

    // MARK: - Reload

    @Test func keyFileIsReloaded() throws {
        let provider = try IdentityProvider()
        let folder = FileManager.default.temporaryDirectory.appending(path: "jwks-\(UUID())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let keys = folder.appending(path: "jwks.json")
        func fetch() throws -> [UInt8] { try RawConnection(port: provider.port).request("GET", "/jwks").body }
        try Data(try fetch()).write(to: keys)
        let file = provider.file(keys: keys.path)
        let scene = try AccessScene(file)
        let old = try provider.token()
        func status(_ token: String) throws -> Int {
            try scene.gateway.request("GET", "/v1/access", headers: AccessScene.bearer(token)).status
        }
        #expect(try status(old) == 200)
        try provider.post("/rotate")
        let new = try provider.token()
        #expect(try status(new) == 401)
        try Data(try fetch()).write(to: keys)
        try scene.reload(file)
        #expect(try status(new) == 200 && status(old) == 200)
        // A changed file is also noticed without a reload; an invalid file is not applied.
        try Data("{}".utf8).write(to: keys)
        try waitUntil("the bad file is noticed") { scene.gateway.log.contains("has no key that can be used") }
        #expect(try status(new) == 200)
        let reason = try scene.reload(bad: file.yaml)
        #expect(reason.contains("access.jwt.keys: \(keys.path): has no key"))
        try provider.post("/retire")
        try Data(try fetch()).write(to: keys)
        try waitUntil("the retired key is noticed") { try status(old) == 401 }
        #expect(try status(new) == 200)
    }

    @Test func reloadReevaluatesProviderUsers() throws {
        let provider = try IdentityProvider()
        let file = provider.file()
        let scene = try AccessScene(file)
        let token = try provider.token()
        try scene.untilKnown(token)
        let node = try scene.gateway.post(
            "/v1/io/nodes",
            #"{"contextName":"T","name":"n","ioSources":[{"name":"s","valueType":"v"}]}"#,
            headers: AccessScene.bearer(token)
        )
        #expect([200, 201].contains(node.status), "\(node.text)")
        func nodes(_ token: String) throws -> Int? {
            let response = try scene.gateway.request("GET", "/v1/io/nodes", headers: AccessScene.bearer(token))
            return
                (response.json?["nodes"] as? [Any]
                ?? (try? JSONSerialization.jsonObject(with: Data(response.body)) as? [Any]))?
                .count
        }
        #expect(try nodes(token) == 1)
        let socket = try scene.gateway.frameClient(headers: AccessScene.bearer(token))
        try socket.subscribe("s", Self.channel)
        // The user is not in the file, and stays connected.
        var other = file
        other.tokens.append(.init("further", "viewer"))
        try scene.reload(other)
        try scene.publish("CHN:c", #"{"object":\#(AccessScene.lamp("one", site: nil))}"#)
        #expect(try socket.next(of: "s").objectName == "one")
        #expect(try nodes(token) == 1)
        // The role no longer allows the subscription.
        var less = file
        less.roles["viewer"] = ["{read: [status]}"]
        try scene.reload(less)
        #expect(try socket.next(of: "s").json["status"] as? Int == 403)
        // With another audience, the token is no longer valid.
        var strict = file
        strict.jwt = file.jwt?.replacing("audience: coaty-gateway", with: "audience: plant")
        try scene.reload(strict)
        #expect(try socket.closeCode(within: 1) == 4002)
        #expect(try scene.gateway.request("GET", "/v1/access", headers: AccessScene.bearer(token)).status == 401)
        let fitting = try provider.token("&audience=plant")
        #expect(try scene.gateway.request("GET", "/v1/access", headers: AccessScene.bearer(fitting)).status == 200)
        // Without a provider, the token is no longer valid.
        let last = try scene.gateway.frameClient(headers: AccessScene.bearer(fitting))
        #expect(try last.ask("ping").op == "pong")
        var none = file
        none.jwt = nil
        try scene.reload(none)
        #expect(try last.closeCode(within: 1) == 4503)
    }
}
