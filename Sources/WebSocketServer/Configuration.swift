extension WebSocketServer {
    /// The bounds of a server and of each of its connections.
    public struct Configuration: Sendable {
        /// Longest inbound message in bytes, its fragments taken together. A longer one closes the connection with
        /// 1009 (RFC 6455, 7.4.1).
        public var maximumMessageSize = 64 * 1024

        /// Time from the first byte of an inbound message in which the whole of it must come, else the connection is closed with 1008.
        public var messageTimeout: Duration = .seconds(60)

        /// Most frames that may wait for one connection when another is offered, at least one; one more is not taken.
        public var offerQueueFrames = 64

        /// Most payload bytes that may wait for one connection when another frame is offered; one more is not taken. The bytes of a
        /// frame count until it is sent whole. A frame that is longer than this by itself is taken while no other has to be sent.
        public var offerQueueBytes = 256 * 1024

        /// Time without a pong after which a connection is pinged; whole seconds, rounded up, at least one.
        public var pingInterval: Duration = .seconds(30)

        /// Time after a ping in which the pong must arrive, else the connection is cut; whole seconds, rounded up.
        public var pongTimeout: Duration = .seconds(15)

        /// Time from the hand-over of a descriptor in which its handshake must be complete, else it is cut.
        public var handshakeTimeout: Duration = .seconds(10)

        /// Time that a peer gets to answer a close frame of the server, and that ``WebSocketServer/stop()`` waits for
        /// all of them. What is left then is cut.
        public var closeTimeout: Duration = .seconds(2)

        /// Close code of the connections that ``WebSocketServer/stop()`` closes; see ``WebSocketConnection/close(code:reason:)``.
        public var stopCode: UInt16 = 1001
        /// Returns the reason with which one connection is closed at a stop, at most 123 bytes. Called for each connection, on the service
        /// thread.
        public var stopReason: @Sendable () -> String = { "going away" }

        /// Most open connections; a handshake beyond gets 503.
        public var maximumConnections = 10_000

        /// Most descriptors that wait for the service thread, and most connections whose handshake is under way. One more ends the
        /// oldest of them, because one that makes no progress must not keep others out.
        public var maximumPendingHandshakes = 1024

        /// Takes over the descriptor of a connection that is given up because too many wait for their handshake; nil closes it. It must
        /// not block.
        public var refuse: (@Sendable (Int32) -> Void)?

        /// The subprotocols the server speaks: letters, digits, `-`, `_` and `.`, at most 63 of them. A client that
        /// offers subprotocols must offer one of these, else it gets 400.
        public var subprotocols: [String] = []

        /// Whether permessage-deflate (RFC 7692) is agreed to, without context takeover. Messages of 128 bytes to 64 KiB
        /// are then sent compressed where that makes them shorter. A client's message is held to
        /// ``maximumMessageSize`` both as it comes and as it is inflated; one that becomes longer than 8 KiB and more than
        /// a hundred times as long as it came closes the connection with 1009 as well.
        public var allowsCompression = false

        /// What the `type` of the library's own refusals (RFC 9457) begins with, a URI reference; `upgrade-required`
        /// and the like follow.
        public var problemTypePrefix = "about:blank#"

        /// Makes the body (RFC 9457) of the response to a request for a path that is no WebSocket handshake, status 426. It is called on
        /// the service thread. Without it, the body has no detail.
        public var upgradeRequired: (@Sendable (_ path: String) -> [UInt8])?

        /// The defaults given at each property.
        public init() {}
    }
}

extension WebSocketServer.Configuration {
    /// Longest request head in bytes. libwebsockets drops a longer one without an answer.
    static let maximumHeaderBytes: UInt32 = 16 * 1024

    /// libwebsockets compares subprotocol names in a buffer of 64 bytes.
    static let maximumSubprotocolLength = 63

    /// libwebsockets looks at the lists in Connection and Sec-WebSocket-Protocol in a buffer of 128 bytes and drops
    /// longer ones without an answer.
    static let maximumListLength = 126

    /// The same for Sec-WebSocket-Extensions, where it looks at 255 bytes.
    static let maximumExtensionsLength = 254

    /// Whole seconds, rounded up, within what libwebsockets can hold.
    static func wholeSeconds(_ duration: Duration) -> UInt16 {
        let (seconds, attoseconds) = duration.components
        return UInt16(clamping: max(1, attoseconds > 0 ? seconds + 1 : seconds))
    }

    static func microseconds(_ duration: Duration) -> Int64 {
        let (seconds, attoseconds) = duration.components
        return seconds * 1_000_000 + attoseconds / 1_000_000_000_000
    }
}
