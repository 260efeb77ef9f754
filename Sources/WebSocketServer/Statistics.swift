import Synchronization

extension WebSocketServer {
    /// Counts since the start of the server; `open` is the current number.
    public struct Statistics: Sendable, Equatable {
        /// Connections that are open or closing.
        public var open = 0
        /// Handshakes answered with 101.
        public var accepted = 0
        /// Handshakes that the handler or the library answered with an error, and connections that were ended earlier
        /// because too many handshakes were incomplete.
        public var refused = 0
        /// Connections whose handshake was not complete in time.
        public var handshakeTimeouts = 0
        /// Complete messages received.
        public var messagesReceived = 0
        /// Payload bytes of complete messages received.
        public var bytesReceived = 0
        /// Complete messages written to the sockets.
        public var messagesSent = 0
        /// Payload bytes written to the sockets, after compression.
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
