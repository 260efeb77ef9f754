import Foundation

/// A client for Server-Sent Events (HTML Living Standard, 9.2).
public final class EventStreamClient {
    /// A received event.
    public struct Event {
        /// The id that the event itself has; nil if it has none.
        public let id: String?
        /// The event's name.
        public let name: String
        /// The event's data, a JSON object.
        public let json: [String: Any]
        /// The event's data as text.
        public let text: String
    }

    /// The connection, for tests of connection errors.
    public let connection: RawConnection
    /// Status and header fields of the response.
    public let head: (status: Int, headers: [String: String])
    private var buffer: [UInt8] = []

    /// Requests a stream; any response status is accepted.
    public init(
        port: UInt16,
        path: String,
        headers: [(String, String)] = [],
        receiveBuffer: Int32? = nil
    ) throws {
        connection = try RawConnection(port: port, receiveBuffer: receiveBuffer)
        let fields = headers.map { "\($0.0): \($0.1)\r\n" }.joined()
        try connection.send("GET \(path) HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\(fields)\r\n")
        head = try connection.readHead()
    }

    /// Returns the next event, or nil at the end of the stream. Comments are skipped.
    ///
    /// - Throws: `RawConnection.Failure` if no event arrives in time; the stream cannot be used afterwards.
    public func next(within seconds: Double = 30) throws -> Event? {
        // One deadline for all chunks, because the gateway sends heartbeats.
        let deadline = Date(timeIntervalSinceNow: seconds)
        while true {
            while let end = firstBlankLine() {
                let block = String(decoding: buffer[..<end], as: UTF8.self)
                buffer.removeFirst(end + 2)
                if let event = Self.event(block) { return event }
            }
            let chunk = try connection.readChunk(within: max(0, deadline.timeIntervalSinceNow))
            guard !chunk.isEmpty else { return nil }
            buffer += chunk
        }
    }

    private func firstBlankLine() -> Int? {
        buffer.withUnsafeBytes { bytes in
            guard let start = bytes.baseAddress else { return nil }
            var offset = 0
            while let found = memchr(start + offset, Int32(UInt8(ascii: "\n")), bytes.count - offset) {
                offset = UnsafeRawPointer(found) - start + 1
                if offset < bytes.count, bytes[offset] == UInt8(ascii: "\n") { return offset - 1 }
            }
            return nil
        }
    }

    private static func event(_ block: String) -> Event? {
        var fields: [String: String] = [:]
        for line in block.split(separator: "\n") where !line.hasPrefix(":") {
            let name = line.prefix { $0 != ":" }
            let value = line.dropFirst(name.count + 1)
            let text = String(value.hasPrefix(" ") ? value.dropFirst() : value)
            fields[String(name)] = fields[String(name)].map { $0 + "\n" + text } ?? text
        }
        guard let text = fields["data"] else { return nil }
        let json = (try? JSONSerialization.jsonObject(with: Data(text.utf8))) as? [String: Any]
        FrameLog.shared.received(text)
        return Event(id: fields["id"], name: fields["event"] ?? "message", json: json ?? [:], text: text)
    }
}
