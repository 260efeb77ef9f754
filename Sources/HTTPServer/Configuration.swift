extension HTTPServer {
    /// The configuration of a server.
    public struct Configuration: Sendable {
        /// The number of threads that serve connections.
        public var threads = 2
        /// Maximum size of a request body, in bytes; a larger one gets 413.
        public var maximumBodySize = 1024 * 1024
        /// Maximum number of bytes of a body that are read and discarded after the request was answered; then its
        /// connection is closed, and a client that still sends may not see the answer.
        public var maximumDiscardedBodySize = 64 * 1024 * 1024
        /// Maximum time, in whole seconds, for which such a body is read, and after which a refused request is answered
        /// although its body is incomplete. Checked as often as ``requestTimeout`` if nothing arrives.
        public var discardTimeout = 30
        /// Maximum size of the request line and the header fields together, in bytes; more get 431.
        public var maximumHeaderSize = 8 * 1024
        /// The names of ``maximumBodySize`` and ``maximumHeaderSize`` for the operator, which 413 and 431 state.
        public var sizeNames = (body: "maximumBodySize", header: "maximumHeaderSize")
        /// Maximum number of open connections. A further one replaces the connection that has been idle longest; if
        /// none is idle, it is refused.
        public var connectionLimit = 10_000
        /// Takes over the descriptor of a refused connection; nil closes it. It must not block.
        public var refuse: (@Sendable (Int32) -> Void)?
        /// Returns whether the connection of a response that begins now is used for further requests. If not, the
        /// response has `Connection: close`. Called on the server's threads, which it must not block.
        public var keepsConnections: @Sendable () -> Bool = { true }
        /// The time, in whole seconds, after which a connection without progress during a request or a response is
        /// closed. Suspended requests and streams with nothing to send are excluded. It is checked four times in this
        /// period and in ``requestTimeout``, at most once a second.
        public var connectionTimeout = 30
        /// The time, in whole seconds, for which a connection without a request is kept, at least
        /// ``connectionTimeout``. Responses of HTTP/1.1 announce it in `Keep-Alive`.
        public var keepAliveTimeout = 150
        /// Maximum time of a request, in whole seconds, from its first byte to the end of its body, however many bytes
        /// arrive; after that, its connection is closed without an answer. The time from the opening of the connection
        /// to its first byte counts. A later request on a connection may take longer by the time between two checks.
        public var requestTimeout = 60
        /// Maximum number of suspended requests; further ones get 503.
        public var maximumPending = 4096
        /// Maximum number of open streams; further ones get 503.
        public var maximumStreams = 4096
        /// Maximum number of queued bytes in a stream. A write that does not fit is refused
        /// (``HTTPStream/WriteResult/full``), except that a single write which exceeds the limit is accepted while
        /// nothing is queued.
        public var streamQueueSize = 256 * 1024
        /// Maximum time that ``HTTPServer/stop()`` waits until answers and streams that have begun are sent.
        public var stopTimeout: Duration = .seconds(2)
        /// The range of `Retry-After`, in seconds, in the responses while the server drains; each response has a random
        /// value of at least 1.
        public var drainRetryAfter = 1...1
        /// Reports ended requests. If set, requests have ids, which responses contain as `X-Request-Id`.
        public var reports: RequestReports?
        /// Called when a request that has reached its admission ends, on one of the server's threads, which it must not
        /// block.
        public var ended: (@Sendable (borrowing EndedRequest) -> Void)?
        /// The prefix of `type` in the server's own problem details.
        public var problemTypePrefix = "urn:problem:"

        /// Creates the default configuration.
        public init() {}

        /// The announced time for which an idle connection is kept, in seconds.
        var announcedKeepAlive: Int { max(1, keepAliveTimeout, connectionTimeout) }

        /// libmicrohttpd's memory for one connection, in bytes. It contains the head twice while the buffer grows, 72
        /// bytes for each header field and query item, and the head of the response.
        var connectionMemory: Int { max(32 * 1024, 4 * maximumHeaderSize) }
    }
}
