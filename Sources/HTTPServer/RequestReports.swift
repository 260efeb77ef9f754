import Synchronization

/// Selects the requests that are reported when they end. The selection may change while the server runs.
///
/// The server reads a few numbers for each request, and makes no calls for requests that are not reported.
public final class RequestReports: Sendable {
    /// The requests that are reported in addition to slow ones.
    public enum Selection: Sendable {
        /// No requests, not even slow ones.
        case none
        /// Requests whose response has at least this status.
        case status(Int)
        /// All requests, including those whose clients have disconnected before the response.
        case all
    }

    private let minimumStatus = Atomic(Int.max)
    /// In nanoseconds.
    private let slowTime = Atomic(Int.max)
    private let reportsSlow = Atomic(false)
    private let report: @Sendable (borrowing EndedRequest) -> Void

    /// Creates reports of no requests.
    ///
    /// - Parameter report: called once for each request, on one of the server's threads, which it must not block: when
    ///   its response is sent, its stream has ended, or its client has disconnected. Not called for requests that
    ///   libmicrohttpd answers itself.
    public init(_ report: @escaping @Sendable (borrowing EndedRequest) -> Void) { self.report = report }

    /// Selects the requests that are reported from now on.
    ///
    /// - Parameter slowTime: the minimum duration of a slow request, in milliseconds.
    public func select(_ selection: Selection, slowTime: Int) {
        let status =
            switch selection {
            case .none: Int.max
            case .status(let minimum): minimum
            case .all: 0
            }
        minimumStatus.store(status, ordering: .relaxed)
        self.slowTime.store(slowTime * 1_000_000, ordering: .relaxed)
        reportsSlow.store(status != .max, ordering: .relaxed)
    }

    /// Whether every request is reported. If so, each gets an id. Otherwise only requests with `X-Request-Id`, requests
    /// that are answered with status 400 or above, and requests that are slow when their answer begins get one.
    var isComplete: Bool { minimumStatus.load(ordering: .relaxed) == 0 }

    /// Whether slow requests are reported, and a request that has taken this time is slow.
    func isSlow(_ nanoseconds: Int) -> Bool {
        nanoseconds >= slowTime.load(ordering: .relaxed) && reportsSlow.load(ordering: .relaxed)
    }

    func ended(_ exchange: Exchange, _ routes: RouteTree, nanoseconds: Int) {
        let isSlow = !exchange.isStream && isSlow(nanoseconds)
        guard exchange.status >= minimumStatus.load(ordering: .relaxed) || isSlow else { return }
        report(EndedRequest(nanoseconds: nanoseconds, isSlow: isSlow, exchange: exchange, routes: routes))
    }
}

/// A request that has ended. It exists only while it is being reported.
public struct EndedRequest: ~Copyable {
    /// The time from its head to its end, in nanoseconds.
    public let nanoseconds: Int
    /// Whether it was slow. Always false for streams.
    public let isSlow: Bool

    let exchange: Exchange
    let routes: RouteTree

    /// The method; nil if it is not supported in routes.
    public var method: HTTPMethod? { exchange.requestMethod }
    /// The path of the route as registered; nil if no route has the request's path.
    public var pathTemplate: String? { exchange.endpoint.map { routes.pathTemplate(ofEndpoint: $0) } }
    /// The status of the response; 0 if the client has disconnected earlier.
    public var status: Int { exchange.status }
    /// Number of bytes in the response's body; for a stream, of the sent bytes.
    public var responseBytes: Int { exchange.responseBytes }
    /// Number of received bytes of a body that was passed to no handler, because the request was refused.
    public var discardedBytes: Int { exchange.discardedBytes }
    /// Whether the response was a stream.
    public var isStream: Bool { exchange.isStream }
    /// Its ids; nil if it has none.
    public var identity: RequestIdentity? { exchange.identity }
    /// The context of the admission.
    public var context: (any Sendable & AnyObject)? { exchange.context }
    /// The IP address of the client that the connection was added with; empty if it has none.
    public var peer: String { exchange.connection.peer }
}
