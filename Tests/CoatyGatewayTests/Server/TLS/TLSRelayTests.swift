import Foundation
import Glibc
import Logging
import Synchronization
import TestSupport
import Testing

@testable import Access
@testable import Edge

/// The relay between a TLS client and a server that the test implements.
@Suite(.exclusive) struct TLSRelayTests {
    /// Maximum number of bytes that the socket pair, a piece and the small buffers of the client's connection hold.
    private static let maximumHeld = 64 << 10

    @Test func firstBytesSelectTheServerAndOriginIsPassed() async throws {
        let scene = try await RelayScene()
        for (parts, kind) in [
            (["GET /v1/ws HTTP/1.1\r\n"], ProtocolPeek.webSocket), (["G", "ET /v1/w", "s/x"], .webSocket),
            (["GET /", "healthz HTTP/1.1\r\n\r\n"], .health), (["GET /healthz HTTP/1.1\r\n"], .http), (["P"], .http),
        ] {
            let client = try scene.client()
            for part in parts { try client.send(part) }
            let (descriptor, peek, origin) = try scene.server()
            #expect(peek == kind)
            #expect(origin.peer == "192.0.2.7" && origin.isEncrypted && origin.certificate == nil)
            // The bytes that identified the protocol are passed on, too.
            let text = parts.joined()
            #expect(try RelayScene.receive(descriptor, count: text.utf8.count) == Array(text.utf8))
            close(descriptor)
        }
        await scene.relay.stop()
    }

    /// Random pieces arrive unchanged in both directions, whatever the sizes of reads and writes.
    @Test(arguments: [1, 2, 3, 4] as [UInt64])
    func randomPiecesArriveInOrder(seed: UInt64) async throws {
        let scene = try await RelayScene()
        var random = SeededGenerator(seed: seed)
        let (client, server) = try scene.pair()
        for round in 0..<12 {
            let sizes = [1, 100, 16 << 10, 16385, 70_000, 1 << 20]
            let bytes = (0..<Int.random(in: 1...(sizes.randomElement(using: &random) ?? 1), using: &random)).map { _ in
                UInt8.random(in: 0...255, using: &random)
            }
            var pieces: [[UInt8]] = []
            var start = 0
            while start < bytes.count {
                let end = min(bytes.count, start + Int.random(in: 1...40_000, using: &random))
                pieces.append(Array(bytes[start..<end]))
                start = end
            }
            let sent = pieces
            if round.isMultiple(of: 2) {
                let reading = Task.detached { try RelayScene.receive(server, count: bytes.count) }
                for piece in sent { try client.send(piece) }
                #expect(try await reading.value == bytes)
            } else {
                let writing = Task.detached { for piece in sent { try RelayScene.send(server, piece) } }
                #expect(try client.read(count: bytes.count) == bytes)
                try await writing.value
            }
        }
        close(server)
        #expect(try client.read().isEmpty)
        await scene.relay.stop()
    }

    @Test func serverThatDoesNotReadBlocksTheClient() async throws {
        let scene = try await RelayScene()
        let (client, server) = try scene.pair()
        let sent = client.sendUntilBlocked()
        #expect(sent < Self.maximumHeld, "\(sent)")
        _ = try RelayScene.receive(server, count: sent)
        close(server)
        await scene.relay.stop()
    }

    @Test func clientThatDoesNotReadBlocksTheServer() async throws {
        let scene = try await RelayScene()
        let (client, server) = try scene.pair()
        let sent = RelayScene.fill(server)
        #expect(sent < Self.maximumHeld, "\(sent)")
        #expect(try client.read(count: sent).count == sent)
        close(server)
        await scene.relay.stop()
    }

    @Test func theServersEndArrivesAfterItsBytesWithCloseNotify() async throws {
        let scene = try await RelayScene()
        let (client, server) = try scene.pair()
        let bytes = (0..<50_000).map { UInt8(truncatingIfNeeded: $0) }
        try RelayScene.send(server, bytes)
        close(server)
        #expect(try client.read(count: bytes.count) == bytes)
        #expect(try client.read().isEmpty)
        await scene.relay.stop()
    }

    @Test(arguments: [true, false])
    func theClientsEndReachesTheServerWhichMayStillAnswer(notifies: Bool) async throws {
        let scene = try await RelayScene()
        let (client, server) = try scene.pair()
        try client.send("last")
        if notifies { client.closeNotify() } else { shutdown(client.descriptor, Int32(SHUT_WR)) }
        #expect(try RelayScene.receive(server, count: 4) == Array("last".utf8))
        var byte: UInt8 = 0
        #expect(recv(server, &byte, 1, 0) == 0)
        try RelayScene.send(server, "answer".utf8)
        close(server)
        #expect(try client.read(count: 6) == Array("answer".utf8))
        await scene.relay.stop()
    }

    /// The server closes a connection with unread data. The client must not mistake this for a regular end.
    @Test func aCutConnectionHasNoCloseNotify() async throws {
        let scene = try await RelayScene()
        let (client, server) = try scene.pair()
        try client.send("unread")
        var byte: UInt8 = 0
        try waitUntil("it has come") { recv(server, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT)) == 1 }
        close(server)
        #expect(throws: TLSClient.Failure.truncated) { try client.read() }
        await scene.relay.stop()
    }

    @Test func aClientThatVanishesEndsTheServersConnection() async throws {
        let scene = try await RelayScene()
        let server = try scene.pair().server
        var byte: UInt8 = 0
        #expect(recv(server, &byte, 1, 0) == 0)
        close(server)
        await scene.relay.stop()
    }

    @Test func excessHandshakeClosesTheOldest() async throws {
        let scene = try await RelayScene(maximumHandshakes: 2)
        let silent = try (0..<3).map { _ in try scene.connect() }
        var byte: UInt8 = 0
        #expect(recv(silent[0], &byte, 1, 0) == 0)
        #expect(recv(silent[1], &byte, 1, Int32(MSG_DONTWAIT)) == -1)
        for descriptor in silent { close(descriptor) }
        await scene.relay.stop()
    }

    @Test func aSilentConnectionIsClosedAtTheDeadline() async throws {
        let scene = try await RelayScene(handshakeTimeout: .seconds(1))
        let silent = try scene.connect()
        let start = ContinuousClock.now
        var entry = pollfd(fd: silent, events: Int16(POLLIN), revents: 0)
        #expect(poll(&entry, 1, 15_000) == 1)
        #expect((.milliseconds(900)...Duration.seconds(5)).contains(.now - start))
        close(silent)
        await scene.relay.stop()
    }

    @Test func aPlainRequestIsHandedBackUnread() async throws {
        let scene = try await RelayScene()
        let descriptor = try scene.connect()
        try RelayScene.send(descriptor, "DELETE / HTTP/1.1\r\n".utf8)
        try waitUntil("it is handed back") { scene.plain.withLock { !$0.isEmpty } }
        let back = scene.plain.withLock { $0.removeFirst() }
        #expect(try RelayScene.receive(back, count: 6) == Array("DELETE".utf8))
        close(back)
        close(descriptor)
        await scene.relay.stop()
    }

    @Test func namesOfAVerifiedCertificateAreInTheOrigin() async throws {
        let scene = try await RelayScene(asksForCertificate: true)
        let client = try scene.client(identity: "client")
        try client.send("GET /v1/info ")
        let (descriptor, _, origin) = try scene.server()
        let certificate = try #require(origin.certificate)
        #expect(certificate.commonNames == ["client"] && certificate.dnsNames == ["client.example"])
        #expect(certificate.uris == ["urn:client:1"] && certificate.emails == ["client@example.com"])
        #expect(TimeInterval(certificate.expiry) > Date().timeIntervalSince1970 + 86_000)
        close(descriptor)
        await scene.relay.stop()
    }

    /// With TLS 1.3, the client learns from its first read that its certificate was refused.
    @Test(
        arguments: [("stranger", false), ("stranger", true), ("expired", false), (nil, true)] as [(String?, Bool)]
    ) func aClientWithoutAFittingCertificateIsRefused(identity: String?, requires: Bool) async throws {
        let scene = try await RelayScene(asksForCertificate: true, requires: requires)
        try scene.certificates.make("stranger", "subjectAltName=DNS:client.example", authority: "other-ca")
        try scene.certificates.make("expired", until: Date(timeIntervalSinceNow: -60))
        #expect(throws: (any Error).self) {
            let client = try scene.client(identity: identity)
            try client.send("GET / HTTP/1.1\r\n\r\n")
            _ = try client.read(count: 1)
        }
        await scene.relay.stop()
    }

    @Test func aStopDeliversWhatTheServersHaveSent() async throws {
        let scene = try await RelayScene()
        let (client, server) = try scene.pair()
        try RelayScene.send(server, "goodbye".utf8)
        close(server)
        await scene.relay.stop()
        #expect(try client.read(count: 7) == Array("goodbye".utf8))
    }
}
