import CWebSockets

/// A client's opening handshake, readable while the handler decides on it.
public struct WebSocketHandshake: ~Copyable {
    // Not copyable, and only borrowed by the handler: libwebsockets frees the headers of `wsi` after the decision, so a
    // handshake must not outlive the call.

    /// The path, percent-decoded, with `//`, `/./` and `/../` resolved.
    public let path: String

    /// The items of the query in order, percent-decoded, with `+` read as a space. An item without `=` has an empty
    /// value. libwebsockets also separates items at a raw `;`, and changes `%3D` in a name to `_`.
    public let queryItems: [(name: String, value: String)]

    /// The subprotocols that the client offers in Sec-WebSocket-Protocol, in its order.
    public let offeredSubprotocols: [String]

    /// The first offered subprotocol that the server supports, which is used if the handshake is accepted; nil if none
    /// was offered.
    public let subprotocol: String?

    /// The IP address of the client that the connection was added with; empty if it has none.
    public let peer: String

    /// The context that the connection was added with; nil if it has none.
    public let context: (any Sendable & AnyObject)?

    private let wsi: OpaquePointer

    /// Reads a handshake. Service thread only, while the request head exists.
    init(
        wsi: OpaquePointer,
        peer: String,
        context: (any Sendable & AnyObject)?,
        target: RequestHead.Target,
        offeredSubprotocols: [String],
        subprotocol: String?
    ) {
        self.wsi = wsi
        self.peer = peer
        self.context = context
        self.offeredSubprotocols = offeredSubprotocols
        self.subprotocol = subprotocol
        path = target.path
        queryItems = target.queryItems
    }

    /// Returns the value of a header field by its name, in any case. If a field occurs several times, the values are
    /// joined by commas; of a field that libwebsockets does not know, only one occurrence is found.
    public func header(_ name: String) -> String? {
        RequestHead.header(name, in: wsi)
    }
}
