import Foundation
import Glibc

/// A blocking TCP client that sends exactly the bytes that a test passes. Every read has a deadline.
public final class RawConnection {
    /// An error of a connection.
    public enum Failure: Error {
        /// A call of the operating system failed.
        case system(call: String, errno: Int32)
        /// No data arrived before the deadline.
        case timeout
        /// The peer closed the connection before all requested data arrived.
        case closed
        /// The received data is not an HTTP response.
        case notHTTP(String)
    }

    /// An HTTP response.
    public struct Response {
        /// The status code.
        public let status: Int
        /// The header fields by lowercase name; the values of repeated fields are joined with `, `.
        public let headers: [String: String]
        /// The body without transfer coding.
        public let body: [UInt8]

        /// The body as text.
        public var text: String { String(decoding: body, as: UTF8.self) }
        /// The body as a JSON object, or `nil`.
        public var json: [String: Any]? { try? JSONSerialization.jsonObject(with: Data(body)) as? [String: Any] }
    }

    private let descriptor: Int32
    private var buffer: [UInt8] = []

    /// Connects to a port on 127.0.0.1.
    ///
    /// - Parameter receiveBuffer: The size of the socket's receive buffer in bytes; nil for the system's default.
    public init(port: UInt16, receiveBuffer: Int32? = nil) throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else { throw Failure.system(call: "socket", errno: errno) }
        var one: Int32 = 1
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
        if var size = receiveBuffer {
            setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<Int32>.size))
        }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        let result = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        // `deinit` closes the descriptor even if the initializer throws. A second close could hit another owner's
        // descriptor.
        guard result == 0 else { throw Failure.system(call: "connect", errno: errno) }
    }

    /// Takes over a connected socket.
    public init(descriptor: Int32) {
        self.descriptor = descriptor
    }

    deinit { Glibc.close(descriptor) }

    /// Sends all of `text`.
    public func send(_ text: String) throws { try send(Array(text.utf8)) }

    /// Sends all of `bytes`.
    public func send(_ bytes: [UInt8]) throws {
        var sent = 0
        while sent < bytes.count {
            let count = bytes[sent...].withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { throw Failure.system(call: "send", errno: errno) }
            sent += count
        }
    }

    /// Shuts down the sending direction of the connection.
    public func shutdownSending() { shutdown(descriptor, Int32(SHUT_WR)) }

    /// Reads available bytes; returns an empty array if the peer has closed the connection.
    public func read(within seconds: Double = 10) throws -> [UInt8] {
        if !buffer.isEmpty {
            defer { buffer = [] }
            return buffer
        }
        return try receive(until: .now() + seconds)
    }

    /// Reads exactly `count` bytes.
    public func read(count: Int, within seconds: Double = 10) throws -> [UInt8] {
        let deadline = DispatchTime.now() + seconds
        while buffer.count < count { try fill(until: deadline) }
        defer { buffer.removeFirst(count) }
        return Array(buffer[..<count])
    }

    /// Reads up to and including the next line end, and returns the line without it.
    public func readLine(within seconds: Double = 10) throws -> String {
        let deadline = DispatchTime.now() + seconds
        while true {
            if let end = buffer.firstIndex(of: UInt8(ascii: "\n")) {
                var line = String(decoding: buffer[..<end], as: UTF8.self)
                buffer.removeFirst(end + 1)
                if line.hasSuffix("\r") { line.removeLast() }
                return line
            }
            try fill(until: deadline)
        }
    }

    /// Returns whether the peer closes the connection before the deadline without sending more data.
    public func isClosedByPeer(within seconds: Double = 10) throws -> Bool {
        do {
            return try read(within: seconds).isEmpty
        } catch Failure.timeout {
            return false
        } catch Failure.system(call: _, errno: ECONNRESET) {
            return true
        }
    }

    /// Reads the status line and the header fields of a response.
    public func readHead(within seconds: Double = 10) throws -> (status: Int, headers: [String: String]) {
        let statusLine = try readLine(within: seconds)
        let parts = statusLine.split(separator: " ")
        guard parts.count >= 2, parts[0].hasPrefix("HTTP/1."), let status = Int(parts[1]) else {
            throw Failure.notHTTP(statusLine)
        }
        var headers: [String: String] = [:]
        while true {
            let line = try readLine(within: seconds)
            if line.isEmpty { return (status, headers) }
            guard let colon = line.firstIndex(of: ":") else { throw Failure.notHTTP(line) }
            let name = line[..<colon].lowercased()
            let value = line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces)
            headers[name] = headers[name].map { "\($0), \(value)" } ?? value
        }
    }

    /// Reads one chunk of a chunked body. The last chunk is empty; its trailer is read, too.
    public func readChunk(within seconds: Double = 10) throws -> [UInt8] {
        let line = try readLine(within: seconds)
        guard let size = Int(line, radix: 16) else { throw Failure.notHTTP(line) }
        let chunk = try read(count: size, within: seconds)
        _ = try readLine(within: seconds)
        return chunk
    }

    /// Reads a whole response. Informational responses (1xx) other than 101 are skipped.
    ///
    /// - Parameter toHead: Whether it answers a HEAD request and therefore has no body.
    public func readResponse(toHead: Bool = false, within seconds: Double = 10) throws -> Response {
        let (status, headers) = try readHead(within: seconds)
        if (100..<200).contains(status), status != 101 { return try readResponse(toHead: toHead, within: seconds) }
        var body: [UInt8] = []
        if toHead || status == 204 || status == 304 || status == 101 {
            // No body follows.
        } else if headers["transfer-encoding"]?.lowercased() == "chunked" {
            while case let chunk = try readChunk(within: seconds), !chunk.isEmpty { body += chunk }
        } else if let length = headers["content-length"].flatMap({ Int($0) }) {
            body = try read(count: length, within: seconds)
        } else {
            while case let bytes = try read(within: seconds), !bytes.isEmpty { body += bytes }
        }
        return Response(status: status, headers: headers, body: body)
    }

    private func fill(until deadline: DispatchTime) throws {
        let bytes = try receive(until: deadline)
        guard !bytes.isEmpty else { throw Failure.closed }
        buffer += bytes
    }

    private func receive(until deadline: DispatchTime) throws -> [UInt8] {
        let now = DispatchTime.now()
        let left = deadline > now ? (deadline.uptimeNanoseconds - now.uptimeNanoseconds) / 1_000_000 : 0
        var poll = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        guard Glibc.poll(&poll, 1, Int32(clamping: left)) > 0 else { throw Failure.timeout }
        var bytes = [UInt8](repeating: 0, count: 64 * 1024)
        let count = recv(descriptor, &bytes, bytes.count, 0)
        guard count >= 0 else { throw Failure.system(call: "recv", errno: errno) }
        return Array(bytes[..<count])
    }
}
