import Dispatch
import Foundation
import Logging
import Synchronization
import TestSupport
import WebSocketServer

/// A started server that listens on a free port, and the calls that its handler received. `sendBuffer` limits how much
/// the kernel keeps for a client that does not read.
final class Fixture: Sendable {
    let server: WebSocketServer
    let handler: RecordingHandler
    let port: UInt16
    private let listener: Int32
    private let accepting = DispatchGroup()

    init(
        _ configuration: WebSocketServer.Configuration = .init(),
        handler: RecordingHandler = RecordingHandler(),
        peer: String = "127.0.0.1",
        context: (any Sendable & AnyObject)? = nil,
        sendBuffer: Int32? = nil
    ) throws {
        self.handler = handler
        server = WebSocketServer(
            configuration: configuration,
            handler: handler,
            logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
        )
        try server.start()
        (listener, port) = try Self.listen()
        accepting.enter()
        let thread = Thread { [listener, server, accepting] in
            while true {
                let descriptor = accept(listener, nil, nil)
                if descriptor < 0 { break }
                if var size = sendBuffer {
                    setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &size, socklen_t(MemoryLayout<Int32>.size))
                }
                server.adopt(descriptor, peer: peer, context: context)
            }
            accepting.leave()
        }
        thread.start()
    }

    deinit {
        // Ends the pending accept(); the listener must not be closed while another thread uses its descriptor.
        shutdown(listener, Int32(SHUT_RDWR))
        accepting.wait()
        close(listener)
        server.stop()
    }

    func open(_ path: String = "/", headers: [(String, String)] = []) throws -> WebSocketClient {
        try WebSocketClient.open(port: port, path: path, headers: headers)
    }

    private static func listen() throws -> (Int32, UInt16) {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let result = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                guard bind(descriptor, pointer, length) == 0, Glibc.listen(descriptor, 512) == 0 else { return false }
                return getsockname(descriptor, pointer, &length) == 0
            }
        }
        guard result else { throw WebSocketClient.Failure.socket(errno) }
        return (descriptor, UInt16(bigEndian: address.sin_port))
    }
}

/// A handler that echoes messages and records every call.
final class RecordingHandler: WebSocketHandler {
    struct Request: Sendable {
        var path: String
        var peer: String
        var context: (any Sendable & AnyObject)?
        var queryItems: [String]
        var offered: [String]
        var chosen: String?
        var headers: [String: String]
    }

    struct Record: Sendable {
        var requests: [Request] = []
        var open: [WebSocketConnection] = []
        var messages: [WebSocketMessage] = []
        var drains = 0
        var closes: [UInt64: UInt16] = [:]
    }

    private let record = Mutex(Record())
    private let refusal: (@Sendable (String) -> WebSocketDecision?)?
    private let onMessage: (@Sendable (WebSocketMessage, WebSocketConnection) -> Void)?
    private let onDrained: (@Sendable (WebSocketConnection) -> Void)?
    private let headerNames: [String]

    init(
        headerNames: [String] = [],
        refusal: (@Sendable (String) -> WebSocketDecision?)? = nil,
        onMessage: (@Sendable (WebSocketMessage, WebSocketConnection) -> Void)? = nil,
        onDrained: (@Sendable (WebSocketConnection) -> Void)? = nil
    ) {
        self.headerNames = headerNames
        self.refusal = refusal
        self.onMessage = onMessage
        self.onDrained = onDrained
    }

    var current: Record { record.withLock { $0 } }

    /// Returns whether the record satisfies `condition` within ten seconds.
    func waits(_ condition: (Record) -> Bool) -> Bool {
        eventually { condition(current) }
    }

    func handshake(_ request: borrowing WebSocketHandshake) -> WebSocketDecision {
        var headers: [String: String] = [:]
        for name in headerNames {
            headers[name] = request.header(name)
        }
        let seen = Request(
            path: request.path,
            peer: request.peer,
            context: request.context,
            queryItems: request.queryItems.map { "\($0.name)=\($0.value)" },
            offered: request.offeredSubprotocols,
            chosen: request.subprotocol,
            headers: headers
        )
        record.withLock { $0.requests.append(seen) }
        if let decision = refusal?(request.path) { return decision }
        return .accept { [self] connection in
            record.withLock { $0.open.append(connection) }
        }
    }

    func received(_ message: WebSocketMessage, on connection: WebSocketConnection) {
        record.withLock { $0.messages.append(message) }
        if let onMessage {
            onMessage(message, connection)
            return
        }
        switch message {
        case .text(let text): _ = connection.offer(WebSocketFrame(text: text))
        case .binary(let bytes): _ = connection.offer(WebSocketFrame(binary: bytes))
        }
    }

    func drained(_ connection: WebSocketConnection) {
        record.withLock { $0.drains += 1 }
        onDrained?(connection)
    }

    func closed(_ connection: WebSocketConnection, code: UInt16) {
        record.withLock {
            $0.open.removeAll { $0.id == connection.id }
            $0.closes[connection.id] = code
        }
    }
}

/// Returns whether `condition` holds in time.
func eventually(within seconds: Double = 10, _ condition: () -> Bool) -> Bool {
    let deadline = Date(timeIntervalSinceNow: seconds)
    while !condition() {
        if Date() > deadline { return false }
        usleep(2000)
    }
    return true
}
