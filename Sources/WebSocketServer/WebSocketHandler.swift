/// What a server does with its connections.
///
/// Every call comes on the server's service thread, which serves all connections: none of them may block.
public protocol WebSocketHandler: Sendable {
    /// Decides about a handshake that is well-formed by RFC 6455, 4.2.1.
    func handshake(_ request: borrowing WebSocketHandshake) -> WebSocketDecision

    /// Takes a whole message; fragments have been put together.
    func received(_ message: WebSocketMessage, on connection: WebSocketConnection)

    /// The queue of an open connection that has answered an ``WebSocketConnection/offer(_:)`` with
    /// ``WebSocketConnection/Offer/full`` has run down to half of what it may hold. Told once, however many offers were
    /// answered so since the last time. May offer frames and close.
    func drained(_ connection: WebSocketConnection)

    /// Told once for each connection that was opened, after its last message.
    ///
    /// `code` is the server's own close code where the server closed, else the peer's, 1005 where the peer sent none,
    /// and 1006 where the connection went without a close frame (RFC 6455, 7.4.1).
    func closed(_ connection: WebSocketConnection, code: UInt16)
}

extension WebSocketHandler {
    /// Does nothing.
    public func drained(_ connection: WebSocketConnection) {}
}

/// The answer to a handshake.
public enum WebSocketDecision: Sendable {
    /// Switch protocols. `opened` is called on the service thread once the connection can send; it is not called, and
    /// neither is ``WebSocketHandler/closed(_:code:)``, where the client went before. It may set ``WebSocketConnection/budget``.
    case accept(opened: @Sendable (WebSocketConnection) -> Void)

    /// Answer with an HTTP response and close. Content-Length and Connection are added.
    case refuse(status: Int, headers: [(String, String)], body: [UInt8])
}

/// A whole inbound message.
public enum WebSocketMessage: Sendable, Equatable {
    /// A text message; checked to be UTF-8.
    case text(String)

    /// A binary message.
    case binary([UInt8])
}
