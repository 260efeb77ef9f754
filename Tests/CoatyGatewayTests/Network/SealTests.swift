import Coaty
import Foundation
import Testing

@testable import Cluster

struct SealTests {
    private static let secret = String(repeating: "s", count: 32)

    private func seal(_ secret: String = Self.secret, _ purpose: ClusterKey.Purpose = .messages) throws -> Seal {
        Seal(key: try ClusterKey(secret: secret, "file").derived(purpose))
    }

    @Test(arguments: [0, 1, 15, 16, 100_000]) func sealedTextsCanBeOpened(length: Int) throws {
        let text = (0..<length).map { UInt8(truncatingIfNeeded: $0) }
        let sealed = try seal().seal(text, for: [1])
        #expect(try seal().open(sealed, for: [1]) == text)
        #expect(try seal().seal(text, for: [1]) != sealed)
    }

    @Test func alteredTextsCannotBeOpened() throws {
        let seal = try seal()
        let sealed = seal.seal(Array("text".utf8), for: [1])
        for index in sealed.indices {
            var altered = sealed
            altered[index] ^= 1
            #expect(seal.open(altered, for: [1]) == nil)
        }
        for length in 0..<sealed.count { #expect(seal.open(sealed.prefix(length), for: [1]) == nil) }
        #expect(seal.open(sealed, for: [2]) == nil)
        #expect(try self.seal(String(repeating: "t", count: 32)).open(sealed, for: [1]) == nil)
        #expect(try self.seal(Self.secret, .identities).open(sealed, for: [1]) == nil)
    }

    @Test func keysAreHMACsOfTheirPurposes() throws {
        // printf 'coaty-gateway messages' | openssl dgst -sha256 -hmac ssssssssssssssssssssssssssssssss
        let key = try ClusterKey(secret: Self.secret, "file").derived(.messages)
        let text = key.map { String(format: "%02x", $0) }.joined()
        #expect(text == "a9f8801809705304a3f813bf17520f37fc708b0222dc2a15139cbe7895551bed")
    }

    @Test func secretsMustBeLong() throws {
        #expect(throws: ClusterKey.Failure.self) { try ClusterKey(secret: String(repeating: "s", count: 31), "file") }
        let error = #expect(throws: ClusterKey.Failure.self) { try ClusterKey(file: "/nowhere") }
        #expect(error?.description == "cluster-key-file /nowhere can't be read, or is empty")
    }

    @Test func messagesAreOnlyForGatewaysWithTheSecret() throws {
        let head = PeerMessage.Head(from: CoatyUUID(), session: "a", sequence: 1, time: 2, sees: ["b"])
        let event = try PeerMessage(head, body: Array("body\n".utf8)).event(seal(), namespace: "-")
        let address = EventAddress(
            .channel,
            name: .name(WireName(PeerMessage.channelId)),
            namespace: "-",
            sourceId: head.from
        )
        let received = try ChannelEvent(payload: event.payload, address: address)
        let message = try #require(PeerMessage(received, seal(), namespace: "-"))
        #expect(message.body == Array("body\n".utf8) && message.head.sees == ["b"] && message.head.time == 2)
        #expect(try PeerMessage(received, seal(), namespace: "other") == nil)
        let other = EventAddress(.channel, name: address.name, namespace: "-", sourceId: CoatyUUID())
        #expect(try PeerMessage(ChannelEvent(payload: event.payload, address: other), seal(), namespace: "-") == nil)
    }
}
