import Foundation
import Glibc
import Logging
import Synchronization
import WebSocketServer

/// Serves an echo on 127.0.0.1 until it is killed: `websocket-echo [--compression] [port]`. Uses a free port by
/// default, and prints the port.
@main
final class WebSocketEcho: WebSocketHandler {
    /// Frames that do not fit into the queue of a connection yet, by its id. The test suite limits their number.
    private let waiting = Mutex<[UInt64: [WebSocketFrame]]>([:])

    static func main() throws {
        var arguments = CommandLine.arguments.dropFirst()
        var configuration = WebSocketServer.Configuration()
        configuration.allowsCompression = arguments.first == "--compression"
        if configuration.allowsCompression {
            arguments.removeFirst()
        }
        // The longest message of the test suite has 16 MiB.
        configuration.maximumMessageSize = 32 * 1024 * 1024
        guard arguments.count <= 1, let port = UInt16(arguments.first ?? "0"), let listener = listen(on: port) else {
            FileHandle.standardError.write(Data("usage: websocket-echo [--compression] [port that is free]\n".utf8))
            exit(2)
        }
        let server = WebSocketServer(
            configuration: configuration,
            handler: WebSocketEcho(),
            logger: Logger(label: "websocket-echo")
        )
        try server.start()
        print(listener.port)
        fflush(nil)
        while case let descriptor = accept(listener.descriptor, nil, nil), descriptor >= 0 {
            server.adopt(descriptor, peer: "")
        }
    }

    func handshake(_ request: borrowing WebSocketHandshake) -> WebSocketDecision {
        .accept { _ in }
    }

    func received(_ message: WebSocketMessage, on connection: WebSocketConnection) {
        let frame =
            switch message {
            case .text(let text): WebSocketFrame(text: text)
            case .binary(let bytes): WebSocketFrame(binary: bytes)
            }
        waiting.withLock { $0[connection.id, default: []].append(frame) }
        drained(connection)
    }

    func drained(_ connection: WebSocketConnection) {
        waiting.withLock { waiting in
            let taken = waiting[connection.id]?.prefix { connection.offer($0) == .queued }.count ?? 0
            waiting[connection.id]?.removeFirst(taken)
        }
    }

    func closed(_ connection: WebSocketConnection, code: UInt16) {
        waiting.withLock { $0[connection.id] = nil }
    }

    private static func listen(on port: UInt16) -> (descriptor: Int32, port: UInt16)? {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isListening = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, length) == 0 && Glibc.listen(descriptor, 512) == 0
                    && getsockname(descriptor, $0, &length) == 0
            }
        }
        return isListening ? (descriptor, UInt16(bigEndian: address.sin_port)) : nil
    }
}
