extension WebSocketServer {
    /// The configuration of a server and of each of its connections.
    public struct Configuration: Sendable {
        /// Maximum length of an inbound message, including all its fragments, in bytes. A longer message closes the
        /// connection with 1009 (RFC 6455, 7.4.1).
        public var maximumMessageSize = 64 * 1024

        /// Maximum time from the first byte of an inbound message to its end; after that, the connection is closed with
        /// 1008.
        public var messageTimeout: Duration = .seconds(60)

        /// Maximum number of queued frames of a connection, at least one; a further frame is refused.
        public var offerQueueFrames = 64

        /// Maximum number of queued payload bytes of a connection; a further frame is refused. The bytes of a frame
        /// count until it is sent completely. A single frame that exceeds the limit is accepted if no other frame is
        /// queued.
        public var offerQueueBytes = 256 * 1024

        /// The time without a pong after which a connection is pinged, at least 100 ms.
        public var pingInterval: Duration = .seconds(30)

        /// Maximum time from a ping to its pong, at least 100 ms; after that, the connection is closed with
        /// ``unresponsiveCode``, and its queued messages are discarded. Any message counts as a pong. A peer for which
        /// bytes wait gets the same time again as long as it takes some of them.
        public var pongTimeout: Duration = .seconds(15)

        /// The close code of connections whose peers do not answer pings.
        public var unresponsiveCode: UInt16 = 1008

        /// Maximum time from the adoption of a descriptor to the end of its handshake; after that, the connection is
        /// cut.
        public var handshakeTimeout: Duration = .seconds(10)

        /// Maximum time for a peer to answer a close frame of the server, and for ``WebSocketServer/stop()`` to wait
        /// for all of them. After that, the connections are cut.
        public var closeTimeout: Duration = .seconds(2)

        /// The close code of connections that ``WebSocketServer/stop()`` closes; see
        /// ``WebSocketConnection/close(code:reason:)``.
        public var stopCode: UInt16 = 1001
        /// Returns the close reason of one connection at a stop, at most 123 bytes. Called for each connection, on the
        /// service thread.
        public var stopReason: @Sendable () -> String = { "going away" }

        /// Maximum number of open connections; a further handshake gets 503.
        public var maximumConnections = 10_000

        /// Maximum number of queued descriptors for the service thread, and of connections with an incomplete
        /// handshake. One more ends the oldest of them, because connections without progress must not keep others out.
        public var maximumPendingHandshakes = 1024

        /// Takes over the descriptor of a connection that is given up because too many handshakes are incomplete; nil
        /// closes it. It must not block.
        public var refuse: (@Sendable (Int32) -> Void)?

        /// The supported subprotocols: letters, digits, `-`, `_` and `.`, at most 63 characters each. A client that
        /// offers subprotocols must offer one of these; otherwise it gets 400.
        public var subprotocols: [String] = []

        /// Whether permessage-deflate (RFC 7692) is accepted, without context takeover. Messages of 128 bytes to 64 KiB
        /// are sent compressed if that makes them shorter. A client's message is limited to ``maximumMessageSize`` both
        /// as received and as inflated. A message that inflates to more than 8 KiB and more than a hundred times its
        /// received length also closes the connection with 1009.
        public var allowsCompression = false

        /// The prefix of `type` in the library's own refusals (RFC 9457), a URI reference, to which `upgrade-required`
        /// and so on are appended.
        public var problemTypePrefix = "about:blank#"

        /// Returns the body (RFC 9457) of the response to a request for a path that is not a WebSocket handshake,
        /// status 426. It is called on the service thread. Without it, the body has no detail.
        public var upgradeRequired: (@Sendable (_ path: String) -> [UInt8])?

        /// Creates a configuration with the defaults of all properties.
        public init() {}
    }
}

extension WebSocketServer.Configuration {
    /// Maximum length of a request head, in bytes. libwebsockets drops a longer one without an answer.
    static let maximumHeaderBytes: UInt32 = 16 * 1024

    /// libwebsockets compares subprotocol names in a buffer of 64 bytes.
    static let maximumSubprotocolLength = 63

    /// libwebsockets reads the lists in Connection and Sec-WebSocket-Protocol into a buffer of 128 bytes, and drops
    /// longer ones without an answer.
    static let maximumListLength = 126

    /// The same for Sec-WebSocket-Extensions, of which it reads 255 bytes.
    static let maximumExtensionsLength = 254

    /// Returns whole seconds, rounded up, within the range of libwebsockets.
    static func wholeSeconds(_ duration: Duration) -> UInt16 {
        let (seconds, attoseconds) = duration.components
        return UInt16(clamping: max(1, attoseconds > 0 ? seconds + 1 : seconds))
    }

    static func microseconds(_ duration: Duration) -> Int64 {
        let (seconds, attoseconds) = duration.components
        return seconds * 1_000_000 + attoseconds / 1_000_000_000_000
    }
}
