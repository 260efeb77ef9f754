import CMicroHTTPD
import Glibc

/// The data of a request's head that the server needs before the body is read, collected in one pass over the header
/// fields and query items.
struct RequestHead {
    /// The declared length of the body; 0 without one.
    private(set) var contentLength: UInt64 = 0
    /// Whether the body is chunked.
    private(set) var isChunked = false
    /// Whether the client waits for permission before it sends the body.
    private(set) var expectsContinue = false
    /// Whether the client requests an upgrade to WebSocket.
    private(set) var wantsWebSocket = false
    /// Whether the client closes the connection after the response.
    private(set) var wantsClose = false
    /// Returns the ids of the request.
    ///
    /// - Parameter isRequired: whether it gets an id if the client has sent none.
    func identity(isRequired: Bool) -> RequestIdentity? {
        guard requestId != nil || traceparent != nil || isRequired else { return nil }
        return RequestIdentity(
            requestId: requestId.map { trimmed($0) },
            traceparent: traceparent.map { trimmed($0) },
            isRequired: isRequired
        )
    }

    /// Whether two readers of this head could disagree on the end of the request, its host, or its origin.
    var isAmbiguous: Bool {
        hasMalformedField || contentLengths > 1 || hosts > 1 || origins > 1 || (isHTTP11 && hosts == 0)
            || (transferCodings > 0 && (contentLengths > 0 || !isHTTP11))
    }
    /// Whether the body uses a transfer coding other than chunked.
    var hasUnknownTransferCoding: Bool { transferCodings > 1 || (transferCodings == 1 && !isChunked) }
    /// Whether the request has a body, whose end is known.
    var hasReadableBody: Bool {
        (contentLength > 0 || isChunked) && !isAmbiguous && !hasUnknownTransferCoding
    }
    /// Whether an escape in the query is malformed.
    private(set) var hasMalformedQuery = false
    /// The decoded query.
    private(set) var queryItems: [HTTPRequest.QueryItem] = []

    /// HTTP/1.0 has no `Host`. (libmicrohttpd's own check for it sends the head of its answer twice.)
    let isHTTP11: Bool
    private var hasMalformedField = false
    private var contentLengths = 0
    private var transferCodings = 0
    private var hosts = 0
    private var origins = 0
    /// The first `X-Request-Id` and the first `traceparent`. Valid as long as the head.
    private var requestId: UnsafePointer<CChar>?
    private var traceparent: UnsafePointer<CChar>?

    /// Reads the head of the current request on a connection.
    init(_ connection: OpaquePointer, version: UnsafePointer<CChar>) {
        isHTTP11 = strcmp(version, "HTTP/1.0") != 0
        withUnsafeMutablePointer(to: &self) { head in
            cmhd_examine(
                connection,
                { context, kind, name, nameSize, value, valueSize in
                    guard let context, let name else { return .YES }
                    let head = context.assumingMemoryBound(to: RequestHead.self)
                    if kind == .HEADER_KIND {
                        head.pointee.addField(name, nameSize, value)
                    } else {
                        head.pointee.addQueryItem(name, nameSize, value, valueSize)
                    }
                    return .YES
                },
                head
            )
        }
    }

    private mutating func addField(_ name: UnsafePointer<CChar>, _ size: Int, _ value: UnsafePointer<CChar>?) {
        guard let value, cmhd_is_token(name, size) != 0 else {
            hasMalformedField = true
            return
        }
        // libmicrohttpd appends a folded line to the name of the field, for which it copies the name. In this case, the
        // value is before the name in memory, otherwise after it. Such a name could be extended to any other name, and
        // a proxy may unfold the value.
        if value < name + size { hasMalformedField = true }
        // Legitimate clients do not send these.
        if size > 14 && strncasecmp(name, "Content-Length", 14) == 0
            || size > 17 && strncasecmp(name, "Transfer-Encoding", 17) == 0
        {
            hasMalformedField = true
        }
        switch size {
        case 4 where strcasecmp(name, "Host") == 0:
            hosts += 1
        case 6 where strcasecmp(name, "Expect") == 0:
            expectsContinue = strcasecmp(value, "100-continue") == 0
        case 6 where strcasecmp(name, "Origin") == 0:
            origins += 1
        case 7 where strcasecmp(name, "Upgrade") == 0:
            wantsWebSocket = wantsWebSocket || hasToken(value, "websocket")
        case 10 where strcasecmp(name, "Connection") == 0:
            wantsClose = wantsClose || hasToken(value, "close")
        case 11 where strcasecmp(name, "traceparent") == 0:
            if traceparent == nil { traceparent = value }
        case 12 where strcasecmp(name, "X-Request-Id") == 0:
            if requestId == nil { requestId = value }
        case 14 where strcasecmp(name, "Content-Length") == 0:
            contentLengths += 1
            // libmicrohttpd has already refused everything but a number that fits.
            contentLength = UInt64(strtoull(value, nil, 10))
        case 17 where strcasecmp(name, "Transfer-Encoding") == 0:
            transferCodings += 1
            isChunked = strcasecmp(value, "chunked") == 0
        default: break
        }
    }

    /// Returns a value without trailing space, which libmicrohttpd does not remove.
    private func trimmed(_ value: UnsafePointer<CChar>) -> String {
        var length = strlen(value)
        while length > 0, value[length - 1] == 0x20 || value[length - 1] == 0x09 { length -= 1 }
        return value.withMemoryRebound(to: UInt8.self, capacity: length) {
            String(decoding: UnsafeBufferPointer(start: $0, count: length), as: UTF8.self)
        }
    }

    /// Returns whether a comma-separated list contains `token`, in any case.
    private func hasToken(_ list: UnsafePointer<CChar>, _ token: String) -> Bool {
        var rest = list
        while true {
            rest = rest.advanced(by: strspn(rest, ", \t"))
            let length = strcspn(rest, ", \t")
            if length == 0 { return false }
            if length == token.utf8.count, strncasecmp(rest, token, length) == 0 { return true }
            rest = rest.advanced(by: length)
        }
    }

    private mutating func addQueryItem(
        _ name: UnsafePointer<CChar>,
        _ nameSize: Int,
        _ value: UnsafePointer<CChar>?,
        _ valueSize: Int
    ) {
        guard let name = decoded(name, nameSize), let value = decoded(value, valueSize) else {
            hasMalformedQuery = true
            return
        }
        queryItems.append(HTTPRequest.QueryItem(name: name, value: value))
    }

    private func decoded(_ text: UnsafePointer<CChar>?, _ size: Int) -> String? {
        guard let text else { return "" }
        return text.withMemoryRebound(to: UInt8.self, capacity: size) {
            PercentCoding.decode(UnsafeBufferPointer(start: $0, count: size))
        }
    }
}
