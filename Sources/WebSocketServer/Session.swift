/// What the service thread keeps of an adopted descriptor, from its adoption until libwebsockets has freed it.
final class Session {
    enum Phase {
        /// Before the handshake is answered.
        case handshaking
        /// Answered with an HTTP error; libwebsockets closes.
        case refused
        /// Accepted, and not yet able to send.
        case accepted(WebSocketConnection, opened: @Sendable (WebSocketConnection) -> Void)
        case open(WebSocketConnection)
        /// One side closes, with this code: within the time for that, then the connection is cut.
        case closing(WebSocketConnection, code: UInt16)
        /// Nothing comes after this but its destruction.
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
    /// What has come of the message of which more is to come.
    var inbound: InboundMessage?
    /// Whether the timer goes off in time for the deadline of `inbound`.
    var isMessageTimed = false
    enum Reading {
        case on
        /// Nothing is read until the next turn.
        case paused
        /// The rest of a message that was refused is not read: the connection is cut when the time to close it is over.
        case ended
    }

    var reading = Reading.on
    /// What was agreed to about compression; nil where it was not.
    var agreedCompression: String?
    /// How often libwebsockets has asked whether to agree to compression: once for each offer.
    var compressionOffers = 0
    /// Whether the frame that is being written begins a compressed message.
    var marksFrame = false
    /// The frame of which more fragments are to be sent.
    var outbound: FrameSender.Progress?
    /// Whether it waits in line to send (``WritingTurn``).
    var isInLine = false
    /// Payload bytes of the frames that were sent whole since the connection was last asked for one.
    var sentBytes = 0

    init(id: UInt64, peer: String, context: (any Sendable & AnyObject)?) {
        self.id = id
        self.peer = peer
        self.context = context
    }

    var compresses: Bool { agreedCompression != nil }

    /// Whether the handshake was accepted, and the connection is there.
    var isOnWebSocket: Bool {
        switch phase {
        case .accepted, .open, .closing: true
        case .handshaking, .refused, .closed: false
        }
    }
}
