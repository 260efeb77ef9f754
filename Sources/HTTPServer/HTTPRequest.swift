import CMicroHTTPD
import Glibc

/// A request with a complete body. It exists only during the call of the handler, which the compiler ensures: data that
/// is needed later must be copied.
public struct HTTPRequest: ~Copyable {
    /// A decoded item of the query.
    public struct QueryItem: Sendable, Equatable {
        /// The name.
        public let name: String
        /// The value; empty if the item has no `=`.
        public let value: String
    }

    /// The method. A HEAD request is passed to the handler of GET with ``HTTPMethod/head``.
    public let method: HTTPMethod
    /// The decoded values of the `{name}` segments of the route.
    public let parameters: PathParameters
    /// The query in the format of HTML forms (`+` is a space), in order; names may repeat.
    public let queryItems: [QueryItem]
    /// The body, at most ``HTTPServer/Configuration/maximumBodySize`` bytes.
    public let body: [UInt8]

    /// The context from ``Router/admission``.
    public let context: (any Sendable & AnyObject)?

    let connection: OpaquePointer
    let target: UnsafePointer<CChar>

    /// The path as sent, without the query and with its escapes.
    public var path: String { String(cString: target) }

    /// Returns the value of the first header field with a name, in any case, without surrounding space.
    public func header(_ name: String) -> String? { headerValue(name, of: connection) }

    /// Returns whether the body's media type is `mediaType`, ignoring parameters (`charset=utf-8`) and case.
    public func hasContentType(_ mediaType: String) -> Bool {
        guard let value = MHD_lookup_connection_value(connection, .HEADER_KIND, "Content-Type") else { return false }
        let length = mediaType.utf8.count
        guard strncasecmp(value, mediaType, length) == 0 else { return false }
        let rest = value.advanced(by: length)
        let next = rest[strspn(rest, " \t")]
        return next == 0 || next == CChar(bitPattern: UInt8(ascii: ";"))
    }

    /// Returns the value of a parameter of the body's media type, such as `charset`, without quotes; nil if it has none.
    ///
    /// - Parameter name: the name in lower case.
    public func contentTypeParameter(_ name: String) -> String? {
        let text = withHeaderValue("Content-Type", of: connection) { value in
            // Most values have no parameters.
            value.contains(UInt8(ascii: ";")) ? String(decoding: value, as: UTF8.self) : nil
        }
        guard let parameters = text.flatMap({ $0 })?.split(separator: ";").dropFirst() else { return nil }
        for parameter in parameters {
            let parts = parameter.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2, parts[0].filter({ $0 != " " && $0 != "\t" }).lowercased() == name else { continue }
            return String(parts[1].filter { $0 != " " && $0 != "\t" && $0 != "\"" })
        }
        return nil
    }

    /// Returns this request with another body.
    public func replacing(body: [UInt8]) -> HTTPRequest {
        HTTPRequest(
            method: method,
            parameters: parameters,
            queryItems: queryItems,
            body: body,
            context: context,
            connection: connection,
            target: target
        )
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
    // libmicrohttpd does not remove space after a value.
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

    /// Returns the value of the segment `{name}`; `nil` if the route has none.
    public subscript(name: String) -> String? {
        guard let index = names.firstIndex(of: name) else { return nil }
        return values[index]
    }
}
