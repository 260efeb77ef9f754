extension Limits {
    /// All configurable bounds, in the order of the documentation.
    package static let bounds: [Bound] =
        memoryBounds + Resource.allCases.flatMap(\.bounds) + networkBounds + registryBounds + connectionBounds
        + workBounds
        + requestBounds + accessBounds

    private static let memoryBounds = [
        Bound(
            "maximum-memory",
            .bytes,
            in: 128 << 20...1 << 44,
            "Maximum growth of the resident memory after the start; a part of it is for clients",
            atTheBound: "429 or 503 `too-much-memory`; events are dropped according to `overflow`, with a gap",
            \.memory
        ),
        Bound(
            "maximum-memory-per-client",
            .bytes,
            in: 1 << 20...1 << 44,
            "Maximum memory that the gateway uses for one client",
            derivation: "a quarter of the part for clients",
            atTheBound: "429 `too-much-memory`; events are dropped according to `overflow`, with a gap",
            \.memoryPerClient
        ),
        Bound(
            "minimum-memory-per-client",
            .bytes,
            in: 0...1 << 30,
            "Memory that a client gets even if other clients have used up the rest, as long as the reserve lasts",
            atTheBound: "a client gets more only if other clients have not used it up",
            \.minimumMemory
        ),
        Bound(
            "maximum-replay-memory",
            .bytes,
            in: 0...1 << 40,
            "Maximum bytes of the replay buffer, a quarter of it for traffic, and in a cluster a quarter for clients of other gateways",
            derivation: "16777216, less if maximum-memory is below 366 MiB",
            atTheBound: "the oldest events are dropped; a client that resumes after them gets a gap",
            \.replayMemory
        ),
        Bound(
            "maximum-registry-memory",
            .bytes,
            in: 1 << 20...1 << 40,
            "Maximum bytes of the object registry",
            derivation: "an eighth of the accounted memory",
            atTheBound: "the objects that were least recently received are removed; `complete` is false",
            \.objectMemory
        ),
    ]

    private static let workBounds = [
        Bound(
            "maximum-work-rate",
            .number,
            in: 1_000_000...1_000_000_000,
            "Maximum steps of evaluation per second for all clients, about 50 ns each; one client gets at most half",
            atTheBound:
                "replays, snapshots, responses and queries of the client are delayed; its events are delivered after those of other clients",
            \.workRate
        ),
        Bound(
            "http-threads",
            .number,
            in: 2...256,
            "Number of threads that serve HTTP connections",
            atTheBound: "requests wait for a free thread",
            \.httpThreads
        ),
        Bound(
            "event-threads",
            .number,
            in: 2...256,
            "Number of fan-out workers: threads that filter events and responses, check access, and deliver them",
            derivation: "the number of processors, but at least 2",
            atTheBound: "events wait for a free worker; if too many of a feed wait, a gap replaces the oldest",
            \.eventThreads
        ),
        Bound(
            "query-threads",
            .number,
            in: 1...256,
            "Number of threads that query the object registry",
            derivation: "half of the processors, but at least 1",
            atTheBound: "queries wait for a free thread, up to `query-timeout`",
            \.queryThreads
        ),
    ]
}

extension Resource {
    /// The name in settings.
    private var setting: String {
        switch self {
        case .connections: "connections"
        case .unauthenticated: "unauthenticated-connections"
        case .subscriptions: "subscriptions"
        case .feeds: "feeds"
        case .requests: "pending-requests"
        case .outbox: "outbox-bytes"
        case .identities: "identities"
        case .brokerConnections: "broker-connections"
        case .ioNodes: "io-nodes"
        case .objects: "advertised-objects"
        case .keptObjects: "kept-object-bytes"
        case .queries: "queries"
        case .idempotencyKeys: "idempotency-keys"
        }
    }

    private var help: String {
        switch self {
        case .connections: "Maximum number of connections: half for HTTP, half for WebSockets"
        case .unauthenticated: "Maximum number of WebSocket connections that have not authenticated"
        case .subscriptions: "Maximum number of subscriptions"
        case .feeds: "Maximum number of feeds; equal subscriptions share a feed"
        case .requests: "Maximum number of pending requests"
        case .outbox: "Maximum bytes queued for the broker"
        case .identities: "Maximum number of client identities, each with its own broker session"
        case .brokerConnections:
            "Maximum number of feeds with their own broker connection; each selection of `traffic` events has one"
        case .ioNodes: "Maximum number of registered IO nodes, each with its own broker session"
        case .objects: "Maximum number of objects whose owners the gateway stores, until they are deadvertised"
        case .keptObjects: "Maximum bytes of the objects that the gateway advertises again after a reconnect"
        case .queries: "Maximum number of queries of the object registry at a time"
        case .idempotencyKeys: "Maximum number of requests with an Idempotency-Key in ten minutes"
        }
    }

    private func atTheBound(_ status: Int) -> String {
        let refusal = "\(status) `\(problem.type)`"
        guard self == .keptObjects else { return refusal }
        return "objects without `lifetime` are published, but not kept (`kept` is false); with `lifetime`: \(refusal)"
    }

    fileprivate var bounds: [Bound] {
        let range =
            switch self {
            case .outbox, .keptObjects: 1...1 << 40
            case .identities, .ioNodes: 0...1000
            case .brokerConnections: 1...100
            default: 1...1_000_000
            }
        let total = Bound(
            "maximum-\(setting)",
            self == .outbox || self == .keptObjects ? .bytes : .number,
            in: range,
            help,
            atTheBound: atTheBound(503),
            \Limits[self].total
        )
        var perClient = Bound(
            "maximum-\(setting)-per-client",
            total.unit,
            in: 1...range.upperBound,
            "For one client: \(help.prefix(1).lowercased())\(help.dropFirst())",
            derivation: "half of the total",
            atTheBound: atTheBound(429),
            \Limits[self].perClient
        )
        // A client keeps what it has, even if it exceeds the client's new share.
        perClient.isReloadable = true
        return [total, perClient]
    }
}
