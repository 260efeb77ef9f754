import CMicroHTTPD
import Synchronization

/// An immutable response. It is built once and may answer any number of requests, from any thread: sending a constant
/// response has no additional cost.
public final class HTTPResponse: Sendable {
    /// The bytes of a body, shared by all responses that send it: libmicrohttpd reads them from here.
    private final class Body: Sendable {
        /// Invariant: written in `init` only.
        nonisolated(unsafe) let bytes: UnsafeMutableRawBufferPointer
        private let holder: (any Sendable & AnyObject)?

        init(_ body: [UInt8], _ holder: (any Sendable & AnyObject)?) {
            self.holder = holder
            bytes = .allocate(byteCount: body.count, alignment: 1)
            bytes.copyBytes(from: body)
        }

        deinit { bytes.deallocate() }

        /// Returns a response of libmicrohttpd that keeps the body alive; nil if memory runs out.
        func makeResponse() -> OpaquePointer? {
            let context = Unmanaged.passRetained(self)
            let response = MHD_create_response_from_buffer_with_free_callback_cls(
                bytes.count,
                bytes.baseAddress,
                { if let context = $0 { Unmanaged<Body>.fromOpaque(context).release() } },
                context.toOpaque()
            )
            if response == nil { context.release() }
            return response
        }
    }

    /// The status code, 200 to 599.
    public let status: Int
    /// The length of the body, in bytes.
    public var bodySize: Int { body.bytes.count }
    private let headers: [(name: String, value: String)]
    private let body: Body

    /// Whether the connection ends after this response.
    private let closes: Bool

    /// libmicrohttpd's response, with the value of `Keep-Alive`. Invariant: neither is changed once it is set, except
    /// that sending changes the reference count, under a lock of libmicrohttpd.
    private struct Constant: @unchecked Sendable {
        let keepAlive: String?
        let raw: OpaquePointer
    }

    /// The response without additional fields, once it was sent.
    private let constant = Mutex<Constant?>(nil)

    /// Creates a response.
    ///
    /// - Parameters:
    ///   - status: the status code, 200 to 599.
    ///   - headers: the header fields in the order in which they are sent. `Date`, `Content-Length` and the
    ///     connection's own fields are added; `Connection: close` ends the connection after this response. Control
    ///     characters in a value are sent as spaces. A field whose name is not a token or whose value is empty is
    ///     omitted.
    ///   - body: the body; its length becomes `Content-Length`. It is copied once.
    ///   - holder: released together with the response when all of it is sent. It represents the memory of the body.
    public convenience init(
        status: Int,
        headers: [(name: String, value: String)] = [],
        body: [UInt8] = [],
        holding holder: (any Sendable & AnyObject)? = nil
    ) {
        self.init(status: status, headers: headers, Body(body, holder))
    }

    /// Creates a response with a text body in UTF-8.
    public convenience init(status: Int, headers: [(name: String, value: String)] = [], body: String) {
        self.init(status: status, headers: headers, body: Array(body.utf8))
    }

    private init(status: Int, headers: [(name: String, value: String)], _ body: Body) {
        self.status = status
        self.headers = headers
        self.body = body
        closes = headers.contains(where: isClose)
    }

    /// Calls a function with libmicrohttpd's response.
    ///
    /// - Parameters:
    ///   - more: additional header fields.
    ///   - keepAlive: the value of `Keep-Alive`, unless the connection ends after the response.
    /// - Returns: nil if memory runs out.
    func withRaw<Result>(
        adding more: [(name: String, value: String)],
        keepAlive: String?,
        _ body: (OpaquePointer) -> Result
    ) -> Result? {
        let keepAlive = closes || more.contains(where: isClose) ? nil : keepAlive
        let new = more.filter { field in !headers.contains { $0 == field } }
        if new.isEmpty, let raw = constantRaw(keepAlive) { return withExtendedLifetime(self) { body(raw) } }
        guard let raw = makeRaw(new, keepAlive) else { return nil }
        defer { MHD_destroy_response(raw) }
        return body(raw)
    }

    /// Returns the response without additional fields, which is made once; nil if it was made with another value of
    /// `Keep-Alive`.
    private func constantRaw(_ keepAlive: String?) -> OpaquePointer? {
        constant.withLock { constant in
            if constant == nil {
                constant = makeRaw([], keepAlive).map { Constant(keepAlive: keepAlive, raw: $0) }
            }
            nonisolated(unsafe) let raw = constant?.keepAlive == keepAlive ? constant?.raw : nil
            return raw
        }
    }

    private func makeRaw(_ more: [(name: String, value: String)], _ keepAlive: String?) -> OpaquePointer? {
        guard let raw = body.makeResponse() else { return nil }
        addHeaders(headers, to: raw)
        addHeaders(more, to: raw)
        if let keepAlive { _ = MHD_add_response_header(raw, "Keep-Alive", keepAlive) }
        return raw
    }

    /// The bytes of the body.
    var bodyBytes: [UInt8] { Array(body.bytes) }

    /// Returns the header fields as they are sent, with additional ones; fields that it already has are skipped.
    func fields(adding more: [(name: String, value: String)]) -> [(name: String, value: String)] {
        let new = more.filter { field in !headers.contains { $0 == field } }
        return (headers + new).map { ($0.name, safeValue($0.value)) }
    }

    /// Returns a response with the same body and additional header fields; fields that it already has are skipped.
    public func adding(_ more: [(name: String, value: String)]) -> HTTPResponse {
        let new = more.filter { field in !headers.contains { $0 == field } }
        guard !new.isEmpty else { return self }
        return HTTPResponse(status: status, headers: headers + new, body)
    }

    deinit {
        if let constant = constant.withLock(\.self) { MHD_destroy_response(constant.raw) }
    }
}

/// Returns whether a header field ends the connection.
private func isClose(_ field: (name: String, value: String)) -> Bool {
    field.name == "Connection" && field.value == "close"
}

/// Adds header fields to a response of libmicrohttpd before it is first used.
func addHeaders(_ headers: [(name: String, value: String)], to response: OpaquePointer) {
    for (name, value) in headers { _ = MHD_add_response_header(response, name, safeValue(value)) }
}

/// Returns the value of a header field with spaces in place of control characters.
private func safeValue(_ value: String) -> String {
    guard value.utf8.contains(where: isControl) else { return value }
    return String(decoding: value.utf8.map { isControl($0) ? 0x20 : $0 }, as: UTF8.self)
}

private func isControl(_ byte: UInt8) -> Bool { byte < 0x20 || byte == 0x7F }
