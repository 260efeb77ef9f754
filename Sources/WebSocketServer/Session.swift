/// The service thread's state of an adopted descriptor, from its adoption until libwebsockets has freed it.
final class Session {
    enum Phase {
        /// Before the handshake is answered.
        case handshaking
        /// Answered with an HTTP error; libwebsockets closes the connection.
        case refused
        /// Accepted, but not yet able to send.
        case accepted(WebSocketConnection, opened: @Sendable (WebSocketConnection) -> Void)
        case open(WebSocketConnection)
        /// One side closes, with this code. When the time for that is over, the connection is cut.
        case closing(WebSocketConnection, code: UInt16)
        /// Only the destruction follows.
        case closed
    }

    let id: UInt64
    /// The IP address of the client; empty if it has none.
    let peer: String
    /// See ``WebSocketHandshake/context``.
    let context: (any Sendable & AnyObject)?
    var phase = Phase.handshaking
    /// Nil before libwebsockets knows the connection.
    var wsi: OpaquePointer?
    /// The received part of an incomplete message.
    var inbound: InboundMessage?
    /// Nil before the connection is open.
    var liveness: Liveness?
    /// When the timer of the open connection fires; nil if it is not set.
    var timerTime: ContinuousClock.Instant?
    /// Whether a ping must be sent before anything else.
    var owesPing = false
    var unsent = UnsentLimit()
    /// Number of bytes that were passed to libwebsockets.
    var passedBytes = 0
    enum Reading {
        case on
        /// Nothing is read until the next turn.
        case paused
        /// The rest of a refused message is not read: the connection is cut when the time to close it is over.
        case ended
    }

    var reading = Reading.on
    /// The accepted compression parameters; nil if compression was not accepted.
    var agreedCompression: String?
    /// Number of compression offers that libwebsockets has passed on so far.
    var compressionOffers = 0
    /// The frame with further fragments to send.
    var outbound: FrameSender.Progress?
    /// Whether libwebsockets may have pongs to send for pings that were received before a message. It sends them before
    /// the next callback for a writable socket, and replies to the message come after them.
    var owesPongs = false
    /// The frames of which libwebsockets keeps bytes, with the objects that represent their memory.
    var kept: [QueuedFrame] = []
    /// Whether it is in line to send (``WritingTurn``).
    var isInLine = false
    /// Number of payload bytes of the frames that were sent completely since the connection was last asked for a frame.
    var sentBytes = 0

    init(id: UInt64, peer: String, context: (any Sendable & AnyObject)?) {
        self.id = id
        self.peer = peer
        self.context = context
    }

    var compresses: Bool { agreedCompression != nil }

    /// Whether the handshake was accepted, and the connection exists.
    var isOnWebSocket: Bool {
        switch phase {
        case .accepted, .open, .closing: true
        case .handshaking, .refused, .closed: false
        }
    }
}
