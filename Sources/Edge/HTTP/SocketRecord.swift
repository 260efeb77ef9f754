import HTTPServer
import Synchronization

/// The data of a WebSocket for the request log.
final class SocketRecord: Sendable {
    /// The ids of the handshake.
    let identity: RequestIdentity?
    /// The path of the route, with parameters in braces.
    let route: String
    let address: String
    private let begin = ContinuousClock.now
    private let receivedBytes = Atomic(0)

    init(_ identity: RequestIdentity?, route: String, address: String) {
        self.identity = identity
        self.route = route
        self.address = address
    }

    /// Number of bytes of the client's messages.
    var received: Int { receivedBytes.load(ordering: .relaxed) }

    /// The time since the handshake.
    var nanoseconds: Int { Int((ContinuousClock.now - begin) / .nanoseconds(1)) }

    func note(received bytes: Int) { receivedBytes.add(bytes, ordering: .relaxed) }
}
