import Base
import Feeds
import ProblemDetails
import WebSocketServer

/// The close codes of WebSockets that the gateway defines or sends; docs/websocket.md lists all codes.
///
/// A client reconnects unless the code is from 4500 to 4999: a new connection would end in the same way.
package enum CloseCode: UInt16 {
    /// The gateway has no space for the subscription now, or no keys for the token, or the token is not yet valid.
    /// Registered with IANA as "Try Again Later".
    case tryAgainLater = 1013
    /// The gateway is shutting down.
    case shuttingDown = 4000
    /// The client reads too slowly: replies to its frames or a subscription with `overflow=close` have overflowed.
    case slowClient = 4001
    /// The client's token has expired, or its key was withdrawn. The client can connect with a new one.
    case tokenExpired = 4002
    /// The client neither answers pings nor reads.
    case unresponsive = 4003
    /// The resource that the connection's only subscription observes no longer exists.
    case gone = 4500
    /// The broker, or the access configuration after a reload, does not allow the connection's only subscription.
    case refused = 4501
    /// The client has not authenticated in time, or its token is wrong.
    case notAuthenticated = 4502
    /// The access of the client was removed.
    case accessRemoved = 4503
    /// The client has sent a message where none is allowed, or a binary one where text is required.
    case protocolError = 4504
    /// An operator has disconnected the client.
    case disconnected = 4505
    /// The client has resumed its identity on another connection.
    case identityResumed = 4506

    /// Returns the code for a connection that ends.
    init(_ end: ConnectionEnd) {
        self =
            switch end {
            case .done(.overflow): .slowClient
            // `withdrawn`; the other reasons end requests, and a WebSocket never carries a single request.
            case .done: .gone
            case .expired: .tokenExpired
            case .refused(status: 401): .accessRemoved
            case .refused(status: 403): .refused
            case .refused(status: 503): .tryAgainLater
            case .refused: .gone
            case .disconnected: .disconnected
            }
    }
}

extension WebSocketConnection {
    /// Closes the connection after the queued messages.
    func close(_ code: CloseCode, _ reason: String) { close(code: code.rawValue, reason: reason) }
}
