import Synchronization

extension WebSocketServer {
    /// Counts since the start of the server; `open` is a state.
    public struct Statistics: Sendable, Equatable {
        /// Connections that are open or closing.
        public var open = 0
        /// Handshakes answered with 101.
        public var accepted = 0
        /// Handshakes answered with an error, by the handler or by the library, and connections ended before that
        /// because too many waited.
        public var refused = 0
        /// Connections whose handshake was not complete in time.
        public var handshakeTimeouts = 0
        /// Messages received whole.
        public var messagesReceived = 0
        /// Payload bytes of messages received whole.
        public var bytesReceived = 0
        /// Messages given whole to the sockets.
        public var messagesSent = 0
        /// Payload bytes given to the sockets, as compressed.
        public var bytesSent = 0
    }
}

/// The statistics, shared by the server, its connections and the service thread.
final class Counters: Sendable {
    private let statistics = Mutex(WebSocketServer.Statistics())

    var current: WebSocketServer.Statistics {
        statistics.withLock { $0 }
    }

    func update(_ change: (inout WebSocketServer.Statistics) -> Void) {
        statistics.withLock { change(&$0) }
    }
}
