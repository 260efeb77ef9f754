import Foundation
import Glibc
import TestSupport
import Testing

/// Connections over TCP whose client makes no progress. They must not keep descriptors open.
@Suite(.exclusive) struct RelayEndTests {
    private static let webSocket = "GET /v1/ws HTTP/1.1\r\n"

    /// Returns the number of open descriptors of this process.
    private func descriptors() throws -> Int {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
    }

    @Test(arguments: [true, false]) func aClientThatDoesNotReadIsResetAfterTheServersEnd(closes: Bool) async throws {
        let scene = try await RelayScene(flushTimeout: .milliseconds(300))
        let (client, server) = try scene.pair(scene.connectOverTCP(), request: Self.webSocket)
        _ = RelayScene.fill(server)
        // While the server's end is open, the client may be slow.
        #expect(!client.isReset(within: 700))
        let open = try descriptors()
        if closes { close(server) } else { shutdown(server, Int32(SHUT_WR)) }
        #expect(client.isReset(within: 10_000))
        // The client's socket and both ends of the pair.
        try waitUntil("the descriptors are closed") { try descriptors() <= open - (closes ? 3 : 2) }
        if !closes { close(server) }
        await scene.relay.stop()
    }

    /// The client has ended its direction before, so both directions of the pair are shut down when the server closes.
    @Test func aClientThatHasEndedAndDoesNotReadIsResetAfterTheServersEnd() async throws {
        let scene = try await RelayScene(flushTimeout: .milliseconds(300))
        let (client, server) = try scene.pair(scene.connectOverTCP(), request: Self.webSocket)
        client.closeNotify()
        var byte: UInt8 = 0
        #expect(recv(server, &byte, 1, 0) == 0)
        _ = RelayScene.fill(server)
        #expect(!client.isReset(within: 700))
        close(server)
        #expect(client.isReset(within: 10_000))
        await scene.relay.stop()
    }

    /// The server closes with unread data: the relay resets the connection, so that the received data does not look
    /// complete.
    @Test func aCutConnectionIsReset() async throws {
        let scene = try await RelayScene()
        let (client, server) = try scene.pair(scene.connectOverTCP())
        try client.send("unread")
        var byte: UInt8 = 0
        try waitUntil("it has come") { recv(server, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT)) == 1 }
        close(server)
        #expect(throws: TLSClient.Failure.truncated) { try client.read() }
        #expect(client.isReset(within: 10_000))
        await scene.relay.stop()
    }

    /// Waits for the end of the stream, and closes the descriptor.
    private func expectEnd(of server: Int32) {
        var byte: UInt8 = 0
        let count = recv(server, &byte, 1, 0)
        #expect(count == 0 || count < 0 && errno != EAGAIN)
        close(server)
    }

    /// HTTP has no heartbeat, so the server does not notice that the client has stopped reading.
    @Test func aClientOfHTTPThatAcknowledgesNothingIsCut() async throws {
        let scene = try await RelayScene(userTimeout: 1)
        let (client, server) = try scene.pair(scene.connectOverTCP())
        _ = RelayScene.fill(server)
        expectEnd(of: server)
        withExtendedLifetime(client) {}
        await scene.relay.stop()
    }

    /// The client sends no FIN, as after a power failure.
    @Test func aClientOfHTTPThatVanishesIsCut() async throws {
        let scene = try await RelayScene(userTimeout: 1)
        let (client, server) = try scene.pair(scene.connectOverTCP())
        client.vanish()
        try RelayScene.send(server, "response".utf8)
        expectEnd(of: server)
        withExtendedLifetime(client) {}
        await scene.relay.stop()
    }

    /// The WebSocket server notices the loss by its pings, and closes its end.
    @Test(arguments: [true, false])
    func webSocketOfLostClientEndsAfterTheServer(isFull: Bool) async throws {
        let scene = try await RelayScene(flushTimeout: .milliseconds(300))
        let (client, server) = try scene.pair(scene.connectOverTCP(), request: Self.webSocket)
        client.vanish()
        if isFull { _ = RelayScene.fill(server) } else { try RelayScene.send(server, "ping".utf8) }
        let open = try descriptors()
        close(server)
        try waitUntil("the descriptors are closed", within: 10) { try descriptors() <= open - 3 }
        withExtendedLifetime(client) {}
        await scene.relay.stop()
    }
}
