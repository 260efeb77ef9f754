import Dispatch
import Glibc
import Logging
import TestSupport
import Testing

@testable import Base
@testable import Edge

@Suite(.exclusive) struct PortListenerTests {
    private struct Connection: Sendable {
        let descriptor: Int32
        let peer: String
        let isWebSocket: Bool
    }

    @Test(arguments: [("127.0.0.1", "127.0.0.1"), ("::", "127.0.0.1"), ("::", "::1"), ("::1", "::1")])
    func handsOverThePeersAddress(host: String, client: String) async throws {
        let (connections, continuation) = AsyncStream.makeStream(of: Connection.self)
        let listener = PortListener(
            host: host,
            port: 0,
            maximumUndecided: 8,
            decisionTimeout: .seconds(10),
            receive: .serve { peek, descriptor, origin in
                guard peek != .http else {
                    close(descriptor)
                    return
                }
                let isWebSocket = peek == .webSocket
                continuation.yield(Connection(descriptor: descriptor, peer: origin.peer, isWebSocket: isWebSocket))
            },
            refuse: { close($0) },
            logger: Logger(label: "test")
        )
        try await listener.start()
        let port = try #require(listener.port)
        var iterator = connections.makeAsyncIterator()
        for (parts, isWebSocket) in [
            (["GET /healthz HTTP/1.1\r\n\r\n"], false), (["GET /r", "eadyz? HTTP/1.1\r\n\r\n"], false),
            (["GET /v1/ws?"], true),
            (["GET /v", "1/ws "], true),
        ] {
            let socket = try connect(to: client, port: port)
            defer { close(socket) }
            for part in parts {
                #expect(send(socket, part, part.utf8.count, Int32(MSG_NOSIGNAL)) == part.utf8.count)
                // The listener waits for more bytes if it can't identify the protocol yet.
                if parts.count > 1 { usleep(50_000) }
            }
            let connection = try #require(await iterator.next())
            close(connection.descriptor)
            #expect(connection.peer == client)
            #expect(connection.isWebSocket == isWebSocket)
        }
        await listener.stop()
    }

    @Test func addressOfAnotherFamilyIsEmpty() {
        var storage = sockaddr_storage()
        storage.ss_family = sa_family_t(AF_UNIX)
        #expect(numericAddress(of: storage).isEmpty)
    }

    private func connect(to host: String, port: UInt16) throws -> Int32 {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV
        var found: UnsafeMutablePointer<addrinfo>?
        try #require(getaddrinfo(host, String(port), &hints, &found) == 0)
        defer { freeaddrinfo(found) }
        let address = try #require(found?.pointee)
        let descriptor = socket(address.ai_family, address.ai_socktype, 0)
        try #require(Glibc.connect(descriptor, address.ai_addr, address.ai_addrlen) == 0)
        return descriptor
    }
}
