/// Handles the connections of a server.
///
/// Every call is made on the server's service thread, which serves all connections: none of them may block.
public protocol WebSocketHandler: Sendable {
    /// Decides on a handshake that is well-formed by RFC 6455, 4.2.1.
    func handshake(_ request: borrowing WebSocketHandshake) -> WebSocketDecision

    /// Handles a complete message; fragments have been joined.
    func received(_ message: WebSocketMessage, on connection: WebSocketConnection)

    /// Called when the queue of an open connection that has answered an ``WebSocketConnection/offer(_:)`` with
    /// ``WebSocketConnection/Offer/full`` has been reduced to half of its limit. Called only once for all such offers
    /// since the last call. May offer frames and close.
    func drained(_ connection: WebSocketConnection)

    /// Called once for each connection that was opened, after its last message.
    ///
    /// `code` is the server's own close code if the server closed; otherwise the peer's code, 1005 if the peer sent
    /// none, and 1006 if the connection ended without a close frame (RFC 6455, 7.4.1).
    func closed(_ connection: WebSocketConnection, code: UInt16)
}

extension WebSocketHandler {
    /// Does nothing.
    public func drained(_ connection: WebSocketConnection) {}
}

/// The answer to a handshake.
public enum WebSocketDecision: Sendable {
    /// Switch protocols. `opened` is called on the service thread once the connection can send. If the client
    /// disconnects earlier, neither `opened` nor ``WebSocketHandler/closed(_:code:)`` is called. `opened` may set
    /// ``WebSocketConnection/budget``.
    case accept(opened: @Sendable (WebSocketConnection) -> Void)

    /// Answer with an HTTP response and close. Content-Length and Connection are added.
    case refuse(status: Int, headers: [(String, String)], body: [UInt8])
}

/// A complete inbound message.
public enum WebSocketMessage: Sendable, Equatable {
    /// A text message, which was checked to be UTF-8.
    case text(String)

    /// A binary message.
    case binary([UInt8])
}
