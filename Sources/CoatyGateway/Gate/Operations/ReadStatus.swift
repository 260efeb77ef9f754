import Access
import Base
import Coaty
import HTTPServer
import Measurement
import Network

/// Reads the state of the gateway, and its counters.
struct ReadStatus: Operation {
    var kind: OperationKind { OperationKind(verb: .read, pattern: .status) }

    struct Outcome {
        /// Whether the gateway refuses new work.
        let isPaused: Bool
        let session: CommunicationStatistics
        /// The messages of all sessions.
        let sessions: [SessionMessages]
        let otherNamespaces: [OtherNamespaces.Namespace]
        /// Nil if the gateway is in no cluster.
        let cluster: ClusterStatus?
        let streams: ClientConnections.Statistics
        let memory: MemoryStatus
        /// Number of times that the oldest events of a feed were replaced by a gap.
        let feedOverflows: Int
        let pendingRequests: Int
        let totalRequests: Int
        let http: HTTPUse.Figures
        /// The time that events were queued in feeds.
        let waits: DurationHistogram.Snapshot
        let refusals: [Refusals.Reason: Int]
        /// The costs of clients; nil if the principal may not know of other clients.
        let topClients: [ClientCost]?
    }

    func claims(on target: Void, in network: NetworkParts, by subject: Principal.Subject) -> [AccessRequest] {
        [AccessRequest(verb: .read, pattern: .status)]
    }

    func execute(on target: Void, in network: NetworkParts, under permit: Permit) -> Outcome {
        let maySeeClients = permit.allows(AccessRequest(verb: .administer, pattern: .clients))
        return Outcome(
            isPaused: network.control.isPaused,
            session: network.manager.statistics,
            sessions: network.sessions,
            otherNamespaces: network.otherNamespaces?.all ?? [],
            cluster: network.peers.map { ClusterStatus($0, network.routingCluster) },
            streams: network.feeds.streams.statistics,
            memory: MemoryStatus(network.accounts, network.residentMemory, network.feeds.counts),
            feedOverflows: network.feeds.counts.droppedBacklogs,
            pendingRequests: network.requestCount.pending,
            totalRequests: network.requestCount.total,
            http: network.http.figures,
            waits: network.feeds.counts.waits.snapshot,
            refusals: network.accounts.refusals.all,
            topClients: maySeeClients ? network.accounts.topClients : nil
        )
    }
}

/// Reads the identity, the namespace and the session state of the gateway.
struct ReadInfo: Operation {
    var kind: OperationKind { OperationKind(verb: .read, pattern: .info) }

    struct Outcome {
        /// The identity object as JSON text.
        let identity: [UInt8]
        let namespace: String
        let isOnline: Bool
    }

    func claims(on target: Void, in network: NetworkParts, by subject: Principal.Subject) -> [AccessRequest] {
        [AccessRequest(verb: .read, pattern: .info)]
    }

    func execute(on target: Void, in network: NetworkParts, under permit: Permit) -> Outcome {
        Outcome(
            identity: Array(network.manager.identityEvent.payload.json["object"]?.bytes ?? []),
            namespace: network.manager.namespace,
            isOnline: network.manager.isOnline
        )
    }
}

/// The memory of the gateway.
struct MemoryStatus: Sendable {
    /// Resident bytes beyond those at start, and their maximum.
    let resident, maximumResident: Int
    /// Bytes held for clients, and their maximum.
    let charged, maximumCharged: Int
    /// Bytes of events that are queued for the workers, and their maximum.
    let feeds, maximumFeeds: Int
    /// Connections that were closed because the memory was used up.
    let closed: Int
    /// Number of refusals at a client's own limit, and at the limit of all clients.
    let refusedOwn, refusedAll: Int

    init(_ accounts: Accounts, _ memory: ResidentMemory?, _ counts: FeedCounts) {
        feeds = counts.usedMemory
        maximumFeeds = accounts.limits.feedMemory
        resident = memory?.used ?? 0
        maximumResident = accounts.limits.memory
        charged = accounts.memory.used
        maximumCharged = accounts.limits.clientMemory
        closed = memory?.closed ?? 0
        let refusals = accounts.refusals.all
        refusedOwn = refusals.reduce(0) { $0 + ($1.key.exhaustion == .own ? $1.value : 0) }
        refusedAll = refusals.reduce(0) { $0 + ($1.key.exhaustion == .all ? $1.value : 0) }
    }
}
