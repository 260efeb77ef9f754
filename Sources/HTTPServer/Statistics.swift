import Synchronization

extension HTTPServer {
    /// A snapshot of a server's counters.
    public struct Statistics: Sendable, Equatable {
        /// Number of open connections.
        public let connections: Int
        /// Number of requests with a complete head, since the start.
        public let requests: Int
        /// Number of requests that the server refused without calling a handler, since the start.
        public let refused: Int
        /// Number of refused connections, since the start.
        public let rejectedConnections: Int
        /// Number of idle connections that were closed in favour of new ones, since the start.
        public let displacedConnections: Int
        /// Number of suspended requests.
        public let pending: Int
        /// Number of open streams.
        public let streams: Int
    }
}

/// The counters of ``HTTPServer/Statistics``, without those that the registry of suspended requests provides.
final class Counters: Sendable {
    let connections = Atomic<Int>(0)
    let requests = Atomic<Int>(0)
    let refused = Atomic<Int>(0)
    let rejectedConnections = Atomic<Int>(0)
    let displacedConnections = Atomic<Int>(0)

    /// Counts a new connection, unless `limit` are open.
    func admit(upTo limit: Int) -> Bool {
        if connections.add(1, ordering: .relaxed).newValue <= limit { return true }
        dismiss()
        return false
    }

    /// Counts a connection as closed.
    func dismiss() {
        connections.subtract(1, ordering: .relaxed)
    }
}
