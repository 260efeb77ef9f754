import Glibc
import TestSupport
import Testing

@testable import Edge

/// Reasons of failed handshakes.
@Suite(.exclusive) struct HandshakeFailureTests {
    /// The first bytes of a ClientHello.
    private static let hello: [UInt8] = [22, 3, 1, 0, 200, 1, 0, 0, 196, 3, 3]

    /// Sends bytes on a new connection, and expects one failure with the given reason.
    private func expect(
        _ reason: HandshakeFailure,
        _ scene: RelayScene,
        after bytes: [UInt8] = [],
        closes: Bool = false
    ) throws {
        let before = scene.relay.failures
        let descriptor = try scene.connect()
        try RelayScene.send(descriptor, bytes)
        if closes { close(descriptor) }
        try waitUntil("\(reason) is counted") { scene.relay.failures[reason] == (before[reason] ?? 0) + 1 }
        #expect(scene.relay.failures.filter { $0.key != reason } == before.filter { $0.key != reason })
        if !closes { close(descriptor) }
    }

    @Test func eachFailureHasItsReason() async throws {
        let scene = try await RelayScene(handshakeTimeout: .seconds(2), asksForCertificate: true)
        try expect(.plainText, scene, after: Array("GET / HTTP/1.1\r\n".utf8))
        try expect(.tls, scene, after: [22, 3, 1, 0, 4, 1, 2, 3, 4])
        try expect(.tls, scene, after: [0, 1, 2, 3, 4, 5])
        try expect(.closed, scene, closes: true)
        try expect(.closed, scene, after: Self.hello, closes: true)
        try expect(.timeout, scene)
        try expect(.timeout, scene, after: Self.hello)
        #expect(scene.relay.served == 0)
        // A client that does not trust the certificate sends an alert.
        #expect(throws: TLSClient.Failure.handshake) {
            try TLSClient(descriptor: scene.connect(), authorities: scene.certificates.path("other-ca.pem"))
        }
        try waitUntil("it is counted") { scene.relay.failures[.tls] == 3 }
        // The client disconnects after the handshake, before it has sent a request.
        _ = try scene.client()
        try waitUntil("it is counted") { scene.relay.failures[.closed] == 3 }
        await scene.relay.stop()
    }

    @Test func aClientThatIsSupersededIsEvicted() async throws {
        let scene = try await RelayScene(maximumHandshakes: 1)
        let silent = try (0..<3).map { _ in try scene.connect() }
        try waitUntil("two are counted") { scene.relay.failures[.evicted] == 2 }
        for descriptor in silent { close(descriptor) }
        await scene.relay.stop()
    }

    @Test func stopIsNotAFailure() async throws {
        let scene = try await RelayScene()
        let silent = try scene.connect()
        // This connection is accepted later, so the silent one is already registered.
        let pair = try scene.pair()
        await scene.relay.stop()
        var byte: UInt8 = 0
        #expect(recv(silent, &byte, 1, 0) == 0)
        #expect(scene.relay.failures.isEmpty && scene.relay.served == 1)
        for descriptor in [silent, pair.server] { close(descriptor) }
    }
}
