import Base
import Coaty
import Network

/// An open connection of a client, or a stream of the responses to one request.
struct ClientConnection: Sendable {
    /// The number of the connection since the gateway's start.
    let number: Int
    let transport: ClientConnections.Transport
    /// The IP address of the client.
    let address: String
    let outbound: OutboundQueue
    /// Returns the Coaty identity of the client; nil if it has none.
    let identity: @Sendable () -> ClientIdentity?
    /// When the connection was opened.
    let opened = CoatyTimestamp.nowMillis()

    /// The client whose account the connection is charged to.
    var client: ClientKey { outbound.account.client }
}

extension ClientConnections {
    /// A part of the connections.
    struct Listing: Sendable {
        /// The connections with the most queued bytes first, then those with the most dropped events, then the newest.
        let connections: [(connection: ClientConnection, statistics: OutboundQueue.Statistics)]
        /// The number of all connections.
        let total: Int
    }

    /// Returns the first connections in the order of ``Listing/connections``.
    func listing(limit: Int) -> Listing {
        let all = all.map { (connection: $0, statistics: $0.outbound.statistics) }
        let sorted = all.sorted { one, other in
            (one.statistics.queuedBytes, one.statistics.dropped, one.connection.number)
                > (other.statistics.queuedBytes, other.statistics.dropped, other.connection.number)
        }
        return Listing(connections: Array(sorted.prefix(limit)), total: all.count)
    }
}
