extension Limits {
    /// Messages to and from the broker, and contexts, nodes and agents in the network.
    static let networkBounds = [
        Bound(
            "broker-connect-timeout",
            .seconds,
            in: 1...300,
            "Maximum time until a broker accepts a connection",
            atTheBound: "the gateway tries the next address",
            \.brokerConnectTimeout
        ),
        Bound(
            "maximum-publication-size",
            .bytes,
            in: 1024...268_435_460,
            "Maximum size of a packet with a publication if the broker does not state its own, as with MQTT 3.1.1; brokers end the connection because of a larger packet",
            atTheBound: "413 `exceeds-broker-limit`",
            \.publicationSize
        ),
        Bound(
            "maximum-outbox-publications",
            .number,
            in: 1...1 << 30,
            "Maximum number of publications queued for the broker",
            atTheBound: "503 `queue-full`",
            \.outboxPublications
        ),
        Bound(
            "maximum-kept-objects",
            .number,
            in: 1...1_000_000,
            "Maximum number of objects that the gateway advertises again after a reconnect: an object counts at least as `maximum-kept-object-bytes` divided by this",
            atTheBound: "as `maximum-kept-object-bytes`",
            \.keptObjects
        ),
        Bound(
            "maximum-object-lifetime",
            .seconds,
            in: 1...31_536_000,
            "Maximum `lifetime` of an advertised object",
            atTheBound: "400 `invalid-value`",
            \.objectLifetime
        ),
        Bound(
            "maximum-event-size",
            .bytes,
            in: 1 << 20...256 << 20,
            "Maximum size of an event that is received from the broker",
            derivation: "16777216, less if maximum-memory is below 256 MiB",
            atTheBound:
                "the event is dropped, with a gap; with TLS, if it is more than 64 KiB larger, the broker connection is closed",
            \.eventSize
        ),
        Bound(
            "maximum-event-values",
            .number,
            in: 1000...100_000_000,
            "Maximum number of JSON values, names of members included, in an event that is received from the broker",
            atTheBound: "the event is dropped, with a gap",
            \.eventValues
        ),
        Bound(
            "maximum-waiting-events",
            .number,
            in: 2...1_000_000,
            "Maximum number of events of a feed that wait for a worker",
            atTheBound: "a gap replaces the older half",
            \.waitingEvents
        ),
        Bound(
            "maximum-peer-feeds",
            .number,
            in: 0...1_000_000,
            "Maximum number of feeds that the gateway keeps only for clients of other gateways of its cluster, so that they can resume here",
            atTheBound: "a client of another gateway that resumes here gets a gap",
            \.peerFeeds
        ),
        Bound(
            "maximum-raw-connections",
            .number,
            in: 1...100,
            "Maximum number of broker connections for `raw` subscriptions; clients are distributed over them",
            atTheBound: "clients share a connection",
            \.rawConnections
        ),
        Bound(
            "maximum-agent-event-size",
            .bytes,
            in: 1024...256 << 20,
            "Maximum size of an event that an identity or IO node receives",
            atTheBound: "the event is dropped",
            \.agentEventSize
        ),
        Bound(
            "maximum-agent-event-values",
            .number,
            in: 1000...100_000_000,
            "Maximum number of JSON values in an event that an identity or IO node receives",
            atTheBound: "the event is dropped",
            \.agentEventValues
        ),
        Bound(
            "maximum-agent-publications",
            .number,
            in: 1...1_000_000,
            "Maximum number of publications of an identity or IO node that are queued for the broker; their size is at most four times `maximum-body-size`",
            atTheBound: "503 `queue-full`",
            \.agentPublications
        ),
        Bound(
            "maximum-waiting-context-changes",
            .number,
            in: 1...10_000,
            "Maximum number of pending changes of an IO context",
            atTheBound: "503 `too-many-pending-updates`",
            \.waitingContextChanges
        ),
        Bound(
            "maximum-observed-contexts",
            .number,
            in: 1...100_000,
            "Maximum number of listed IO contexts of other routers",
            atTheBound: "further ones are not listed",
            \.observedContexts
        ),
        Bound(
            "maximum-observed-io-nodes",
            .number,
            in: 1...1_000_000,
            "Maximum number of listed IO nodes; their IO points, and the associations of other routers, are at most ten times as many each",
            atTheBound: "further ones are not listed",
            \.observedIoNodes
        ),
        Bound(
            "maximum-observed-context-memory",
            .bytes,
            in: 1 << 20...1 << 40,
            "Maximum bytes of the listed contexts, IO nodes and associations of other routers",
            derivation: "67108864, less if maximum-memory is below 512 MiB",
            atTheBound: "further ones are not listed",
            \.observedContextMemory
        ),
    ]

    /// The object registry and its queries.
    static let registryBounds = [
        Bound(
            "maximum-registry-objects",
            .number,
            in: 1...1_000_000,
            "Maximum number of objects in the object registry",
            atTheBound: "the objects that were least recently received are removed; `complete` is false",
            \.registryObjects
        ),
        Bound(
            "maximum-registry-object-size",
            .bytes,
            in: 1024...16 << 20,
            "Maximum size of an object in the object registry",
            atTheBound: "the object is not kept; `complete` is false",
            \.objectSize
        ),
        Bound(
            "maximum-departed-agents",
            .number,
            in: 1...100_000,
            "Maximum number of listed agents that have left the network, with at most 4 KiB each on average",
            atTheBound: "the agent that left first is removed",
            \.departedAgents
        ),
        Bound(
            "maximum-listed-objects",
            .number,
            in: 1...100_000,
            "Maximum `limit` of `GET /v1/objects`",
            atTheBound: "400 `invalid-parameter`; the default of `limit` is 100",
            \.listedObjects
        ),
        Bound(
            "maximum-query-steps",
            .number,
            in: 10_000...1_000_000_000,
            "Maximum steps of a query of the object registry, about 50 ns each",
            atTheBound: "422 `query-too-expensive`",
            \.querySteps
        ),
        Bound(
            "maximum-query-memory",
            .bytes,
            in: 1 << 20...1 << 30,
            "Maximum bytes of the properties by which a query sorts objects",
            atTheBound: "422 `query-too-expensive`",
            \.queryMemory
        ),
        Bound(
            "query-timeout",
            .milliseconds,
            in: 100...60_000,
            "Maximum time from the request to the result of a query of the object registry",
            atTheBound: "503 `query-timeout`",
            \.queryTimeout
        ),
    ]
}
