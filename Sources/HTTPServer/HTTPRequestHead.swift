import CMicroHTTPD

/// The head of a request whose body has not been read. It exists only during the call of ``Router/admission``.
public struct HTTPRequestHead: ~Copyable {
    /// The method; nil if it is not supported in routes.
    public let method: HTTPMethod?
    /// The host and port of a target in absolute form, which takes precedence over the `Host` field (RFC 9112, section
    /// 3.2.2).
    public let targetAuthority: String?

    let watched: RequestDeadlines.Connection
    let connection: OpaquePointer
    /// Not reference-counted, because all threads share it: it outlives the head, since the request's processor owns
    /// it.
    unowned(unsafe) let routes: RouteTree
    let endpoint: Int?

    /// The IP address of the client that the connection was added with; empty if it has none.
    public var peer: String { watched.peer }

    /// The context that the connection was added with; nil if it has none.
    public var connectionContext: (any Sendable & AnyObject)? { watched.context }

    /// A state that the admission stores with the connection, for later requests on it; initially nil. A proxy may send
    /// requests of different clients on one connection.
    public var connectionState: (any Sendable & AnyObject)? {
        get { watched.state }
        nonmutating set { watched.state = newValue }
    }

    /// The path of the route as registered, with `{name}` segments in braces; nil if no route has the request's path.
    public var pathTemplate: String? { endpoint.map { routes.pathTemplate(ofEndpoint: $0) } }

    /// The methods that the path allows, in the format of `Allow`; nil if no route has the path.
    public var allow: String? { endpoint.map { routes.allow(ofEndpoint: $0) } }

    /// Returns the value of the first header field with a name, in any case, without surrounding space.
    public func header(_ name: String) -> String? { headerValue(name, of: connection) }

    /// Returns the values of all header fields with a name, in any case, joined by commas in order; nil if there is no
    /// such field.
    public func combinedHeader(_ name: String) -> String? { combinedHeaderValue(name, of: connection) }

    /// Calls a closure with the bytes of the value of the first header field with a name, in any case, without
    /// surrounding space.
    ///
    /// - Returns: the result of the closure; nil if there is no such field.
    public func withHeader<Result>(_ name: String, _ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result? {
        withHeaderValue(name, of: connection, body)
    }

    /// Returns the decoded value of the first query item with a name, case-sensitive; nil if there is none or it has no
    /// value.
    public func queryValue(_ name: String) -> String? {
        MHD_lookup_connection_value(connection, .GET_ARGUMENT_KIND, name).map { String(cString: $0) }
    }
}

/// The decision on a request.
public enum HTTPAdmission: Sendable {
    /// The request is passed to its route. Every answer to it also gets these header fields. The handler gets `context`
    /// as ``HTTPRequest/context``. The memory for its body is taken from `budget` until the handler returns; without a
    /// budget, it is not counted.
    case admit(
        headers: [(name: String, value: String)],
        context: (any Sendable & AnyObject)? = nil,
        budget: (any HTTPServer.ByteBudget)? = nil
    )
    /// The request gets this answer, and its body is discarded. ``EndedRequest/context`` is `context`.
    case answer(HTTPResponse, context: (any Sendable & AnyObject)? = nil)
}
