/// The table of routes.
///
///     var router = Router()
///     router.on(.post, "/v1/channel/{channelId}") { request in
///         .response(accepted(request.parameters["channelId"], request.body))
///     }
///
/// A segment `{name}` matches one non-empty segment; a literal segment takes precedence. Paths are split into segments
/// before decoding, so `%2F` is part of a segment. A trailing slash makes a different path. HEAD is answered wherever
/// GET is, and OPTIONS everywhere, including `*`, with 204 and `Allow`.
public struct Router: Sendable {
    /// One registered route.
    public struct Route: Sendable {
        /// The method.
        public let method: HTTPMethod
        /// The path as registered, with `{name}` segments in braces.
        public let pathTemplate: String
        let handler: HTTPHandler
    }

    /// Decides on each request before its body is read, even if no route has its path. Without it, all are admitted.
    ///
    /// It runs on one of the server's threads and must not block. It is not called for requests whose head is malformed
    /// or too large.
    public var admission: (@Sendable (borrowing HTTPRequestHead) -> HTTPAdmission)?

    /// Creates the response to a request for an unknown path, which is passed as sent, without the query. Without it,
    /// the server's own response is used.
    ///
    /// It runs on one of the server's threads, before the admission, and must not block.
    public var notFound: (@Sendable (_ path: String) -> HTTPResponse)?

    /// All routes in the order of their registration.
    public private(set) var routes: [Route] = []

    /// Creates an empty table.
    public init() {}

    /// Registers `handler`. A second registration of the same method and path replaces the first.
    ///
    /// - Parameter path: the path, which starts with `/`; escapes are not allowed.
    public mutating func on(_ method: HTTPMethod, _ path: String, _ handler: @escaping HTTPHandler) {
        routes.removeAll { $0.method == method && $0.pathTemplate == path }
        routes.append(Route(method: method, pathTemplate: path, handler: handler))
    }
}
