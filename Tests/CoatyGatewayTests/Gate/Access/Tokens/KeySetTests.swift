import COpenSSL
import Dispatch
import Synchronization
import TestSupport
import Testing

@testable import Access
@testable import Base

@Suite(.exclusive) struct KeySetTests {
    /// The vectors are from RFC 7515, appendices A.1 to A.3, and RFC 8037, appendix A.4.
    @Test(
        arguments: [
            (
                #"{"kty":"oct","k":"AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow"}"#,
                "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9." + payload + ".dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
            ),
            (
                #"{"kty":"RSA","e":"AQAB","n":"\#(modulus)"}"#,
                "eyJhbGciOiJSUzI1NiJ9." + payload + "." + rsaSignature
            ),
            (
                #"{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","#
                    + #""y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}"#,
                "eyJhbGciOiJFUzI1NiJ9." + payload
                    + ".DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q"
            ),
            (
                #"{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#,
                "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc"
                    + ".hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg"
            ),
        ]
    )
    func vectorsOfTheRFCsAreVerified(jwk: String, token: String) throws {
        let key = try #require(KeySet(Array(jwk.utf8)).keys.first)
        #expect(key.verifies(try #require(CompactToken(Array(token.utf8)))))
        // A changed payload, and changed, missing and truncated signatures.
        let parts = token.split(separator: ".").map(String.init)
        for other in [
            "\(parts[0]).e30.\(parts[2])", "\(parts[0]).\(parts[1]).A\(parts[2].dropFirst())",
            "\(parts[0]).\(parts[1]).",
            "\(parts[0]).\(parts[1]).\(parts[2].dropLast(4))",
        ] where other != token {
            #expect(!key.verifies(try #require(CompactToken(Array(other.utf8)))), "\(other)")
        }
    }

    private static let payload =
        "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"
    private static let modulus =
        "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pC"
        + "gNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg6"
        + "65xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRW"
        + "yuXpoQ"
    private static let rsaSignature =
        "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t"
        + "1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12j"
        + "zDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQ"
        + "Ge77Rw"

    @Test(arguments: [SigningKey.Kind.rsa, .ec, .ed25519])
    func aPEMFileAndAJWKHaveTheSameKey(kind: SigningKey.Kind) throws {
        let signing = try SigningKey(kind)
        let pem = try KeySet(Array(signing.pem.utf8))
        let jwk = try KeySet(Array(try signing.jwk().utf8))
        #expect(pem.keys.map(\.parts) == jwk.keys.map(\.parts))
        let token = try #require(CompactToken(Array(try signing.token("{}").utf8)))
        #expect(pem.keys[0].verifies(token) && jwk.keys[0].verifies(token))
        #expect(pem.keys[0].algorithm.rawValue == signing.algorithm)
    }

    @Test func aPEMFileMayHaveSeveralKeys() throws {
        let keys = try [SigningKey.Kind.rsa, .ec, .ed25519].map { try SigningKey($0) }
        let set = try KeySet(Array(keys.map(\.pem).joined(separator: "\n").utf8))
        #expect(set.keys.map(\.algorithm) == [.rs256, .es256, .edDSA])
    }

    @Test func weakAndForeignKeysAreRefused() throws {
        for kind in [SigningKey.Kind.smallRSA, .p384] {
            let pem = try SigningKey(kind).pem
            #expect(throws: KeySet.Failure.self, "\(kind)") { try KeySet(Array(pem.utf8)) }
        }
        let small = try SigningKey(.smallRSA).pem
        #expect(
            throws: KeySet.Failure(reason: "block 1 is an RSA key of less than 2048 bits")
        ) { try KeySet(Array(small.utf8)) }
        let short = try SigningKey(.secret, secret: Array(repeating: 7, count: 31))
        #expect(throws: KeySet.Failure.self) { try KeySet(Array(try short.jwk().utf8)) }
        for text in [
            "", "x", "{}", #"{"keys":[]}"#, "[]", #"{"keys":[{"kty":"RSA"}]}"#, "-----BEGIN PUBLIC KEY-----\n",
            "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
            #"{"kty":"EC","crv":"P-256","x":"AAAA","y":"AAAA"}"#,
            #"{"kty":"OKP","crv":"Ed25519","x":"AAAA"}"#,
            // The point is not on the curve.
            #"{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","#
                + #""y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5aE"}"#,
        ] {
            #expect(throws: KeySet.Failure.self, "\(text)") { try KeySet(Array(text.utf8)) }
        }
        let big = Array("{".utf8) + [UInt8](repeating: 32, count: KeySet.maximumSize)
        #expect(throws: KeySet.Failure.self) { try KeySet(big) }
    }

    @Test func keysForOtherPurposesAreLeftOut() throws {
        let signing = try SigningKey(.rsa, id: "a")
        for members in [
            #","use":"enc""#, #","alg":"RS512""#, #","alg":"HS256""#, #","key_ops":["encrypt"]"#, #","kid":"b""#,
        ] {
            let other = try signing.jwk(members)
            #expect(throws: KeySet.Failure.self, "\(members)") { try KeySet(Array(other.utf8)) }
            let set = try KeySet(Array(#"{"keys":[\#(other),\#(try signing.jwk())]}"#.utf8))
            #expect(set.keys.count == 1, "\(members)")
        }
        for members in ["", #","alg":"RS256""#, #","key_ops":["verify"]"#, #","x5c":["MII"],"x5t":"a""#] {
            #expect(try KeySet(Array(try signing.jwk(members).utf8)).keys.count == 1, "\(members)")
        }
    }

    @Test func keysBeyondTheCandidateLimitAreRefused() throws {
        let keys = try (0...KeySet.maximumCandidates).map { _ in try SigningKey(.ed25519) }
        let four = try KeySet(Array(keys.dropLast().map(\.pem).joined().utf8))
        for key in keys.dropLast() {
            let token = try #require(CompactToken(Array(try key.token("{}").utf8)))
            #expect(four.candidates(nil, .edDSA).contains { $0.verifies(token) })
        }
        let reason = "has 5 keys for EdDSA without a kid; at most 4 can be tried for a token"
        #expect(throws: KeySet.Failure(reason: reason)) { try KeySet(Array(keys.map(\.pem).joined().utf8)) }
        func set(_ id: (Int) -> String) throws -> KeySet {
            let jwks = try keys.enumerated().map { try $1.jwk(#","kid":"\#(id($0))""#) }
            return try KeySet(Array(#"{"keys":[\#(jwks.joined(separator: ","))]}"#.utf8))
        }
        #expect(throws: KeySet.Failure(reason: reason.replacing("without a kid", with: "with the same kid"))) {
            try set { _ in "k" }
        }
        #expect(try set { "\($0)" }.keys.count == keys.count)
    }

    @Test func aTokenIsVerifiedWithTheKeyOfItsId() throws {
        let anonymous = try (0..<KeySet.maximumCandidates).map { _ in try SigningKey(.ed25519).jwk() }
        let named = try ["a", "b"].map { try SigningKey(.ed25519, id: $0).jwk() }
        let set = try KeySet(Array(#"{"keys":[\#((anonymous + named).joined(separator: ","))]}"#.utf8))
        func ids(_ id: String?) -> [String?] { set.candidates(id, .edDSA).map(\.id) }
        #expect(ids("b") == ["b"])
        #expect(ids("c") == [nil, nil, nil, nil] && ids(nil) == [nil, nil, nil, nil])
        let few = try KeySet(Array(#"{"keys":[\#((named + anonymous.prefix(1)).joined(separator: ","))]}"#.utf8))
        #expect(few.candidates(nil, .edDSA).map(\.id) == [nil, "a", "b"])
    }

    /// A secret that anyone can fetch is not secret.
    @Test func secretsFromAURLAreRefused() throws {
        let secret = Array(try SigningKey(.secret).jwk().utf8)
        #expect(try KeySet(secret).keys.map(\.algorithm) == [.hs256])
        #expect(throws: KeySet.Failure.self) { try KeySet(secret, isPublic: true) }
    }

    @Test func onlyRemovedKeysAreRevoked() throws {
        let (one, two) = (try SigningKey(.ec, id: "1"), try SigningKey(.ec, id: "2"))
        let first = try KeySet(try SigningKey.jwks(one))
        let (second, none) = try KeySet(try SigningKey.jwks(two, one)).replacing(first)
        #expect(none.isEmpty && second.keys.count == 2 && second.keys[1] === first.keys[0])
        let (third, revoked) = try KeySet(try SigningKey.jwks(two)).replacing(second)
        #expect(revoked.count == 1 && revoked[0] === first.keys[0] && third.keys[0] === second.keys[0])
        #expect(first.keys[0].revocation.isRevoked && !third.keys[0].revocation.isRevoked)
    }

    /// Several threads serve requests, and some of them also write to TLS connections.
    @Test(arguments: [SigningKey.Kind.rsa, .ec, .ed25519, .secret])
    func severalThreadsVerifyWithOneKey(kind: SigningKey.Kind) throws {
        let signing = try SigningKey(kind)
        let key = try #require(KeySet(Array(try signing.jwk().utf8)).keys.first)
        let good = try #require(CompactToken(Array(try signing.token("{}").utf8)))
        let bad = try #require(
            CompactToken(Array(try SigningKey(kind, secret: Array(repeating: 1, count: 32)).token("{}").utf8))
        )
        let wrong = Atomic(0)
        DispatchQueue.concurrentPerform(iterations: 400) { number in
            if key.verifies(number % 2 == 0 ? good : bad) != (number % 2 == 0) || ERR_peek_error() != 0 {
                wrong.add(1, ordering: .relaxed)
            }
        }
        #expect(wrong.load(ordering: .relaxed) == 0)
    }

    @Test func unusableKeysLeaveNoOpenSSLError() {
        for text in ["-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", "-----BEGIN PUBLIC KEY-----\n?"] {
            _ = try? KeySet(Array(text.utf8))
            #expect(ERR_peek_error() == 0)
        }
    }
}
