import Foundation
import Glibc
import TestSupport
import Testing

@testable import CoatyGateway

/// Connections whose client makes no progress, over TCP: they must not keep descriptors.
@Suite struct RelayEndTests {
    private static let webSocket = "GET /v1/ws HTTP/1.1\r\n"

    /// The number of descriptors that this process has open.
    private func descriptors() throws -> Int {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
    }

    @Test(arguments: [true, false]) func aClientThatDoesNotReadIsResetAfterTheServersEnd(closes: Bool) async throws {
        let scene = try await RelayScene(flushTimeout: .milliseconds(300))
        let (client, server) = try scene.pair(scene.connectOverTCP(), request: Self.webSocket)
        _ = RelayScene.fill(server)
        // As long as the server goes on, the client may take its time.
        #expect(!client.isReset(within: 700))
        let open = try descriptors()
        if closes { close(server) } else { shutdown(server, Int32(SHUT_WR)) }
        #expect(client.isReset(within: 10_000))
        // The client's socket, and both ends of the pair.
        try waitUntil("the descriptors are closed") { try descriptors() <= open - (closes ? 3 : 2) }
        if !closes { close(server) }
        await scene.relay.stop()
    }

    /// The client has stopped sending before, so that both directions of the pair are shut when the server closes.
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

    /// The server has not read everything: what has come must not look complete, not even after the end was sent.
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

    /// Waits for the end of the stream, and closes it.
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

    /// Without a FIN, as after a power failure.
    @Test func aClientOfHTTPThatVanishesIsCut() async throws {
        let scene = try await RelayScene(userTimeout: 1)
        let (client, server) = try scene.pair(scene.connectOverTCP())
        client.vanish()
        try RelayScene.send(server, "response".utf8)
        expectEnd(of: server)
        withExtendedLifetime(client) {}
        await scene.relay.stop()
    }

    /// The server of WebSockets notices by its pings, and closes its end.
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
