public import Foundation

/// A blocking RFC 6455 client over a plain socket. It checks little, and can send invalid data.
public final class WebSocketClient {
    /// A reason why a call failed.
    public enum Failure: Error {
        /// A socket call failed, with this errno.
        case socket(Int32)
        /// The peer closed the connection.
        case ended
        /// The deadline passed.
        case timedOut
        /// The server's answer or frame is malformed.
        case malformed(String)
        /// The server answered ``open(port:path:headers:deadline:)`` with another status than 101.
        case refused(Response)
    }

    /// An HTTP response.
    public struct Response: Sendable {
        /// The status code.
        public var status: Int
        /// The header fields by lowercase name.
        public var headers: [String: String]
        /// The body; its length is that of Content-Length.
        public var body: [UInt8]

        /// The body as text.
        public var text: String { String(decoding: body, as: UTF8.self) }
    }

    /// A message or control frame of the server.
    public enum Event: Equatable, Sendable {
        case text(String)
        case binary([UInt8])
        case ping([UInt8])
        case pong([UInt8])
        /// The code is 1005 if the frame has none.
        case close(code: UInt16, reason: String)
    }

    /// The nonce of RFC 6455, 1.3.
    public static let key = "dGhlIHNhbXBsZSBub25jZQ=="
    /// The answer that a server must give to ``key``.
    public static let accept = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="

    private let descriptor: Int32
    private var buffer: [UInt8] = []
    private var consumed = 0
    /// The position where the message being read begins. If the deadline passes before its end, the next call reads it
    /// again.
    private var start: Int?
    /// The fragments of a message before a control frame.
    private var fragments: (opcode: UInt8, bytes: [UInt8]) = (0, [])

    /// The answer to the handshake.
    public private(set) var response = Response(status: 0, headers: [:], body: [])

    /// Connects to 127.0.0.1. `receiveBuffer` limits how much the kernel receives for a client that does not read.
    public init(port: UInt16, receiveBuffer: Int32? = nil) throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else { throw Failure.socket(errno) }
        if var size = receiveBuffer {
            setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<Int32>.size))
        }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        let result = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard result == 0 else { throw Failure.socket(errno) }
    }

    deinit {
        close(descriptor)
    }

    /// Opens a connection; throws ``Failure/refused(_:)`` if the server refuses it.
    public static func open(
        port: UInt16,
        path: String = "/",
        headers: [(String, String)] = [],
        deadline: Date = Date(timeIntervalSinceNow: 10)
    ) throws -> WebSocketClient {
        let client = try WebSocketClient(port: port)
        let response = try client.shakeHands(path: path, headers: headers, deadline: deadline)
        guard response.status == 101 else { throw Failure.refused(response) }
        return client
    }

    /// Sends a handshake and reads the response, whatever its status. `headers` replace the default fields of the same
    /// name; an empty value removes the field.
    @discardableResult
    public func shakeHands(
        method: String = "GET",
        path: String = "/",
        headers: [(String, String)] = [],
        deadline: Date = Date(timeIntervalSinceNow: 10)
    ) throws -> Response {
        var fields = [
            ("Host", "127.0.0.1"), ("Upgrade", "websocket"), ("Connection", "Upgrade"),
            ("Sec-WebSocket-Version", "13"), ("Sec-WebSocket-Key", Self.key),
        ]
        for (name, _) in headers {
            fields.removeAll { $0.0.lowercased() == name.lowercased() }
        }
        fields += headers.filter { !$0.1.isEmpty }
        let lines = fields.map { "\($0.0): \($0.1)\r\n" }.joined()
        try sendRaw(Array("\(method) \(path) HTTP/1.1\r\n\(lines)\r\n".utf8))
        return try receiveResponse(deadline: deadline, hasBody: method != "HEAD")
    }

    /// Reads an HTTP response, with its body if it has a Content-Length.
    @discardableResult
    public func receiveResponse(
        deadline: Date = Date(timeIntervalSinceNow: 10),
        hasBody: Bool = true
    ) throws -> Response {
        var head: [UInt8] = []
        while !head.suffix(4).elementsEqual("\r\n\r\n".utf8) {
            head += try take(1, deadline: deadline)
        }
        var lines = String(decoding: head, as: UTF8.self).components(separatedBy: "\r\n")
        let statusLine = lines.removeFirst().split(separator: " ", maxSplits: 2)
        guard statusLine.count >= 2, statusLine[0].hasPrefix("HTTP/1."), let status = Int(statusLine[1]) else {
            throw Failure.malformed("status line")
        }
        var headers: [String: String] = [:]
        for line in lines {
            let parts = line.split(separator: ":", maxSplits: 1)
            guard parts.count == 2 else { continue }
            headers[parts[0].lowercased()] = parts[1].trimmingCharacters(in: .whitespaces)
        }
        let length = hasBody ? Int(headers["content-length"] ?? "") ?? 0 : 0
        response = Response(status: status, headers: headers, body: try take(length, deadline: deadline))
        return response
    }

    /// Sends a text message in one frame.
    public func sendText(_ text: String) throws {
        try sendFrame(opcode: 1, payload: Array(text.utf8))
    }

    /// Sends a binary message in one frame.
    public func sendBinary(_ payload: [UInt8]) throws {
        try sendFrame(opcode: 2, payload: payload)
    }

    /// Sends a ping.
    public func sendPing(_ payload: [UInt8] = []) throws {
        try sendFrame(opcode: 9, payload: payload)
    }

    /// Sends a pong.
    public func sendPong(_ payload: [UInt8] = []) throws {
        try sendFrame(opcode: 10, payload: payload)
    }

    /// Sends a close frame.
    public func sendClose(code: UInt16, reason: String = "") throws {
        try sendFrame(opcode: 8, payload: [UInt8(code >> 8), UInt8(code & 0xff)] + Array(reason.utf8))
    }

    /// Sends one frame.
    public func sendFrame(opcode: UInt8, payload: [UInt8], isFinal: Bool = true) throws {
        try sendRaw(Self.frame(opcode: opcode, payload: payload, isFinal: isFinal))
    }

    /// Returns the bytes of a frame, masked according to RFC 6455, 5.3.
    public static func frame(opcode: UInt8, payload: [UInt8], isFinal: Bool = true) -> [UInt8] {
        var frame: [UInt8] = [(isFinal ? 0x80 : 0) | opcode]
        switch payload.count {
        case ..<126:
            frame.append(0x80 | UInt8(payload.count))
        case ..<65536:
            frame += [0x80 | 126, UInt8(payload.count >> 8), UInt8(payload.count & 0xff)]
        default:
            frame.append(0x80 | 127)
            frame += (0..<8).map { UInt8(truncatingIfNeeded: payload.count >> (8 * (7 - $0))) }
        }
        let mask: [UInt8] = [0x37, 0xfa, 0x21, 0x3d]
        frame += mask
        frame += payload.enumerated().map { $0.element ^ mask[$0.offset & 3] }
        return frame
    }

    /// Sends bytes unchanged.
    public func sendRaw(_ bytes: [UInt8]) throws {
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes { buffer in
                send(descriptor, buffer.baseAddress?.advanced(by: sent), bytes.count - sent, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { throw Failure.socket(errno) }
            sent += count
        }
    }

    /// Returns the next message or control frame; the fragments of a message are joined. If the deadline passes in the
    /// middle of a message, the next call reads the message from its beginning.
    public func receive(deadline: Date = Date(timeIntervalSinceNow: 10)) throws -> Event {
        start = consumed
        let before = fragments
        defer { start = nil }
        do {
            return try receiveWhole(deadline: deadline)
        } catch {
            consumed = start ?? 0
            fragments = before
            throw error
        }
    }

    private func receiveWhole(deadline: Date) throws -> Event {
        while true {
            let head = try take(2, deadline: deadline)
            guard head[1] & 0x80 == 0 else { throw Failure.malformed("masked by the server") }
            var length = Int(head[1])
            if length > 125 {
                length = try take(length == 126 ? 2 : 8, deadline: deadline).reduce(0) { $0 << 8 | Int($1) }
            }
            let payload = try take(length, deadline: deadline)
            switch head[0] & 0x0f {
            case 8:
                guard payload.count >= 2 else { return .close(code: 1005, reason: "") }
                return .close(
                    code: UInt16(payload[0]) << 8 | UInt16(payload[1]),
                    reason: String(decoding: payload.dropFirst(2), as: UTF8.self)
                )
            case 9: return .ping(payload)
            case 10: return .pong(payload)
            case let opcode:
                if opcode != 0 {
                    fragments.opcode = opcode
                }
                fragments.bytes += payload
            }
            if head[0] & 0x80 != 0 {
                defer { fragments = (0, []) }
                let (opcode, bytes) = fragments
                return opcode == 1 ? .text(String(decoding: bytes, as: UTF8.self)) : .binary(bytes)
            }
        }
    }

    /// Returns whether the server ends the connection before the deadline. Data received until then is discarded.
    public func isEnded(by deadline: Date = Date(timeIntervalSinceNow: 10)) -> Bool {
        do {
            while true {
                _ = try take(1, deadline: deadline)
            }
        } catch Failure.timedOut {
            return false
        } catch {
            return true
        }
    }

    private func take(_ count: Int, deadline: Date) throws -> [UInt8] {
        while buffer.count - consumed < count {
            var poller = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            let patience = deadline.timeIntervalSinceNow
            guard patience > 0, poll(&poller, 1, Int32(min(patience * 1000 + 1, 60_000))) > 0 else {
                throw Failure.timedOut
            }
            var chunk = [UInt8](repeating: 0, count: 65536)
            let received = recv(descriptor, &chunk, chunk.count, 0)
            guard received >= 0 else { throw Failure.socket(errno) }
            guard received > 0 else { throw Failure.ended }
            let done = start ?? consumed
            buffer.removeFirst(done)
            consumed -= done
            if start != nil { start = 0 }
            buffer += chunk[..<received]
        }
        defer { consumed += count }
        return Array(buffer[consumed..<consumed + count])
    }
}
