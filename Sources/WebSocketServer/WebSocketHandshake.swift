import CWebSockets

/// A client's opening handshake, readable while the handler decides about it.
public struct WebSocketHandshake: ~Copyable {
    // Not copyable, and lent to the handler: libwebsockets frees the headers behind `wsi` when the decision is made, so
    // a handshake must not outlive the call.

    /// The path, percent-decoded, with `//`, `/./` and `/../` resolved.
    public let path: String

    /// The query's items in their order, percent-decoded, `+` read as a space. An item without `=` has an empty value.
    /// libwebsockets separates items at a raw `;` as at `&`, and turns `%3D` in a name into `_`.
    public let queryItems: [(name: String, value: String)]

    /// What the client offers in Sec-WebSocket-Protocol, in its order.
    public let offeredSubprotocols: [String]

    /// The first subprotocol offered that the server speaks, which is the one that an acceptance agrees to; nil where
    /// none was offered.
    public let subprotocol: String?

    /// The IP address of the client, as it came with the connection; empty if it has none.
    public let peer: String

    /// The context that the connection was handed over with; nil if it had none.
    public let context: (any Sendable & AnyObject)?

    private let wsi: OpaquePointer

    /// Service thread only, while the request head is there.
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

    /// A header field's value by its name in any case. Where a field came several times, the values are joined by
    /// commas; of a field libwebsockets does not know by itself, only one is found.
    public func header(_ name: String) -> String? {
        RequestHead.header(name, in: wsi)
    }
}
