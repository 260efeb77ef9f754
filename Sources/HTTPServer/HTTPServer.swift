import CMicroHTTPD
import Glibc
public import Logging
import Synchronization

/// An HTTP/1.1 server based on libmicrohttpd. It has no listening socket: the owner of the port passes connections to
/// it.
///
/// Requests are passed to the handlers of its ``Router``. The server itself sends these problem details (``Problem``):
/// 400 for malformed escapes and ambiguous framing, 404, 405 with `Allow`, 413, 421 for an upgrade to WebSocket, 431,
/// 501 for unknown transfer codings, and 503 with `Retry-After`. The following answers are sent before the body is
/// read, and end the connection: 400 for ambiguous framing, 413, 421, 431, 501, 503 while draining, every answer to a
/// request with `Expect: 100-continue`, and every answer without a handler if the body is larger than allowed. Unless
/// the end of the body is not known (400, 501), the body is discarded after the answer, within
/// ``Configuration/maximumDiscardedBodySize`` and ``Configuration/discardTimeout``; only then the connection is closed.
///
/// libmicrohttpd 0.9.75 itself sends these answers, with an HTML page, no media type and `Connection: close`. It closes
/// the connection at once, so a client that is still sending may not see them:
/// - 400 "Request malformed": a request line without a version or with a protocol other than HTTP, a header line
///   without a colon, a chunk size that is not a hexadecimal number, a chunk longer than its size.
/// - 400 for a `Content-Length` that is negative or not a number, 413 for one that does not fit into 64 bits. It sends
///   the head of these two answers a second time in place of the body.
/// - 413 "Request content too large": a chunk size that does not fit into 64 bits.
/// - 414 and 431 "Request too big": a request line, or header fields, that exceed its memory for a connection; also
///   very many small fields, each of which takes 72 bytes of it.
/// - 505 "Requested HTTP version is not supported": HTTP/0.x, and HTTP/2 and later.
///
/// It closes a connection without an answer if the request line has no space, and, when it times out
/// (``Configuration/connectionTimeout``, ``Configuration/requestTimeout``), if half of a request was received or the
/// query items (about 400) exceed its memory. It cuts a target and the value of a field at a raw NUL byte, and ignores
/// a field without a name.
public final class HTTPServer: Sendable {
    /// The reason why a server did not start.
    public enum StartError: Error {
        /// It was already started; a server can be started only once.
        case startedBefore
        /// libmicrohttpd did not start because of missing memory, threads or descriptors.
        case daemon
    }

    private enum State {
        case new
        case running(OpaquePointer)
        case stopped
    }

    private let configuration: Configuration
    private let processor: RequestProcessor
    private let logger: Logger
    /// Invariant: the daemon is used with the lock held, and stopped after it was removed from here.
    private let state = Mutex(State.new)

    /// Creates a server with the routes of `router`.
    public init(configuration: Configuration, router: Router, logger: Logger) {
        self.configuration = configuration
        self.logger = logger
        processor = RequestProcessor(configuration: configuration, router: router)
    }

    deinit { stop() }

    /// Starts the threads.
    public func start() throws(StartError) {
        let error: StartError? = state.withLock { state in
            guard case .new = state else { return .startedBefore }
            guard processor.watch != nil, let daemon = startDaemon(configuration, processor) else { return .daemon }
            state = .running(daemon)
            processor.deadlines.start()
            return nil
        }
        if let error { throw error }
        logger.debug("HTTP server started", metadata: ["threads": "\(configuration.threads)"])
    }

    /// Serves the client of a connected socket. The server owns the descriptor from now on and closes it in every case,
    /// immediately if the server does not run. If ``Configuration/connectionLimit`` connections are open and none of
    /// them is idle, ``Configuration/refuse`` takes the descriptor over.
    ///
    /// - Parameters:
    ///   - peer: the numeric IP address of the client, for ``HTTPRequestHead/peer``; other text counts as empty.
    ///   - context: an object for the requests on the connection, as ``HTTPRequestHead/connectionContext``.
    public func adopt(_ descriptor: Int32, peer: String, context: (any Sendable & AnyObject)? = nil) {
        let isAdopted = state.withLock { state in
            guard case .running(let daemon) = state else {
                close(descriptor)
                return false
            }
            guard admitConnection() else {
                if let refuse = configuration.refuse { refuse(descriptor) } else { close(descriptor) }
                return false
            }
            processor.contexts.withLock { $0[descriptor] = context }
            guard cmhd_add_connection(daemon, descriptor, peer) == .YES else {
                processor.counters.dismiss()
                return false
            }
            return true
        }
        guard !isAdopted else { return }
        processor.counters.rejectedConnections.add(1, ordering: .relaxed)
        logger.debug("connection rejected")
    }

    /// Counts a new connection, for which an idle one may be closed.
    private func admitConnection() -> Bool {
        let limit = configuration.connectionLimit
        if processor.counters.admit(upTo: limit) { return true }
        guard processor.deadlines.cutLongestIdle() else { return false }
        processor.counters.dismiss()
        processor.counters.displacedConnections.add(1, ordering: .relaxed)
        return processor.counters.admit(upTo: limit)
    }

    /// Answers every request that arrives from now on with 503 and `Connection: close`. Earlier requests are answered
    /// normally.
    public func drain() {
        processor.isDraining.store(true, ordering: .relaxed)
    }

    /// Ends service: answers suspended requests with 503, finishes the streams, waits at most
    /// ``Configuration/stopTimeout`` until all answers are sent, closes all connections and ends the threads. Must not
    /// be called from a handler.
    public func stop() {
        drain()
        guard state.withLock({ if case .running = $0 { true } else { false } }) else { return }
        if !processor.openAnswers.endAll(with: processor.refusals.draining, timeout: configuration.stopTimeout) {
            logger.notice("HTTP server stops before all answers were sent")
        }
        let daemon: OpaquePointer? = state.withLock { state in
            guard case .running(let daemon) = state else { return nil }
            state = .stopped
            nonisolated(unsafe) let taken = daemon
            return taken
        }
        guard let daemon else { return }
        processor.deadlines.stop()
        MHD_stop_daemon(daemon)
        // Connections that no thread has handled yet end without a callback.
        processor.counters.connections.store(0, ordering: .relaxed)
        logger.debug("HTTP server stopped")
    }

    /// The usage of the routes since the start.
    public var routeStatistics: [RouteStatistics] { processor.times.statistics }

    /// The current counters.
    public var statistics: Statistics {
        let counters = processor.counters
        let open = processor.openAnswers.counts
        return Statistics(
            connections: counters.connections.load(ordering: .relaxed),
            requests: counters.requests.load(ordering: .relaxed),
            refused: counters.refused.load(ordering: .relaxed),
            rejectedConnections: counters.rejectedConnections.load(ordering: .relaxed),
            displacedConnections: counters.displacedConnections.load(ordering: .relaxed),
            pending: open.pending,
            streams: open.streams
        )
    }
}
