import CMicroHTTPD
import Glibc

/// The rest of a request that was answered before its body had arrived.
///
/// Many clients send the whole body before they read. If the server closed such a connection after its answer, the
/// kernel would reset it while the client sends, and the client would report an error of the connection instead of the
/// answer. So the server sends the answer, discards the rest of the body within bounds, and then closes the connection.
/// A client that reads earlier has its answer at once.
///
/// libmicrohttpd accepts no answer while it receives a body, and reads no body after an answer. So the answer is written
/// directly to the socket, and libmicrohttpd receives the body as if the request had not been answered. No thread waits
/// for it: the time is checked with each part, and ``RequestDeadlines`` cuts connections on which nothing arrives.
struct Lingering {
    private var remainingBytes: Int
    /// By ``RequestTimes/now()``.
    private let end: Int

    init(_ configuration: HTTPServer.Configuration) {
        remainingBytes = configuration.maximumDiscardedBodySize
        end = RequestTimes.now() + configuration.discardTimeout * 1_000_000_000
    }

    /// Discards a part of the body.
    ///
    /// - Returns: false if the connection must be closed now.
    mutating func discard(_ count: Int) -> Bool {
        remainingBytes -= count
        return remainingBytes >= 0 && RequestTimes.now() < end
    }

    /// Sends an answer, as the last bytes on its connection. While a body is received, nothing else is being sent, so a
    /// short answer fits into the socket's buffer.
    ///
    /// - Returns: whether all of it was sent.
    static func send(_ message: [UInt8], on descriptor: Int32) -> Bool {
        let flags = Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT)
        let count = message.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, flags) }
        guard count == message.count else { return false }
        // Shows the client that it gets no other answer, and keeps libmicrohttpd from sending one to a malformed chunk.
        // The peer of another socket than a TCP socket is a relay, which would close it at once.
        if SocketProgress.isTCP(descriptor) { shutdown(descriptor, Int32(SHUT_WR)) }
        return true
    }
}

extension HTTPResponse {
    /// Returns the complete message of an answer after which the connection ends.
    ///
    /// - Parameters:
    ///   - more: additional header fields.
    ///   - hasBody: whether the message contains the body.
    func lastMessage(adding more: [(name: String, value: String)], hasBody: Bool) -> [UInt8] {
        let reason = MHD_get_reason_phrase_for(UInt32(status)).map { String(cString: $0) } ?? ""
        var head = "HTTP/1.1 \(status) \(reason)\r\nDate: \(Self.date)\r\nConnection: close\r\n"
        for (name, value) in fields(adding: more) where name != "Connection" && !value.isEmpty {
            head += "\(name): \(value)\r\n"
        }
        // RFC 9110, section 8.6
        if status != 204, status != 304 { head += "Content-Length: \(bodySize)\r\n" }
        return Array("\(head)\r\n".utf8) + (hasBody ? bodyBytes : [])
    }

    /// The value of `Date` for a response that is sent now.
    private static var date: String {
        var (seconds, parts) = (time(nil), tm())
        gmtime_r(&seconds, &parts)
        return withUnsafeTemporaryAllocation(of: CChar.self, capacity: 32) { text in
            guard let start = text.baseAddress else { return "" }
            // Not translated: the process has the locale "C".
            strftime(start, text.count, "%a, %d %b %Y %H:%M:%S GMT", &parts)
            return String(cString: start)
        }
    }
}
