import Foundation
import TestSupport
import Testing

/// URLs of token keys: over TLS, unreachable, and changed by a reload.
@Suite(.exclusive, .frameChecks) struct KeyURLTests {
    private static func status(_ scene: AccessScene, _ token: String) throws -> Int {
        try scene.gateway.request("GET", "/v1/access", headers: AccessScene.bearer(token)).status
    }

    // MARK: - TLS

    @Test func keyServerMustMatchTheConfiguredAuthority() throws {
        let certificates = try Certificates()
        let provider = try IdentityProvider(certificates)
        func file(_ authority: String) -> AccessFile {
            provider.file(", keys-ca-file: \"\(certificates.path(authority))\"")
        }
        let scene = try AccessScene(file("other-ca.pem"))
        try waitUntil("the foreign authority is logged") { scene.gateway.log.contains("SSL peer certificate") }
        #expect(try Self.status(scene, try provider.token()) == 503)
        try scene.reload(file("ca.pem"))
        #expect(try Self.status(scene, try provider.token()) == 200)
        // Without a CA file, the authorities of the system apply.
        let reason = try scene.reload(bad: provider.file().yaml)
        #expect(reason.contains("access.jwt.keys: \(provider.keys): SSL peer certificate"), "\(reason)")
        #expect(try Self.status(scene, try provider.token()) == 200)
    }

    @Test func anUnusableFileOfAuthoritiesIsAnError() throws {
        let certificates = try Certificates()
        let provider = try IdentityProvider(certificates)
        let files = [("missing.pem", "cannot be read"), ("ca.key", "has no certificate in PEM")]
        func file(_ authority: String) -> AccessFile {
            provider.file(", keys-ca-file: \"\(certificates.path(authority))\"")
        }
        for (name, text) in files {
            let error = #expect(throws: TestSupportError.self) { try AccessScene(file(name)) }
            let expected = "access.jwt.keys-ca-file: \(certificates.path(name)): \(text)"
            #expect(error?.description.contains(expected) == true, "\(String(describing: error))")
        }
        let scene = try AccessScene(file("ca.pem"))
        try scene.untilKnown(try provider.token())
        for (name, text) in files {
            let reason = try scene.reload(bad: file(name).yaml)
            #expect(reason.contains("access.jwt.keys-ca-file: \(certificates.path(name)): \(text)"), "\(reason)")
            #expect(try Self.status(scene, try provider.token()) == 200)
        }
        // The same path, but the file now has invalid content.
        try certificates.replace("ca.pem", with: "ca.key")
        #expect(try scene.reload(bad: file("ca.pem").yaml).contains("has no certificate in PEM"))
        #expect(try Self.status(scene, try provider.token()) == 200)
    }

    // MARK: - Failures

    @Test func aFailedRefreshKeepsTheKeys() throws {
        let provider = try IdentityProvider()
        let scene = try AccessScene(provider.file())
        try scene.untilKnown(try provider.token())
        // The gateway has not verified this token before, so it needs the key to accept it.
        let old = try provider.token()
        try provider.post("/rotate")
        try provider.post("/down")
        let new = try provider.token()
        #expect(try scene.gateway.request("GET", "/v1/access", headers: AccessScene.bearer(new)).status == 503)
        try waitUntil("the refresh has failed") {
            scene.gateway.log.contains("the keys for tokens could not be loaded")
        }
        #expect(try scene.gateway.request("GET", "/v1/access", headers: AccessScene.bearer(old)).status == 200)
        #expect(try scene.gateway.request("GET", "/v1/access", headers: AccessScene.bearer(new)).status == 503)
    }

    @Test(arguments: ["/redirect", "/large"])
    func redirectsAndLargeAnswersAreRefused(path: String) throws {
        let provider = try IdentityProvider()
        let scene = try AccessScene(provider.file(keys: "http://127.0.0.1:\(provider.port)\(path)"))
        let reason = path == "/large" ? "the answer is larger than" : "the status is 302"
        try waitUntil("the reason is logged") { scene.gateway.log.contains(reason) }
        let token = try provider.token()
        #expect(try scene.gateway.request("GET", "/v1/access", headers: AccessScene.bearer(token)).status == 503)
        #expect(!scene.gateway.log.contains("keys for tokens loaded"))
    }

    /// Tokens with random key ids are throttled, raise no alert, and do not cause valid tokens to be refused.
    @Test func aFloodOfUnknownKeysIsThrottled() throws {
        let provider = try IdentityProvider()
        let scene = try AccessScene(provider.file())
        try scene.untilKnown(try provider.token())
        try provider.post("/rotate")
        let connection = try RawConnection(port: scene.gateway.port)
        func status(_ token: String) throws -> Int {
            try connection.request("GET", "/v1/access", headers: AccessScene.bearer(token)).status
        }
        func forged(_ number: Int) -> String {
            SigningKey.base64(Array(#"{"alg":"RS256","kid":"\#(number)"}"#.utf8)) + ".e30.AAAA"
        }
        let statuses = try (0..<100).map { try status(forged($0)) }
        // An address may wait for four keys, and then has ten failed attempts.
        #expect(statuses.prefix(14) == ArraySlice(repeating: 503, count: 14))
        #expect(Set(statuses.dropFirst(14)) == [429])
        let metrics = try scene.get("/metrics", as: "ops").text
        #expect(metrics.contains(#"coaty_gateway_jwt_tokens_total{outcome="key_unknown"} 100"#))
        let new = try provider.token()
        try waitUntil("the rotated key is fetched") { try status(new) == 200 }
        #expect(try provider.requests() == 2)
    }

    // MARK: - Reload

    @Test func aReloadToAURLWithoutKeysChangesNothing() throws {
        let provider = try IdentityProvider()
        let scene = try AccessScene(provider.file())
        let token = try provider.token()
        try scene.untilKnown(token)
        let socket = try scene.gateway.frameClient(headers: AccessScene.bearer(token))
        let root = "http://127.0.0.1:\(provider.port)"
        for (url, text) in [
            ("http://127.0.0.1:\(try FreePort.tcp())/jwks", "Couldn't connect to server"),
            ("https://127.0.0.1:\(provider.port)/jwks", "SSL connect error"),
            (root + "/redirect", "the status is 302"), (root + "/large", "the answer is larger than"),
            (root + "/requests", "is neither PEM nor a JWK Set"),
        ] {
            let reason = try scene.reload(bad: provider.file(keys: url).yaml)
            #expect(reason.contains("access.jwt.keys: \(url): ") && reason.contains(text), "\(reason)")
            #expect(try Self.status(scene, try provider.token()) == 200)
        }
        #expect(try socket.ask("ping").op == "pong")
    }

    @Test func reloadToAnotherURLTakesEffectAtOnce() throws {
        let (first, second) = (try IdentityProvider(), try IdentityProvider())
        let scene = try AccessScene(first.file())
        let token = try first.token()
        try scene.untilKnown(token)
        let file = first.file(keys: second.keys)
        try scene.reload(file)
        let log = scene.gateway.log
        let loaded = try #require(log.range(of: "keys for tokens loaded keys=\(second.keys)"))
        let reloaded = try #require(log.range(of: ": configuration reloaded"))
        #expect(loaded.lowerBound < reloaded.lowerBound)
        #expect(try Self.status(scene, try second.token("keycloak", "&issuer=\(first.issuer)")) == 200)
        #expect(try Self.status(scene, token) != 200)
        // Unchanged keys are not fetched again.
        let requests = try second.requests()
        try scene.reload(file)
        #expect(try second.requests() == requests)
    }

    /// A reload that adds a provider is refused while the provider is down.
    @Test func aReloadThatAddsAProviderFetchesItsKeys() throws {
        let provider = try IdentityProvider()
        try provider.post("/down")
        var none = provider.file()
        none.jwt = nil
        let scene = try AccessScene(none)
        #expect(try scene.reload(bad: provider.file().yaml).contains("the status is 503"))
        #expect(try scene.get("/v1/access", as: "ops").status == 200)
        try provider.post("/up")
        try scene.reload(provider.file())
        #expect(try Self.status(scene, try provider.token()) == 200)
    }
}
