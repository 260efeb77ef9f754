import Access
import HTTPServer
import ProblemDetails
import WebSocketServer

/// The head of an HTTP request, or of the opening handshake of a WebSocket.
protocol ClientHead: ~Copyable {
    /// The address of the connection's other end.
    var peer: String { get }
    var connection: ConnectionOrigin? { get }

    /// Returns all lines of a field, joined by commas.
    func combinedHeader(_ name: String) -> String?
}

/// Determines who sends a request or handshake, by its head.
struct ClientAdmission: Sendable {
    let authenticator: Authenticator
    /// Determines the addresses of clients behind proxies.
    var addressing = ClientAddressing()

    /// Returns the address of the client.
    func address(of head: borrowing some ClientHead & ~Copyable) -> String {
        let peer = head.connection?.peer ?? head.peer
        guard let field = addressing.fieldName(forPeer: peer) else { return peer }
        return addressing.client(behind: peer, head.combinedHeader(field))
    }

    /// Returns the principal of the credentials; nil if there are none.
    ///
    /// - Parameters:
    ///   - authorization: the field of this name.
    ///   - ticket: the ticket in the URL.
    /// - Throws: `Problem` with status 401 if they are not valid.
    func principal(
        of head: borrowing some ClientHead & ~Copyable,
        _ authorization: String?,
        ticket: String?,
        from address: String,
        _ sender: BrowserPolicy.Sender
    ) throws(Problem) -> Principal? {
        try authenticator.principal(
            authorization: authorization,
            ticket: ticket,
            certificate: head.connection?.certificate(addressing),
            origin: sender.origin,
            address: address
        )
    }
}

extension HTTPRequestHead: ClientHead {
    var connection: ConnectionOrigin? { ConnectionOrigin.of(connectionContext) }
}

extension WebSocketHandshake: ClientHead {
    var connection: ConnectionOrigin? { ConnectionOrigin.of(context) }

    /// libwebsockets joins the lines of a field.
    func combinedHeader(_ name: String) -> String? { header(name) }
}

extension BrowserPolicy.Sender {
    /// The origin of the page; nil for the gateway's own page and for a client that is not a page.
    fileprivate var origin: WebOrigin? {
        if case .page(let origin) = self { origin } else { nil }
    }
}
