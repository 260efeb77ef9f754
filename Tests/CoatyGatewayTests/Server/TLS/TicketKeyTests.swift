import Glibc
import TestSupport
import Testing

@testable import Access
@testable import Edge

/// Rotation of the keys for session tickets.
@Suite(.exclusive) struct TicketKeyTests {
    /// Returns a connection that has received a ticket.
    private func client(_ scene: RelayScene, resuming earlier: TLSClient? = nil) throws -> TLSClient {
        let client = try scene.client(identity: "client", resuming: earlier)
        try client.send("GET /v1/info ")
        let (server, _, origin) = try scene.server()
        #expect(origin.certificate?.commonNames == ["client"])
        try RelayScene.send(server, "x".utf8)
        #expect(try client.read(count: 1) == Array("x".utf8))
        close(server)
        return client
    }

    @Test func newKeysEndTheSessionsOfOldOnes() async throws {
        // A new context must have the same intermediate authorities and client authorities.
        let scene = try await RelayScene(
            hasIntermediateAuthority: true,
            asksForCertificate: true,
            requires: true,
            ticketKeyLifetime: .zero
        )
        let first = try client(scene)
        #expect(!first.isResumed)
        #expect(try client(scene, resuming: first).isResumed)
        let context = scene.store.context
        await scene.store.start()
        try waitUntil("there is a new context") { scene.store.context !== context }
        await scene.store.stop()
        // A running check may renew the key once more.
        var last = scene.store.context
        try waitUntil("no check runs any more") {
            usleep(50_000)
            defer { last = scene.store.context }
            return last === scene.store.context
        }
        let second = try client(scene, resuming: first)
        #expect(!second.isResumed && second.peerDigest == first.peerDigest)
        #expect(try client(scene, resuming: second).isResumed)
        await scene.relay.stop()
    }
}
