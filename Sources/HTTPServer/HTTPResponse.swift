import CMicroHTTPD

/// An immutable response. It is built once and may answer any number of requests, from any thread: a constant response
/// costs nothing when it is sent.
public final class HTTPResponse: Sendable {
    /// The status code, 200 to 599.
    public let status: Int
    private let headers: [(name: String, value: String)]
    private let body: [UInt8]

    /// libmicrohttpd's response. Invariant: nothing changes it after `init`, and its own reference count, which is all
    /// that sending it changes, is under a lock of libmicrohttpd. `nil` when memory was short; such a response closes the
    /// connection.
    nonisolated(unsafe) let raw: OpaquePointer?

    /// Creates a response.
    ///
    /// - Parameters:
    ///   - status: The status code, 200 to 599.
    ///   - headers: Header fields in the order in which they are sent. `Date`, `Content-Length` and the connection's own
    ///     fields are added; `Connection: close` ends the connection after this response. Control characters in a value
    ///     are sent as spaces. A field whose name is not a token or whose value is empty is left out.
    ///   - body: The body; its length becomes `Content-Length`.
    public init(status: Int, headers: [(name: String, value: String)] = [], body: [UInt8] = []) {
        self.status = status
        self.headers = headers
        self.body = body
        raw = body.withUnsafeBytes { bytes in
            // The bytes are copied before this returns, so the cast never leads to a write.
            MHD_create_response_from_buffer(
                bytes.count,
                UnsafeMutableRawPointer(mutating: bytes.baseAddress),
                .RESPMEM_MUST_COPY
            )
        }
        if let raw { addHeaders(headers, to: raw) }
    }

    /// Creates a response with a text body in UTF-8.
    public convenience init(status: Int, headers: [(name: String, value: String)] = [], body: String) {
        self.init(status: status, headers: headers, body: Array(body.utf8))
    }

    /// Returns a copy with additional header fields; skips fields that it already has.
    func adding(_ more: [(name: String, value: String)]) -> HTTPResponse {
        guard !more.isEmpty else { return self }
        let new = more.filter { field in !headers.contains { $0 == field } }
        return HTTPResponse(status: status, headers: headers + new, body: body)
    }

    deinit {
        if let raw { MHD_destroy_response(raw) }
    }
}

/// Adds header fields to one of libmicrohttpd's responses before it is first used.
func addHeaders(_ headers: [(name: String, value: String)], to response: OpaquePointer) {
    for (name, value) in headers {
        var safe = String.UnicodeScalarView()
        for scalar in value.unicodeScalars { safe.append(scalar.value < 0x20 || scalar.value == 0x7F ? " " : scalar) }
        _ = MHD_add_response_header(response, name, String(safe))
    }
}
