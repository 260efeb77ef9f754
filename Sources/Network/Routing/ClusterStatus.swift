package import Cluster
package import Coaty

/// The cluster as this gateway sees it, for operators.
package struct ClusterStatus: Sendable {
    /// The states that are counted.
    package static let states: [PeerTable.Presence] = [.live, .stopping, .missing, .partitioned, .left]

    package struct Gateway: Sendable {
        package let identity: CoatyUUID
        package let state: PeerTable.Presence
        /// The time since its last message.
        package let silence: Duration
    }

    /// The id of this gateway's identity.
    package let identity: CoatyUUID
    /// Own messages that the broker has delivered again.
    package let loops: Int
    package let gateways: [Gateway]
    /// The hosted contexts.
    package let contexts: [RoutingCluster.Status]

    package init(_ peers: Peers, _ routing: RoutingCluster? = nil) {
        contexts = routing?.status ?? []
        let (table, now) = (peers.table, peers.now)
        identity = peers.id
        loops = table.loops
        gateways = table.peers.values
            .map { Gateway(identity: $0.id, state: $0.presence, silence: now - $0.lastHeard) }
            .sorted { $0.identity.string < $1.identity.string }
    }
}
