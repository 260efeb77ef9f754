import Foundation
import Logging
import TestSupport
import Testing

@testable import Coaty
@testable import CoatyMQTT

@Suite struct PacketProgressTests {
    @Test func onlyAnIncompletePacketCounts() {
        var progress = PacketProgress()
        let first = [1000, 1500].map { progress.bytes($0) }
        progress.complete()
        let second = [9000, 9001].map { progress.bytes($0) }
        #expect(first == [0, 500] && second == [0, 1])
    }

    /// The broker announces a message of 100 MB and sends it slowly. The agent closes the connection long before the
    /// message is complete.
    @Test func connectionOfATooLongPacketIsCut() async throws {
        let listener = try #require(Listener())
        var options = MQTTClientOptions(host: "127.0.0.1", port: listener.port)
        options.maximumPacketSize = 1 << 20
        let agent = try CommunicationManager(
            identity: Identity(name: "Agent"),
            options: CommunicationOptions(mqttClientOptions: options)
        )
        agent.start()
        let sent = try await Task.detached { try listener.sendSlowly(announced: 100_000_000) }.value
        #expect(sent < 50_000_000)
        try waitUntil("the error is known") { agent.connectionError?.reason == .protocol }
        await agent.stop()
    }

    /// A broker that accepts one connection, and sends one packet.
    private final class Listener: Sendable {
        private let socket: Int32
        let port: UInt16

        init?() {
            let socket = Foundation.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_addr.s_addr = inet_addr("127.0.0.1")
            var size = socklen_t(MemoryLayout<sockaddr_in>.size)
            let isListening = withUnsafeMutablePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                    bind(socket, pointer, size) == 0 && listen(socket, 1) == 0
                        && getsockname(socket, pointer, &size) == 0
                }
            }
            guard isListening else { return nil }
            self.socket = socket
            port = UInt16(bigEndian: address.sin_port)
        }

        deinit { close(socket) }

        /// Sends a packet slowly, and returns the number of bytes sent until the connection was closed.
        func sendSlowly(announced: Int) throws -> Int {
            let client = accept(socket, nil, nil)
            defer { close(client) }
            var input = [UInt8](repeating: 0, count: 4096)
            _ = recv(client, &input, input.count, 0)
            var head: [UInt8] = [0x20, 2, 0, 0, 0x30]
            var length = announced
            repeat {
                head.append(UInt8(length % 128) | (length >= 128 ? 0x80 : 0))
                length /= 128
            } while length > 0
            head += [0, 1, UInt8(ascii: "t")]
            guard send(client, head, head.count, Int32(MSG_NOSIGNAL)) == head.count else { return 0 }
            let piece = [UInt8](repeating: 0, count: 64 << 10)
            var sent = 0
            while sent < announced {
                let count = send(client, piece, piece.count, Int32(MSG_NOSIGNAL))
                guard count > 0 else { break }
                sent += count
                usleep(5000)
            }
            return sent
        }
    }
}
