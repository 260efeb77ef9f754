import CMicroHTTPD
import Glibc
public import Logging
import Synchronization

/// An HTTP/1.1 server over libmicrohttpd that owns no listening socket: whoever owns the port hands over connections.
///
/// Requests go to the handlers of its ``Router``. The server itself answers, as problem details (``Problem``): 400 to
/// malformed escapes and ambiguous framing, 404, 405 with `Allow`, 413, 421 to an upgrade to WebSocket, 431, 501 to unknown
/// transfer codings, and 503 with `Retry-After`. Before the body is read, and ending the connection, come 400 to ambiguous
/// framing, 413, 421, 431, 501, 503 while draining, and every answer to a request with `Expect: 100-continue`.
///
/// libmicrohttpd 0.9.75 answers these itself, with a page of HTML, no media type and `Connection: close`:
/// - 400 "Request malformed": a request line without a version or with another protocol than HTTP, a header line without a
///   colon, a chunk size that is no hexadecimal number, a chunk longer than its size.
/// - 400 to a `Content-Length` that is negative or no number, 413 to one that does not fit into 64 bits. It sends the head
///   of these two answers a second time in the place of the body.
/// - 413 "Request content too large": a chunk size that does not fit into 64 bits.
/// - 414 and 431 "Request too big": request line, or header fields, beyond its memory for a connection; also very many
///   small fields, of which each takes 72 bytes of it.
/// - 505 "Requested HTTP version is not supported": HTTP/0.x, and HTTP/2 and later.
///
/// It closes without an answer a connection whose request line has no space, and, when it times out
/// (``Configuration/connectionTimeout``, ``Configuration/requestTimeout``), one with half a request or with more query items
/// (about 400) than fit into its memory. It cuts a target and the value of a field at a raw NUL byte, and
/// ignores a field without a name.
public final class HTTPServer: Sendable {
    /// Why a server did not start.
    public enum StartError: Error {
        /// It was started before; a server starts once.
        case startedBefore
        /// libmicrohttpd did not start, for want of memory, threads or descriptors.
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
    /// Invariant: the daemon is used with the lock held, and stopped after it was taken out of here.
    private let state = Mutex(State.new)

    /// Creates a server that answers by the routes of `router`.
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
            guard let daemon = startDaemon(configuration, processor) else { return .daemon }
            state = .running(daemon)
            processor.deadlines.start()
            return nil
        }
        if let error { throw error }
        logger.debug("HTTP server started", metadata: ["threads": "\(configuration.threads)"])
    }

    /// Serves the client behind a connected socket. The server owns the descriptor from now on and closes it in every case:
    /// at once when it does not run. If ``Configuration/connectionLimit`` connections are open and none of them is idle,
    /// ``Configuration/refuse`` takes it over.
    ///
    /// - Parameters:
    ///   - peer: The numeric IP address of the client, for ``HTTPRequestHead/peer``; other text counts as empty.
    ///   - context: Something about the connection that its requests carry as ``HTTPRequestHead/connectionContext``.
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

    /// Counts a new connection, for which an idle one may have to go.
    private func admitConnection() -> Bool {
        let limit = configuration.connectionLimit
        if processor.counters.admit(upTo: limit) { return true }
        guard processor.deadlines.cutLongestIdle() else { return false }
        processor.counters.dismiss()
        processor.counters.displacedConnections.add(1, ordering: .relaxed)
        return processor.counters.admit(upTo: limit)
    }

    /// Answers every request that comes from now on with 503 and `Connection: close`. Those that have come are answered.
    public func drain() {
        processor.isDraining.store(true, ordering: .relaxed)
    }

    /// Ends service: answers suspended requests with 503, finishes the streams, waits at most
    /// ``Configuration/stopTimeout`` until all answers are sent, closes all connections and ends the threads. Must not be
    /// called from a handler.
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
        // Connections that no thread had come to yet end without a callback.
        processor.counters.connections.store(0, ordering: .relaxed)
        logger.debug("HTTP server stopped")
    }

    /// How the routes were used since the start.
    public var routeStatistics: [RouteStatistics] { processor.times.statistics }

    /// The counters now.
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
