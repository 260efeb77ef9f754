import Base
import Cluster
import Coaty
import Network

/// The parts of the gateway that act in the Coaty network. Only ``Gate`` holds one and lends it to operations.
struct NetworkParts: Sendable {
    /// The gateway's own agent, which publishes for clients without an identity.
    let manager: CommunicationManager
    let feeds: FeedHub
    let objects: ObjectRegistry
    /// Performs queries of ``objects``.
    let queries: Queries
    let owners: ObjectOwners
    let keptObjects: KeptObjects
    let ioNodes: IoNodeRegistry
    let routing: RoutingAdmin
    let identities: ClientIdentities
    /// The messages of the demo agent; nil without one.
    var demoMessages: MessageCounts?
    /// The accounts of the clients.
    let accounts: Accounts
    /// The feeds that each client uses.
    let feedShares = FeedShares()
    /// Nil if the resident memory is not monitored.
    var residentMemory: ResidentMemory?
    /// Nil if agents of other namespaces are not observed.
    var otherNamespaces: OtherNamespaces?
    /// Nil if the gateway is in no cluster.
    var peers: Peers?
    var peerNodes: PeerNodes?
    /// Nil if the gateway is in no cluster.
    var routingCluster: RoutingCluster?
    /// Counts the requests of clients.
    let requestCount: RequestCount
    let metrics: Metrics
    let http = HTTPUse()
    /// The first answers to requests with an `Idempotency-Key`.
    let idempotency = IdempotencyTable()
    /// The operators' control of the gateway.
    var control = GatewayControl(root: nil)

    /// The messages of all sessions with the broker.
    var sessions: [SessionMessages] {
        let own = manager.statistics
        return [
            SessionMessages(kind: .gateway, received: own.received, published: own.published),
            SessionMessages(.traffic, feeds.trafficSessions.messageCounts),
            SessionMessages(.raw, feeds.rawSessions.messageCounts),
            SessionMessages(.identities, identities.messageCounts),
            SessionMessages(.ioNodes, ioNodes.messageCounts),
        ] + (demoMessages.map { [SessionMessages(.demo, $0)] } ?? [])
    }
}

/// The MQTT messages of the broker sessions of one kind, since the gateway was started.
struct SessionMessages: Sendable {
    enum Kind: String, Sendable {
        /// The gateway's own agent.
        case gateway
        /// The sessions that observe traffic, and agents of other namespaces.
        case traffic
        /// The sessions that observe raw events.
        case raw
        /// The identities of clients.
        case identities
        /// The IO nodes of clients.
        case ioNodes
        /// The agent of `--demo true`.
        case demo
    }

    let kind: Kind
    let received: Int
    let published: Int
}

extension SessionMessages {
    init(_ kind: Kind, _ counts: MessageCounts) {
        self.init(kind: kind, received: counts.received, published: counts.published)
    }
}
