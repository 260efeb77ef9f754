import Coaty
import Foundation
import HTTPServer
import Logging
import TestSupport
import Testing

@testable import Access
@testable import Base

/// Valid and invalid tokens of an identity provider.
@Suite(.exclusive) struct TokenVerifierTests {
    private static let now = 1_767_225_600.0
    private static let issuer = "https://idp.example/realms/plant"

    /// Returns a verifier for the mapping `jwt`, with keys in a file.
    private static func verifier(
        _ keys: [UInt8],
        _ members: String = "",
        limits: Limits = Limits()
    ) throws -> TokenVerifier {
        let path = FileManager.default.temporaryDirectory.appending(path: "keys-\(UUID())").path
        try Data(keys).write(to: URL(fileURLWithPath: path))
        defer { try? FileManager.default.removeItem(atPath: path) }
        let json = #"{"issuer":"\#(issuer)","audience":"coaty-gateway","keys":"\#(path)"\#(members)}"#
        let configuration = try JWTConfiguration(JSONView(text: json))
        return TokenVerifier(
            configuration,
            keys: try KeyStore(configuration.keys, logger: Logger(label: "test")) {},
            limits: limits
        )
    }

    /// Returns claims as JSON. `changes` replaces or adds claims; nil removes a claim.
    private static func claims(_ changes: [String: Any?] = [:]) throws -> String {
        var claims: [String: Any] = [
            "iss": issuer, "aud": "coaty-gateway", "exp": now + 300, "iat": now, "sub": "ann", "jti": "1",
            "site": "hall-2",
        ]
        for (name, value) in changes { claims[name] = value }
        return String(decoding: try JSONSerialization.data(withJSONObject: claims), as: UTF8.self)
    }

    private static func refusal(_ verifier: TokenVerifier, _ token: String, at now: Double = now) -> TokenVerifier
        .Refusal?
    {
        do throws(TokenVerifier.Refusal) {
            _ = try verifier.authenticate(token, at: now)
            return nil
        } catch {
            return error
        }
    }

    // MARK: - Good tokens

    @Test(arguments: [SigningKey.Kind.rsa, .ec, .ed25519, .secret], ["kid", nil])
    func aGoodTokenIsAccepted(kind: SigningKey.Kind, id: String?) throws {
        let key = try SigningKey(kind, id: id)
        let verifier = try Self.verifier(
            try SigningKey.jwks(key),
            #","algorithms":["RS256","ES256","EdDSA","HS256"]"#
        )
        let found = try verifier.authenticate(try key.token(try Self.claims()), at: Self.now)
        #expect(found.subject == .user(issuer: Self.issuer, name: "ann"))
        let granted = try #require(found.granted)
        #expect(granted.roles == [] && String(decoding: granted.attributes, as: UTF8.self) == #"{"site":"hall-2"}"#)
        #expect(found.validity?.expires == Int((Self.now + 300) * 1000))
        let rest = try #require(found.validity?.end) - .now
        #expect((.seconds(329)...(.seconds(330))).contains(rest))
    }

    @Test func acceptableVariantsAreAccepted() throws {
        let key = try SigningKey(.ec, id: "k")
        let verifier = try Self.verifier(try SigningKey.jwks(key))
        for changes in [
            ["aud": ["a", "coaty-gateway"]], ["exp": Self.now + 0.5], ["nbf": Self.now + 29], ["exp": Self.now - 29],
            ["sub": String(repeating: "x", count: 256)],
        ] as [[String: Any]] {
            #expect(Self.refusal(verifier, try key.token(try Self.claims(changes))) == nil, "\(changes)")
        }
        for header in [
            #"{"alg":"ES256","kid":"k","typ":"at+jwt"}"#, #"{"typ":"application/AT+JWT","alg":"ES256"}"#,
            #"{"alg":"ES256"}"#,
            // The verifier ignores these members.
            #"{"alg":"ES256","kid":"k","jku":"https://evil.example/keys","x5u":"https://evil.example","jwk":{"kty":"oct"}}"#,
        ] {
            #expect(Self.refusal(verifier, try key.token(try Self.claims(), header: header)) == nil, "\(header)")
        }
    }

    // MARK: - Claims

    /// Each case has a claim, its JSON text or nil if it is missing, and the reason of the refusal.
    @Test(
        arguments: [
            ("exp", "\(now - 30)", .expired), ("exp", "0", .expired), ("exp", "-1e300", .expired),
            ("exp", nil, .invalid("The exp is no number.")),
            ("exp", "\"\(now + 300)\"", .invalid("The exp is no number.")),
            ("exp", "null", .invalid("The exp is no number.")),
            ("nbf", "\(now + 31)", .notYetValid(seconds: 1)), ("nbf", "\(now + 49.5)", .notYetValid(seconds: 20)),
            ("nbf", "1e300", .notYetValid(seconds: 86400)),
            ("nbf", "\"1\"", .invalid("The nbf is no number.")),
            ("aud", nil, audience), ("aud", "\"other\"", audience), ("aud", "[]", audience), ("aud", "null", audience),
            ("aud", #"["coaty-gateway-2",1]"#, audience), ("aud", #"{"x":"coaty-gateway"}"#, audience),
            ("aud", #""coaty-gateway other""#, audience),
            ("iss", nil, .invalid("The iss is not the configured one.")),
            ("iss", "\"\(issuer)/\"", .invalid("The iss is not the configured one.")),
            ("sub", nil, subject), ("sub", "\"\"", subject), ("sub", "7", subject), ("sub", #""a\nb""#, subject),
            ("sub", "\"\(String(repeating: "x", count: 257))\"", subject),
            (
                "big", "\"\(String(repeating: "x", count: 4096))\"",
                .invalid("The attributes have more than 4096 bytes.")
            ),
        ] as [(String, String?, TokenVerifier.Refusal)]
    )
    func badClaimsAreRefused(claim: String, json: String?, refusal: TokenVerifier.Refusal) throws {
        let key = try SigningKey(.ed25519)
        let verifier = try Self.verifier(Array(key.pem.utf8))
        let value = try json.map { try JSONSerialization.jsonObject(with: Data($0.utf8), options: .fragmentsAllowed) }
        #expect(Self.refusal(verifier, try key.token(try Self.claims([claim: value]))) == refusal)
        #expect(Self.refusal(verifier, try key.token(try Self.claims())) == nil)
    }

    private static let audience = TokenVerifier.Refusal.invalid("The token is for another audience.")
    private static let subject = TokenVerifier.Refusal.invalid("The sub is no text of 1 to 256 bytes.")

    @Test func rolesAndAttributesComeFromClaims() throws {
        let key = try SigningKey(.ec)
        let claims = try Self.claims([
            "realm_access": ["roles": ["viewer", "admin", 1]], "scope": "read write",
            "https://coaty.example/roles": ["lamps"], "email": "ann@example.com",
        ])
        for (path, roles) in [
            (#""claims.realm_access.roles""#, ["viewer", "admin"]), (#""claims.scope""#, ["read", "write"]),
            (#"["https://coaty.example/roles"]"#, ["lamps"]), (#""claims.none.roles""#, []), (#""claims.sub.x""#, []),
        ] {
            let verifier = try Self.verifier(
                Array(key.pem.utf8),
                #","roles":\#(path),"attributes":["email","site","none"]"#
            )
            let granted = try #require(try verifier.authenticate(try key.token(claims), at: Self.now).granted)
            #expect(granted.roles == roles, "\(path)")
            let attributes = try JSONView(text: String(decoding: granted.attributes, as: UTF8.self))
            #expect(Set(attributes.members.compactMap(\.key.string)) == ["email", "site"])
        }
    }

    /// The role `admin` of a realm is not the gateway's.
    @Test func adminIsGivenByTheConfiguredNameOnly() throws {
        let key = try SigningKey(.ec)
        let token = try key.token(try Self.claims(["roles": ["admin", "gateway-admin", "viewer", "unknown"]]))
        for (admin, isUnrestricted) in [
            ("", false), (#","admin":"gateway-admin""#, true), (#","admin":"other""#, false),
        ] {
            let verifier = try Self.verifier(Array(key.pem.utf8), #","roles":"claims.roles"\#(admin)"#)
            let found = try verifier.authenticate(token, at: Self.now)
            let roles = try AccessConfiguration(
                json: #"{"anonymous":["viewer"],"roles":{"viewer":[{"read":["info"]}]}}"#
            ).roles
            let configuration = AccessConfiguration(
                tokens: [],
                anonymous: [],
                roles: roles,
                jwt: verifier.configuration
            )
            let policy = Policy(configuration, dialect: .plain, verifier: verifier)
            let permissions = try #require(policy.permissions(of: found))
            #expect(permissions.isUnrestricted == isUnrestricted, "\(admin)")
            #expect(permissions.roles == (isUnrestricted ? ["admin", "viewer"] : ["viewer"]))
        }
    }

    // MARK: - Headers and signatures

    @Test func theAlgorithmFitsTheKey() throws {
        let key = try SigningKey(.rsa, id: "k")
        let all = #","algorithms":["RS256","ES256","EdDSA","HS256"]"#
        let claims = try Self.claims()
        for verifier in [
            try Self.verifier(try SigningKey.jwks(key), all), try Self.verifier(Array(key.pem.utf8), all),
        ] {
            // A classic attack: HMAC with the public key as the secret.
            for secret in [Array(key.pem.utf8), Array(key.pem.dropLast().utf8), Array(try key.jwk().utf8)] {
                let forger = try SigningKey(.secret, id: "k", secret: secret)
                #expect(
                    Self.refusal(verifier, try forger.token(claims))
                        == .invalid("No key fits the alg and kid of the token.")
                )
            }
            for algorithm in ["none", "None", "NONE", "HS256", "ES256", "EdDSA", "RS512", "PS256", "rs256", ""] {
                let header = #"{"alg":"\#(algorithm)","kid":"k"}"#
                #expect(Self.refusal(verifier, try key.token(claims, header: header)) != nil, "\(algorithm)")
                let unsigned = try key.token(claims, header: header).prefix { $0 != "." }
                let payload = SigningKey.base64(Array(claims.utf8))
                #expect(Self.refusal(verifier, "\(unsigned).\(payload).") != nil, "\(algorithm)")
            }
            #expect(Self.refusal(verifier, try key.token(claims)) == nil)
        }
        // An algorithm that the configuration does not allow.
        let strict = try Self.verifier(try SigningKey.jwks(key), #","algorithms":["ES256"]"#)
        #expect(Self.refusal(strict, try key.token(claims)) == .invalid("The alg is not allowed."))
        let secret = try SigningKey(.secret)
        let byDefault = try Self.verifier(try SigningKey.jwks(secret))
        #expect(Self.refusal(byDefault, try secret.token(claims)) == .invalid("The alg is not allowed."))
    }

    @Test func otherKeysAreRefused() throws {
        for kind in [SigningKey.Kind.rsa, .ec, .ed25519] {
            let (key, other) = (try SigningKey(kind, id: "k"), try SigningKey(kind, id: "k"))
            let verifier = try Self.verifier(try SigningKey.jwks(key))
            #expect(Self.refusal(verifier, try other.token(try Self.claims())) == .invalid("The signature is wrong."))
            let unknown = try SigningKey(kind, id: "unknown")
            #expect(
                Self.refusal(verifier, try unknown.token(try Self.claims()))
                    == .invalid("No key fits the alg and kid of the token.")
            )
        }
    }

    @Test func badHeadersAndTextsAreRefused() throws {
        let key = try SigningKey(.ec, id: "k")
        let verifier = try Self.verifier(try SigningKey.jwks(key))
        let claims = try Self.claims()
        for header in [
            #"{"alg":"ES256","crit":["exp"]}"#, #"{"alg":"ES256","crit":[],"kid":"k"}"#,
            #"{"alg":"ES256","alg":"ES256"}"#,
            #"{"alg":"none","alg":"ES256"}"#, #"{"alg":["ES256"]}"#, #"{"kid":"k"}"#, #"{"alg":"ES256","typ":"JOSE"}"#,
            #"{"alg":"ES256","typ":1}"#, #"{"alg":"ES256","kid":7}"#, #"["ES256"]"#, "", #"{"alg":"ES256""#,
            #"{"alg":"ES256","kid":"\#(String(repeating: "k", count: 300))"}"#,
        ] {
            #expect(Self.refusal(verifier, try key.token(claims, header: header)) != nil, "\(header)")
        }
        let twice = claims.dropLast() + #","aud":"coaty-gateway"}"#
        #expect(
            Self.refusal(verifier, try key.token(String(twice))) == .invalid("The payload has a member twice.")
        )
        for payload in ["", "[]", "null", "{", "\"x\"", #"{"exp":1e999}"#] {
            #expect(Self.refusal(verifier, try key.token(payload)) != nil, "\(payload)")
        }
        let token = try key.token(claims)
        for text in [
            "", "a.b", "a.b.c", "..", token + ".x", token + "=", " " + token, token.replacing("e", with: "\u{e9}"),
            String(repeating: "x", count: 9000), token.replacing(".", with: "..", maxReplacements: 1),
        ] {
            #expect(Self.refusal(verifier, text) != nil, "\(text.prefix(40))")
        }
        let large = try key.token(try Self.claims(["site": String(repeating: "x", count: 6200)]))
        #expect(Self.refusal(verifier, large) == .invalid("The token is larger than 8192 bytes."))
        #expect(Self.refusal(verifier, token) == nil)
    }

    @Test func sizesAreBoundedByTheSetting() throws {
        let key = try SigningKey(.ec, id: "1")
        let token = try key.token(try Self.claims())
        var limits = Limits()
        for (size, refusal) in [
            (token.utf8.count, nil),
            (
                token.utf8.count - 1,
                TokenVerifier.Refusal.invalid("The token is larger than \(token.utf8.count - 1) bytes.")
            ),
        ] {
            limits.tokenSize = size
            #expect(Self.refusal(try Self.verifier(try SigningKey.jwks(key), limits: limits), token) == refusal)
        }
    }

    // MARK: - The cache

    @Test func rememberedTokensAreBoundedByTheSetting() throws {
        let key = try SigningKey(.ec, id: "1")
        var limits = Limits()
        limits.verifiedTokens = 1
        let verifier = try Self.verifier(try SigningKey.jwks(key), limits: limits)
        let tokens = try ["1", "2"].map { try key.token(try Self.claims(["jti": $0])) }
        for token in tokens { #expect(Self.refusal(verifier, token) == nil) }
        // Only the token in the cache is not verified again.
        #expect(tokens.map { Self.refusal(verifier, $0, at: Self.now + 1e6) } == [.expired, nil])
    }

    @Test func aVerifiedTokenIsRememberedUntilItExpiresOrItsKeyLeaves() throws {
        let (key, next) = (try SigningKey(.ec, id: "1"), try SigningKey(.ec, id: "2"))
        let path = FileManager.default.temporaryDirectory.appending(path: "keys-\(UUID())").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        func write(_ keys: [UInt8]) throws { try Data(keys).write(to: URL(fileURLWithPath: path)) }
        try write(try SigningKey.jwks(key))
        let json = #"{"issuer":"\#(Self.issuer)","audience":"coaty-gateway","keys":"\#(path)"}"#
        let configuration = try JWTConfiguration(JSONView(text: json))
        let store = try KeyStore(configuration.keys, logger: Logger(label: "test")) {}
        let verifier = TokenVerifier(configuration, keys: store)
        let token = try key.token(try Self.claims())
        _ = try verifier.authenticate(token, at: Self.now)
        // The time of a cached token is not checked again; callers check the validity that is returned with it.
        _ = try verifier.authenticate(token, at: Self.now + 1e6)
        try write(try SigningKey.jwks(next, key))
        #expect(try !store.reload()())
        _ = try verifier.authenticate(token, at: Self.now + 1e6)
        _ = try verifier.authenticate(try next.token(try Self.claims()), at: Self.now)
        try write(try SigningKey.jwks(next))
        #expect(try store.reload()())
        #expect(
            Self.refusal(verifier, token) == .invalid("No key fits the alg and kid of the token.")
        )
        // A bad file is not applied.
        try write(Array("{}".utf8))
        #expect(throws: InvalidConfiguration.self) { try store.reload() }
        _ = try verifier.authenticate(try next.token(try Self.claims(["jti": "2"])), at: Self.now)
    }

    @Test func aRememberedTokenExpires() async throws {
        let key = try SigningKey(.ec)
        let verifier = try Self.verifier(Array(key.pem.utf8))
        // The leeway has nearly passed.
        let now = Date().timeIntervalSince1970
        let token = try key.token(try Self.claims(["exp": now - 29.8]))
        let found = try verifier.authenticate(token, at: now)
        try await untilTrue("it has expired") { !(found.validity?.isValid ?? true) }
        try await untilTrue("it is refused") {
            Self.refusal(verifier, token, at: Date().timeIntervalSince1970) == .expired
        }
    }
}
