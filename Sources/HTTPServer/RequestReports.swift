import Synchronization

/// Which requests are reported when they are over. It may change while the server runs.
///
/// The server reads a few numbers for each request, and calls nothing for one that is not reported.
public final class RequestReports: Sendable {
    /// The requests that are reported, besides slow ones.
    public enum Selection: Sendable {
        /// Not even slow ones.
        case none
        /// Those whose response has at least this status.
        case status(Int)
        /// Also those whose clients have left before the response.
        case all
    }

    private let minimumStatus = Atomic(Int.max)
    /// In nanoseconds.
    private let slowTime = Atomic(Int.max)
    private let reportsSlow = Atomic(false)
    private let report: @Sendable (borrowing EndedRequest) -> Void

    /// Creates reports of no requests.
    ///
    /// - Parameter report: called once for each request, on one of the server's threads, which it must not block: when its response is
    ///   sent, its stream has ended, or its client has gone. Not called for requests that libmicrohttpd answers itself.
    public init(_ report: @escaping @Sendable (borrowing EndedRequest) -> Void) { self.report = report }

    /// Selects what is reported from now on.
    ///
    /// - Parameter slowTime: the milliseconds from which on a request is slow.
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

    /// Whether every request is reported. Then each gets an id. Otherwise those get one that bring `X-Request-Id`, or are answered with
    /// status 400 or above.
    var isComplete: Bool { minimumStatus.load(ordering: .relaxed) == 0 }

    func ended(_ exchange: Exchange, _ routes: RouteTree, nanoseconds: Int) {
        let isSlow = nanoseconds >= slowTime.load(ordering: .relaxed) && !exchange.isStream
        guard
            exchange.status >= minimumStatus.load(ordering: .relaxed) || isSlow && reportsSlow.load(ordering: .relaxed)
        else { return }
        report(EndedRequest(nanoseconds: nanoseconds, isSlow: isSlow, exchange: exchange, routes: routes))
    }
}

/// A request that is over. It lives only as long as it is being reported.
public struct EndedRequest: ~Copyable {
    /// The nanoseconds from its head to its end.
    public let nanoseconds: Int
    /// Whether it has taken long. Streams never have.
    public let isSlow: Bool

    let exchange: Exchange
    let routes: RouteTree

    /// The method; nil if no route can have it.
    public var method: HTTPMethod? { exchange.requestMethod }
    /// The path of the route as it was registered; nil if no route has the request's path.
    public var pathTemplate: String? { exchange.endpoint.map { routes.pathTemplate(ofEndpoint: $0) } }
    /// The status of the response; 0 if the client has left before.
    public var status: Int { exchange.status }
    /// The bytes of the response's body. Of a stream, those that were sent.
    public var responseBytes: Int { exchange.responseBytes }
    /// Whether the response was a stream.
    public var isStream: Bool { exchange.isStream }
    /// Its ids; nil if it has none.
    public var identity: RequestIdentity? { exchange.identity }
    /// The context of the admission.
    public var context: (any Sendable & AnyObject)? { exchange.context }
    /// The IP address of the client, as it came with the connection; empty if it has none.
    public var peer: String { exchange.connection.peer }
}
