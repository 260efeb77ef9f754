import CMicroHTTPD
import Glibc

/// A request whose body has come entirely. It lives only as long as the call of the handler, which the compiler sees to:
/// what is needed later is copied out of it.
public struct HTTPRequest: ~Copyable {
    /// A decoded item of the query.
    public struct QueryItem: Sendable, Equatable {
        /// The name.
        public let name: String
        /// The value; empty where the item has no `=`.
        public let value: String
    }

    /// The method. A HEAD request comes to the handler of GET with ``HTTPMethod/head``.
    public let method: HTTPMethod
    /// The decoded values of the `{name}` segments of the route.
    public let parameters: PathParameters
    /// The query as HTML forms write it (`+` is a space), in order, names may repeat.
    public let queryItems: [QueryItem]
    /// The body, at most ``HTTPServer/Configuration/maximumBodySize`` bytes.
    public let body: [UInt8]

    /// The context that ``Router/admission`` has admitted the request with.
    public let context: (any Sendable & AnyObject)?

    let connection: OpaquePointer
    let target: UnsafePointer<CChar>

    /// The path as it was sent, without the query, escapes kept.
    public var path: String { String(cString: target) }

    /// The value of the first header field called `name`, in any case, without surrounding space.
    public func header(_ name: String) -> String? { headerValue(name, of: connection) }

    /// Whether the body's media type is `mediaType`; parameters (`charset=utf-8`) and case do not matter.
    public func hasContentType(_ mediaType: String) -> Bool {
        guard let value = MHD_lookup_connection_value(connection, .HEADER_KIND, "Content-Type") else { return false }
        let length = mediaType.utf8.count
        guard strncasecmp(value, mediaType, length) == 0 else { return false }
        let rest = value.advanced(by: length)
        let next = rest[strspn(rest, " \t")]
        return next == 0 || next == CChar(bitPattern: UInt8(ascii: ";"))
    }
}

func headerValue(_ name: String, of connection: OpaquePointer) -> String? {
    withHeaderValue(name, of: connection) { String(decoding: $0, as: UTF8.self) }
}

func withHeaderValue<Result>(
    _ name: String,
    of connection: OpaquePointer,
    _ body: (UnsafeBufferPointer<UInt8>) -> Result
) -> Result? {
    guard let value = MHD_lookup_connection_value(connection, .HEADER_KIND, name) else { return nil }
    // libmicrohttpd leaves the space after a value.
    var length = strlen(value)
    while length > 0, value[length - 1] == 0x20 || value[length - 1] == 0x09 { length -= 1 }
    return value.withMemoryRebound(to: UInt8.self, capacity: length) {
        body(UnsafeBufferPointer(start: $0, count: length))
    }
}

/// The decoded values of a route's `{name}` segments.
public struct PathParameters: Sendable {
    let names: [String]
    let values: [String]

    /// The value of the segment `{name}`, or `nil` where the route has none.
    public subscript(name: String) -> String? {
        guard let index = names.firstIndex(of: name) else { return nil }
        return values[index]
    }
}
