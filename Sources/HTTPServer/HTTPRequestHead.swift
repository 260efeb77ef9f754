import CMicroHTTPD

/// The head of a request whose body has not been read. It lives only as long as the call of ``Router/admission``.
public struct HTTPRequestHead: ~Copyable {
    /// The method; nil if no route can have it.
    public let method: HTTPMethod?
    /// The host and port of a target in absolute form, which goes before the `Host` field (RFC 9112, section 3.2.2).
    public let targetAuthority: String?

    let watched: RequestDeadlines.Connection
    let connection: OpaquePointer
    /// Not counted, as all threads share it: it outlives the head, since the request's processor owns it.
    unowned(unsafe) let routes: RouteTree
    let endpoint: Int?

    /// The IP address of the client, as it came with the connection; empty if it has none.
    public var peer: String { watched.peer }

    /// The context that the connection was handed over with; nil if it had none.
    public var connectionContext: (any Sendable & AnyObject)? { watched.context }

    /// Something that the admission keeps with the connection, for later requests on it; nil at first. A proxy may send requests
    /// of different clients on one connection.
    public var connectionState: (any Sendable & AnyObject)? {
        get { watched.state }
        nonmutating set { watched.state = newValue }
    }

    /// The path of the route as it was registered, `{name}` segments in braces; nil if no route has the request's path.
    public var pathTemplate: String? { endpoint.map { routes.pathTemplate(ofEndpoint: $0) } }

    /// The methods that the path allows, as in `Allow`; nil if no route has it.
    public var allow: String? { endpoint.map { routes.allow(ofEndpoint: $0) } }

    /// The value of the first header field called `name`, in any case, without surrounding space.
    public func header(_ name: String) -> String? { headerValue(name, of: connection) }

    /// The values of all header fields called `name`, in any case, joined by commas in their order; nil if there is no such field.
    public func combinedHeader(_ name: String) -> String? { combinedHeaderValue(name, of: connection) }

    /// Calls a closure with the bytes of the value of the first header field called `name`, in any case, without surrounding space.
    ///
    /// - Returns: the result of the closure; nil if there is no such field.
    public func withHeader<Result>(_ name: String, _ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result? {
        withHeaderValue(name, of: connection, body)
    }

    /// The decoded value of the first query item called `name`, in this case; nil if there is none or it has no value.
    public func queryValue(_ name: String) -> String? {
        MHD_lookup_connection_value(connection, .GET_ARGUMENT_KIND, name).map { String(cString: $0) }
    }
}

/// The decision about a request.
public enum HTTPAdmission: Sendable {
    /// It goes to its route. Every answer to it has these header fields, too. The handler gets `context` as
    /// ``HTTPRequest/context``. The memory for its body is taken from `budget`, until the handler returns; without one it is not counted.
    case admit(
        headers: [(name: String, value: String)],
        context: (any Sendable & AnyObject)? = nil,
        budget: (any HTTPServer.ByteBudget)? = nil
    )
    /// It is answered with this, and its body is discarded. ``EndedRequest/context`` is `context`.
    case answer(HTTPResponse, context: (any Sendable & AnyObject)? = nil)
}
