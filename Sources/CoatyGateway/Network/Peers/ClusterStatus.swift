import Coaty

/// The cluster as this gateway sees it, for operators.
struct ClusterStatus: Sendable {
    /// The states that are counted.
    static let states: [PeerTable.Presence] = [.live, .stopping, .missing, .partitioned, .left]

    struct Gateway: Sendable {
        let identity: CoatyUUID
        let state: PeerTable.Presence
        /// The time since its last message.
        let silence: Duration
    }

    /// The id of this gateway's identity.
    let identity: CoatyUUID
    /// Own messages that the broker has delivered again.
    let loops: Int
    let gateways: [Gateway]
    /// The hosted contexts.
    let contexts: [RoutingCluster.Status]

    init(_ peers: Peers, _ routing: RoutingCluster? = nil) {
        contexts = routing?.status ?? []
        let (table, now) = (peers.table, peers.now)
        identity = peers.id
        loops = table.loops
        gateways = table.peers.values
            .map { Gateway(identity: $0.id, state: $0.presence, silence: now - $0.lastHeard) }
            .sorted { $0.identity.string < $1.identity.string }
    }
}
