package import Access
package import Base
package import Coaty
package import Feeds
package import Measurement
package import Network

/// Reads the state of the gateway, and its counters.
package struct ReadStatus: Operation {
    package var kind: OperationKind { OperationKind(verb: .read, pattern: .status) }

    package struct Outcome {
        /// Whether the gateway refuses new work.
        package let isPaused: Bool
        package let session: CommunicationStatistics
        /// The messages of all sessions.
        package let sessions: [SessionMessages]
        package let otherNamespaces: [OtherNamespaces.Namespace]
        /// Nil if the gateway is in no cluster.
        package let cluster: ClusterStatus?
        package let streams: ClientConnections.Statistics
        package let memory: MemoryStatus
        /// Number of times that the oldest events of a feed were replaced by a gap.
        package let feedOverflows: Int
        package let pendingRequests: Int
        package let totalRequests: Int
        /// The time that events were queued in feeds.
        package let waits: DurationHistogram.Snapshot
        package let refusals: [Refusals.Reason: Int]
        /// The costs of clients; nil if the principal may not know of other clients.
        package let topClients: [ClientCost]?
    }

    package func claims(on target: Void, in network: NetworkParts, by subject: Principal.Subject) -> [AccessRequest] {
        [AccessRequest(verb: .read, pattern: .status)]
    }

    package func execute(on target: Void, in network: NetworkParts, under permit: Permit) -> Outcome {
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
            waits: network.feeds.counts.waits.snapshot,
            refusals: network.accounts.refusals.all,
            topClients: maySeeClients ? network.accounts.topClients : nil
        )
    }

    package init() {}
}

/// Reads the identity, the namespace and the session state of the gateway.
package struct ReadInfo: Operation {
    package var kind: OperationKind { OperationKind(verb: .read, pattern: .info) }

    package struct Outcome {
        /// The identity object as JSON text.
        package let identity: [UInt8]
        package let namespace: String
        package let isOnline: Bool
    }

    package func claims(on target: Void, in network: NetworkParts, by subject: Principal.Subject) -> [AccessRequest] {
        [AccessRequest(verb: .read, pattern: .info)]
    }

    package func execute(on target: Void, in network: NetworkParts, under permit: Permit) -> Outcome {
        Outcome(
            identity: Array(network.manager.identityEvent.payload.json["object"]?.bytes ?? []),
            namespace: network.manager.namespace,
            isOnline: network.manager.isOnline
        )
    }

    package init() {}
}

/// The memory of the gateway.
package struct MemoryStatus: Sendable {
    /// Resident bytes beyond those at start, and their maximum.
    package let resident, maximumResident: Int
    /// Bytes held for clients, and their maximum.
    package let charged, maximumCharged: Int
    /// Bytes of events that are queued for the workers, and their maximum.
    package let feeds, maximumFeeds: Int
    /// Connections that were closed because the memory was used up.
    package let closed: Int
    /// Number of refusals at a client's own limit, and at the limit of all clients.
    package let refusedOwn, refusedAll: Int

    package init(_ accounts: Accounts, _ memory: ResidentMemory?, _ counts: FeedCounts) {
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
