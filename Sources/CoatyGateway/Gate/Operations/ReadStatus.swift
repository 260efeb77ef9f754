import Coaty

/// Reads the state of the gateway's own session, and its counters.
struct ReadStatus: Operation {
    struct Outcome {
        let session: CommunicationStatistics
        let streams: ClientConnections.Statistics
        let queuedBytes: Int
        let pendingRequests: Int
        let totalRequests: Int
        /// Whether the client may know of other clients' subscriptions.
        let maySeeClients: Bool
    }

    func claims(on target: Void, in network: Network, by subject: Principal.Subject) -> [AccessRequest] {
        [AccessRequest(verb: .read, pattern: .status)]
    }

    func execute(on target: Void, in network: Network, under permit: Permit) -> Outcome {
        Outcome(
            session: network.manager.statistics,
            streams: network.feeds.streams.statistics,
            queuedBytes: network.feeds.queueMemory.bytes,
            pendingRequests: network.requestCount.pending,
            totalRequests: network.requestCount.total,
            maySeeClients: permit.allows(AccessRequest(verb: .administer, pattern: .clients))
        )
    }
}

/// Reads the identity, the namespace and the session state of the gateway.
struct ReadInfo: Operation {
    struct Outcome {
        /// The identity object as JSON text.
        let identity: [UInt8]
        let namespace: String
        let isOnline: Bool
    }

    func claims(on target: Void, in network: Network, by subject: Principal.Subject) -> [AccessRequest] {
        [AccessRequest(verb: .read, pattern: .info)]
    }

    func execute(on target: Void, in network: Network, under permit: Permit) -> Outcome {
        Outcome(
            identity: Array(network.manager.identityEvent.payload.json["object"]?.bytes ?? []),
            namespace: network.manager.namespace,
            isOnline: network.manager.isOnline
        )
    }
}
