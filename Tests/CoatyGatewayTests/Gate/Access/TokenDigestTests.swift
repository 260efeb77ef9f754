import TestSupport
import Testing

@testable import Access
@testable import Base

@Suite(.exclusive) struct TokenDigestTests {
    /// Test vectors of FIPS 180-2 and NIST.
    @Test(arguments: [
        ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (
            "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
        ),
        (String(repeating: "a", count: 1_000_000), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"),
    ])
    func digestIsSHA256(token: String, hex: String) {
        let digest = TokenDigest(of: token)
        #expect(digest.bytes.count == TokenDigest.length)
        #expect(digest.hex == hex)
        #expect(TokenDigest(hex: hex) == digest)
        #expect(TokenDigest(hex: hex.uppercased()) == digest)
        #expect(TokenDigest(bytes: digest.bytes) == digest)
    }

    @Test func digestsDifferInAnyBit() {
        let digest = TokenDigest(of: "abc")
        for index in 0..<TokenDigest.length {
            for bit in 0..<8 {
                var bytes = digest.bytes
                bytes[index] ^= 1 << bit
                #expect(TokenDigest(bytes: bytes) != digest)
            }
        }
        #expect([digest: 1][TokenDigest(of: "abc")] == 1)
    }

    @Test(arguments: [
        "", "0", String(repeating: "0", count: 63), String(repeating: "0", count: 65),
        String(repeating: "g", count: 64),
        String(repeating: "0", count: 63) + " ", String(repeating: "０", count: 64),
        "0x" + String(repeating: "0", count: 62), String(repeating: "0", count: 63) + "e\u{301}",
    ])
    func invalidDigestTextIsRefused(_ text: String) {
        #expect(TokenDigest(hex: text) == nil)
    }

    @Test(arguments: [0, 31, 33]) func bytesOfWrongLengthAreNotADigest(_ count: Int) {
        #expect(TokenDigest(bytes: Array(repeating: 0, count: count)) == nil)
    }

    @Test func tokensAreRandomBase64URL() throws {
        let tokens = (0..<1000).map { _ in RandomSecret.token() }
        #expect(Set(tokens).count == tokens.count)
        #expect(try tokens.allSatisfy { try /coaty_[A-Za-z0-9_-]{43}/.wholeMatch(in: $0) != nil })
        // Every character of the alphabet occurs, so no byte is fixed or reserved.
        #expect(Set(tokens.joined().utf8).count == 64)
    }
}
