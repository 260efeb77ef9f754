package import Base
package import Cluster
package import Coaty
package import Feeds
package import Measurement
package import Network

/// The parts of the gateway that act in the Coaty network. Only ``Gate`` holds one and lends it to operations.
package final class NetworkParts: Sendable {
    /// The gateway's own agent, which publishes for clients without an identity.
    package let manager: CommunicationManager
    package let feeds: FeedHub
    let objects: ObjectRegistry
    /// Performs queries of ``objects``.
    let queries: Queries
    let owners: ObjectOwners
    package let keptObjects: KeptObjects
    package let ioNodes: IoNodeRegistry
    package let routing: RoutingAdmin
    let identities: ClientIdentities
    /// The messages of the demo agent; nil without one.
    let demoMessages: MessageCounts?
    /// The accounts of the clients.
    package let accounts: Accounts
    /// The feeds that each client uses.
    let feedShares = FeedShares()
    /// Nil if the resident memory is not monitored.
    package let residentMemory: ResidentMemory?
    /// Nil if agents of other namespaces are not observed.
    let otherNamespaces: OtherNamespaces?
    /// Nil if the gateway is in no cluster.
    package let peers: Peers?
    let peerNodes: PeerNodes?
    /// Nil if the gateway is in no cluster.
    let routingCluster: RoutingCluster?
    /// Counts the requests of clients.
    package let requestCount = RequestCount()
    let metrics: Metrics
    /// The operators' control of the gateway.
    package let control: GatewayControl

    package init(
        manager: CommunicationManager,
        feeds: FeedHub,
        objects: ObjectRegistry,
        queries: Queries,
        owners: ObjectOwners,
        keptObjects: KeptObjects,
        ioNodes: IoNodeRegistry,
        routing: RoutingAdmin,
        identities: ClientIdentities,
        demoMessages: MessageCounts? = nil,
        accounts: Accounts,
        residentMemory: ResidentMemory? = nil,
        otherNamespaces: OtherNamespaces? = nil,
        peers: Peers? = nil,
        peerNodes: PeerNodes? = nil,
        routingCluster: RoutingCluster? = nil,
        metrics: Metrics,
        control: GatewayControl = GatewayControl(root: nil)
    ) {
        self.manager = manager
        self.feeds = feeds
        self.objects = objects
        self.queries = queries
        self.owners = owners
        self.keptObjects = keptObjects
        self.ioNodes = ioNodes
        self.routing = routing
        self.identities = identities
        self.demoMessages = demoMessages
        self.accounts = accounts
        self.residentMemory = residentMemory
        self.otherNamespaces = otherNamespaces
        self.peers = peers
        self.peerNodes = peerNodes
        self.routingCluster = routingCluster
        self.metrics = metrics
        self.control = control
    }

    /// The messages of all sessions with the broker.
    package var sessions: [SessionMessages] {
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
package struct SessionMessages: Sendable {
    package enum Kind: String, Sendable {
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

    package let kind: Kind
    package let received: Int
    package let published: Int
}

extension SessionMessages {
    init(_ kind: Kind, _ counts: MessageCounts) {
        self.init(kind: kind, received: counts.received, published: counts.published)
    }
}
