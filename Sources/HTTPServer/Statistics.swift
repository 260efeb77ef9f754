import Synchronization

extension HTTPServer {
    /// A snapshot of a server's counters.
    public struct Statistics: Sendable, Equatable {
        /// The connections that are open.
        public let connections: Int
        /// The requests whose head has come, since the start.
        public let requests: Int
        /// The requests that the server refused without asking a handler, since the start.
        public let refused: Int
        /// The connections that were not taken, since the start.
        public let rejectedConnections: Int
        /// The idle connections that were closed in favour of new ones, since the start.
        public let displacedConnections: Int
        /// The suspended requests.
        public let pending: Int
        /// The open streams.
        public let streams: Int
    }
}

/// The counters behind ``HTTPServer/Statistics``; those that the registry of suspended requests does not have anyway.
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
