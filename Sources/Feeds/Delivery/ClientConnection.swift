package import Base
package import Coaty
package import Network

/// An open connection of a client, or a stream of the responses to one request.
package struct ClientConnection: Sendable {
    /// The number of the connection since the gateway's start.
    package let number: Int
    package let transport: ClientConnections.Transport
    /// The IP address of the client.
    package let address: String
    package let outbound: OutboundQueue
    /// Returns the Coaty identity of the client; nil if it has none.
    package let identity: @Sendable () -> ClientIdentity?
    /// When the connection was opened.
    package let opened = CoatyTimestamp.nowMillis()

    /// The client whose account the connection is charged to.
    package var client: ClientKey { outbound.account.client }
}

extension ClientConnections {
    /// A part of the connections.
    package struct Listing: Sendable {
        /// The connections with the most queued bytes first, then those with the most dropped events, then the newest.
        package let connections: [(connection: ClientConnection, statistics: OutboundQueue.Statistics)]
        /// The number of all connections.
        package let total: Int
    }

    /// Returns the first connections in the order of ``Listing/connections``.
    package func listing(limit: Int) -> Listing {
        let all = all.map { (connection: $0, statistics: $0.outbound.statistics) }
        let sorted = all.sorted { one, other in
            (one.statistics.queuedBytes, one.statistics.dropped, one.connection.number)
                > (other.statistics.queuedBytes, other.statistics.dropped, other.connection.number)
        }
        return Listing(connections: Array(sorted.prefix(limit)), total: all.count)
    }
}
