extension HTTPServer {
    /// The bounds of a server.
    public struct Configuration: Sendable {
        /// The number of threads that serve connections.
        public var threads = 2
        /// The most bytes in a request body; a larger one gets 413.
        public var maximumBodySize = 1024 * 1024
        /// The most bytes in request line and header fields together; more get 431.
        public var maximumHeaderSize = 8 * 1024
        /// The most open connections. A further one takes the place of the connection that has been idle longest; if none is idle, it is
        /// refused.
        public var connectionLimit = 10_000
        /// Takes over the descriptor of a connection that is refused; nil closes it. It must not block.
        public var refuse: (@Sendable (Int32) -> Void)?
        /// Whether a connection is used for more than one request.
        public var keepsConnections = true
        /// The whole seconds after which a connection without progress is closed: idle, or amid a request or a response.
        /// Suspended requests and streams with nothing to send do not count as such.
        public var connectionTimeout = 30
        /// The whole seconds that a request may take from its first byte to the end of its body, however many bytes come; then
        /// its connection is closed without an answer. The time from the opening of the connection to its first byte
        /// counts. A later request of a connection may take up to ``connectionTimeout`` longer. Late requests are looked for
        /// four times in this time, at most once a second.
        public var requestTimeout = 60
        /// The most suspended requests; further ones get 503.
        public var maximumPending = 4096
        /// The most open streams; further ones get 503.
        public var maximumStreams = 4096
        /// The most bytes that wait in one stream; what does not fit is refused (``HTTPStream/WriteResult/full``), but for
        /// a write that is longer by itself, which is taken while nothing waits.
        public var streamQueueSize = 256 * 1024
        /// How long ``HTTPServer/stop()`` waits until answers and streams that have begun are sent.
        public var stopTimeout: Duration = .seconds(2)
        /// The seconds in `Retry-After` of the responses to requests that come while the server drains; each response has a random one
        /// of them, at least 1.
        public var drainRetryAfter = 1...1
        /// Reports requests when they are over. With it, requests have ids, which responses carry as `X-Request-Id`.
        public var reports: RequestReports?
        /// Called for each request that has come to its admission when it is over, on one of the server's threads, which it must not block.
        public var ended: (@Sendable (borrowing EndedRequest) -> Void)?
        /// What the `type` of the server's own problem details begins with.
        public var problemTypePrefix = "urn:problem:"

        /// Creates the default bounds.
        public init() {}

        /// libmicrohttpd's memory for one connection. It holds the head twice while the buffer grows, 72 bytes for each
        /// header field and query item, and the head of the response.
        var connectionMemory: Int { max(32 * 1024, 4 * maximumHeaderSize) }
    }
}
