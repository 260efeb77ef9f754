import Coaty
import Foundation
import Testing

@testable import Base
@testable import Feeds

/// The text of cursors in a cluster, and the hashes of events.
@Suite(.exclusive) struct ClusterCursorsTests {
    private static let key = [UInt8](0..<32)

    @Test func sealedTextsOpenOnlyUnchangedAndForTheirContext() throws {
        let seal = CursorSeal(key: Self.key)
        let (text, context) = (Array("thirty-two bytes, like a cursor".utf8), Array("channelId:c".utf8))
        let sealed = seal.seal(text, for: context)
        #expect(sealed.count == text.count + CursorSeal.tagLength && sealed == seal.seal(text, for: context))
        #expect(seal.open(sealed, for: context) == text)
        #expect(seal.open(sealed, for: Array("channelId:d".utf8)) == nil)
        #expect(CursorSeal(key: Self.key.reversed()).open(sealed, for: context) == nil)
        for index in sealed.indices {
            var altered = sealed
            altered[index] ^= 1
            #expect(seal.open(altered, for: context) == nil)
        }
        #expect(seal.open(Array(sealed.prefix(CursorSeal.tagLength)), for: context) == nil)
    }

    /// RFC 5297, appendix A.1, with one string of associated data.
    @Test func sealIsAESSIV() {
        let key = bytes("fffefdfcfbfaf9f8f7f6f5f4f3f2f1f0f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff")
        let context = bytes("101112131415161718191a1b1c1d1e1f2021222324252627")
        let sealed = CursorSeal(key: key).seal(bytes("112233445566778899aabbccddee"), for: context)
        #expect(sealed == bytes("85632d07c6e8f37f950acd320a2ecc9340c02b9690c4dc04daef7f6afe5c"))
    }

    private func bytes(_ text: String) -> [UInt8] {
        stride(from: 0, to: text.utf8.count, by: 2).compactMap { UInt8(text.dropFirst($0).prefix(2), radix: 16) }
    }

    @Test func contentRoundTrips() throws {
        let content = CursorContent(
            epoch: .max - 1,
            position: 1 << 48 - 2,
            session: 0xABCD,
            time: 1 << 48 - 3,
            count: .max,
            hash: WindowHash.modulus - 1
        )
        #expect(content.bytes.count == CursorContent.length && CursorContent(content.bytes) == content)
        #expect(CursorContent(Array(content.bytes.dropLast())) == nil)
        for length in 0..<70 {
            let bytes = (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 151) }
            let text = Base64URL.encode(bytes)
            #expect(Base64URL.decode(text.utf8) == bytes)
            let standard = Data(bytes).base64EncodedString().replacing("=", with: "")
            #expect(text == standard.replacing("+", with: "-").replacing("/", with: "_"))
        }
    }

    @Test func hashesDifferWithEachPartOfAnEvent() throws {
        let hash = EventHash(key: Self.key)
        let members = #""coreType":"CoatyObject","objectType":"t","objectId":"o""#
        func value(_ channel: String, _ source: String, _ text: String) throws -> UInt64 {
            let event = try ChannelEvent(
                payload: Payload(Array(#"{"object":{\#(members),"name":"\#(text)"}}"#.utf8)),
                address: EventAddress(
                    .channel,
                    name: .name(WireName(channel)),
                    namespace: "n",
                    sourceId: CoatyUUID(wire: source)
                )
            )
            return hash.hash(event, name: channel)
        }
        let values = try [
            ("c", "s", "a"), ("c", "s", "b"), ("c", "t", "a"), ("d", "s", "a"), ("s", "c", "a"), ("cs", "", "a"),
        ]
        .map(value)
        #expect(Set(values).count == values.count)
        #expect(try value("c", "s", "a") == values[0])
    }
}
