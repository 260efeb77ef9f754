extension Limits {
    /// All bounds that can be set, in the order of the documentation.
    static let bounds: [Bound] = memoryBounds + Resource.allCases.flatMap(\.bounds) + otherBounds + requestBounds

    private static let memoryBounds = [
        Bound(
            "maximum-memory",
            .bytes,
            in: 128 << 20...1 << 44,
            "Maximum resident memory beyond that at start; what clients make the gateway hold gets a part of it",
            atTheBound: "429 or 503 `too-much-memory`; events are dropped as `overflow` says, with a gap",
            \.memory
        ),
        Bound(
            "maximum-memory-per-client",
            .bytes,
            in: 1 << 20...1 << 44,
            "Maximum memory that one client makes the gateway hold",
            derivation: "a quarter of the part for clients",
            atTheBound: "429 `too-much-memory`; events are dropped as `overflow` says, with a gap",
            \.memoryPerClient
        ),
        Bound(
            "minimum-memory-per-client",
            .bytes,
            in: 0...1 << 30,
            "Memory that a client gets even if others hold much, as long as the reserve lasts",
            atTheBound: "beyond it, a client gets what others leave",
            \.minimumMemory
        ),
        Bound(
            "maximum-replay-memory",
            formerly: "resume-memory",
            .bytes,
            in: 0...1 << 40,
            "Maximum bytes of the replay buffer, a quarter of it for traffic",
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
            atTheBound: "the objects that were heard of longest ago are removed; `complete` is false",
            \.objectMemory
        ),
    ]

    private static let otherBounds = [
        Bound(
            "maximum-outbox-publications",
            formerly: "outbox-publications",
            .number,
            in: 1...1 << 30,
            "Maximum number of publications queued for the broker",
            atTheBound: "503 `queue-full`",
            \.outboxPublications
        ),
        Bound(
            "maximum-event-size",
            .bytes,
            in: 1 << 20...256 << 20,
            "Maximum size of an event that is received from the broker",
            derivation: "16777216, less if maximum-memory is below 256 MiB",
            atTheBound: "the event is dropped, with a gap; if much more of it comes, the broker connection is closed",
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
            "Maximum number of events of a feed that wait until they are judged for its subscriptions",
            atTheBound: "the older half is replaced by a gap",
            \.waitingEvents
        ),
        Bound(
            "maximum-raw-connections",
            .number,
            in: 1...100,
            "Maximum number of broker connections that observe raw events, among which clients are divided",
            atTheBound: "clients share a connection",
            \.rawConnections
        ),
        Bound(
            "maximum-subscriptions-per-connection",
            .number,
            in: 1...100_000,
            "Maximum number of subscriptions and pending requests of a WebSocket connection",
            atTheBound: "`error` 429 `too-many-subscriptions`",
            \.activitiesPerConnection
        ),
        Bound(
            "maximum-streams",
            .number,
            in: 1...1_000_000,
            "Maximum number of streams over HTTP",
            atTheBound: "503 `too-many-connections`",
            \.streams
        ),
        Bound(
            "maximum-registry-objects",
            .number,
            in: 1...1_000_000,
            "Maximum number of objects in the object registry",
            atTheBound: "the objects that were heard of longest ago are removed; `complete` is false",
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
            "maximum-query-steps",
            .number,
            in: 10_000...1_000_000_000,
            "Maximum steps of a query of the object registry, about 50 ns each",
            atTheBound: "422 `query-too-expensive`",
            \.querySteps
        ),
        Bound(
            "query-timeout",
            .milliseconds,
            in: 100...60_000,
            "Time from the request to the result of a query of the object registry",
            atTheBound: "503 `query-timeout`",
            \.queryTimeout
        ),
        Bound(
            "maximum-work-rate",
            .number,
            in: 1_000_000...1_000_000_000,
            "Maximum steps of evaluation per second for all clients, about 50 ns each; one client gets at most half",
            atTheBound: "replays, snapshots, responses and queries of the client wait, its events come later",
            \.workRate
        ),
        Bound(
            "maximum-body-size",
            .bytes,
            in: 1...8 << 20,
            "Maximum size of a request body and of a client's WebSocket message, at most 8388608",
            atTheBound: "413 `content-too-large`; a WebSocket is closed with 1009",
            \.bodySize
        ),
        Bound(
            "maximum-header-size",
            .bytes,
            in: 1024...64 << 10,
            "Maximum size of request line and header fields",
            atTheBound: "431 `header-fields-too-large`",
            \.headerSize
        ),
        Bound(
            "maximum-timeout",
            .milliseconds,
            in: 1...3_600_000,
            "Maximum timeout of a request",
            atTheBound: "400 `invalid-parameter`",
            \.timeout
        ),
        Bound(
            "handshake-timeout",
            .seconds,
            in: 1...60,
            "Time for the first bytes of a connection, for a TLS handshake, for a WebSocket handshake, and then for `authenticate`, each",
            atTheBound: "the connection is closed, after `authenticate` was awaited with 4502",
            \.handshakeTimeout
        ),
        Bound(
            "request-timeout",
            .seconds,
            in: 1...3600,
            "Time from the first byte of an HTTP request to the end of its body",
            atTheBound: "the connection is closed without a response",
            \.requestTimeout
        ),
        Bound(
            "connection-timeout",
            .seconds,
            in: 1...3600,
            "Time that an HTTP connection may make no progress",
            atTheBound: "the connection is closed",
            \.connectionTimeout
        ),
        Bound(
            "drain-delay",
            .seconds,
            in: 0...2,
            "Time from a signal to stop until the gateway refuses clients; `/readyz` answers 503 from the signal on",
            atTheBound: "the stop begins; a delay does not prolong it, but leaves pending requests less time",
            \.drainDelay
        ),
        Bound(
            "stop-timeout",
            .seconds,
            in: 10...300,
            "Time from a signal to stop until the process has ended; pending requests get 2 seconds of 10, and all beyond 10",
            atTheBound: "components that have not stopped are left behind, and the exit status is 1",
            \.stopTimeout
        ),
        Bound(
            "reconnect-spread",
            .seconds,
            in: 0...60,
            "Time over which clients are asked to reconnect when the gateway stops: each gets a random delay",
            atTheBound: "clients that do not understand the request reconnect as they like",
            \.reconnectSpread
        ),
        Bound(
            "http-threads",
            .number,
            in: 2...256,
            "Number of threads that serve HTTP connections",
            atTheBound: "requests wait for each other",
            \.httpThreads
        ),
        Bound(
            "event-threads",
            .number,
            in: 2...256,
            "Number of threads that judge events and responses for clients",
            derivation: "the number of processors, but at least 2",
            atTheBound: "events wait; if a feed has too many, the oldest become a gap",
            \.eventThreads
        ),
        Bound(
            "query-threads",
            .number,
            in: 1...256,
            "Number of threads that search objects",
            derivation: "half of the processors, but at least 1",
            atTheBound: "queries wait for each other, up to `query-timeout`",
            \.queryThreads
        ),
    ]

    /// What one request may hold, and what follows from one.
    private static let requestBounds = [
        Bound(
            "maximum-buffered-events",
            .number,
            in: 1...1_000_000,
            "Maximum of `buffer`: of the events that a subscription may queue",
            atTheBound: "400 `invalid-parameter`; the default of `buffer` is 256",
            \.buffer
        ),
        Bound(
            "maximum-queued-bytes",
            .bytes,
            in: 1 << 10...1 << 30,
            "Maximum bytes of the events that a connection queues for its client",
            atTheBound: "events are dropped as `overflow` says, with a gap; one event is always queued",
            \.queuedBytes
        ),
        Bound(
            "maximum-response-bytes",
            .bytes,
            in: 1 << 10...1 << 30,
            "Maximum bytes of the responses to a request, and of the responses that a connection queues for its client",
            atTheBound: "the request ends with reason `overflow`",
            \.responseBytes
        ),
        Bound(
            "maximum-filter-properties",
            .number,
            in: 1...10_000,
            "Maximum number of property conditions in a filter",
            atTheBound: "400 `invalid-value`",
            \.filterProperties
        ),
        Bound(
            "maximum-filter-values",
            .number,
            in: 10...1_000_000,
            "Maximum number of JSON values in a filter",
            atTheBound: "400 `invalid-value`",
            \.filterValues
        ),
        Bound(
            "maximum-fields",
            .number,
            in: 1...10_000,
            "Maximum number of properties in `fields`",
            atTheBound: "400 `invalid-parameter`",
            \.fields
        ),
        Bound(
            "maximum-batch-publications",
            .number,
            in: 1...1_000_000,
            "Maximum number of publications in a batch",
            atTheBound: "413 `content-too-large`",
            \.batchPublications
        ),
        Bound(
            "maximum-deadvertised-ids",
            .number,
            in: 1...100_000,
            "Maximum number of ids in a Deadvertise event of a client",
            atTheBound: "400 `invalid-value`",
            \.deadvertisedIds
        ),
        Bound(
            "maximum-agent-name-size",
            .bytes,
            in: 1...4096,
            "Maximum size of the name of an identity or IO node",
            atTheBound: "400 `invalid-value`",
            \.agentNameSize
        ),
        Bound(
            "maximum-io-node-points",
            .number,
            in: 1...10_000,
            "Maximum number of IO sources and IO actors of an IO node",
            atTheBound: "400 `invalid-value`",
            \.ioNodePoints
        ),
        Bound(
            "maximum-io-node-size",
            .bytes,
            in: 1024...8 << 20,
            "Maximum size of the registration of an IO node",
            atTheBound: "413 `content-too-large`",
            \.ioNodeSize
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
            "maximum-answerable-requests",
            .number,
            in: 1...1_000_000,
            "Maximum number of observed requests that clients may answer",
            atTheBound: "the oldest can no longer be answered",
            \.answerableRequests
        ),
        Bound(
            "maximum-answerable-request-bytes",
            .bytes,
            in: 1 << 10...1 << 40,
            "Maximum bytes of observed requests that clients may answer",
            atTheBound: "the oldest can no longer be answered",
            \.answerableRequestBytes
        ),
        Bound(
            "maximum-answerable-requests-per-client",
            .number,
            in: 1...1_000_000,
            "Maximum number of observed requests that clients may answer; for one client",
            atTheBound: "the oldest can no longer be answered by it",
            \.answerableRequestsPerClient
        ),
        Bound(
            "maximum-failed-attempts",
            .number,
            in: 1...1_000_000,
            "Maximum number of failed authentications of an address in a minute",
            atTheBound: "429 `too-many-attempts`",
            \.failedAttempts
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
        case .queries: "queries"
        case .idempotencyKeys: "idempotency-keys"
        }
    }

    private var help: String {
        switch self {
        case .connections: "Maximum number of HTTP and WebSocket connections, half of it for each of the two"
        case .unauthenticated: "Maximum number of WebSocket connections that have not authenticated"
        case .subscriptions: "Maximum number of subscriptions"
        case .feeds: "Maximum number of feeds: of different observations"
        case .requests: "Maximum number of pending requests"
        case .outbox: "Maximum bytes queued for the broker"
        case .identities: "Maximum number of client identities, each with its own broker session"
        case .brokerConnections: "Maximum number of feeds with their own broker connection: of selections of traffic"
        case .ioNodes: "Maximum number of registered IO nodes, each with its own broker session"
        case .objects: "Maximum number of objects whose owners are remembered, until they are deadvertised"
        case .queries: "Maximum number of queries of the object registry at a time"
        case .idempotencyKeys: "Maximum number of requests with an Idempotency-Key in ten minutes"
        }
    }

    fileprivate var bounds: [Bound] {
        let range =
            switch self {
            case .outbox: 1...1 << 40
            case .identities, .ioNodes: 0...1000
            case .brokerConnections: 1...100
            default: 1...1_000_000
            }
        let total = Bound(
            "maximum-\(setting)",
            formerly: self == .outbox ? "outbox-bytes" : nil,
            self == .outbox ? .bytes : .number,
            in: range,
            help,
            atTheBound: "503 `\(problem.type)`",
            \Limits[self].total
        )
        var perClient = Bound(
            "maximum-\(setting)-per-client",
            total.unit,
            in: 1...range.upperBound,
            "\(help); for one client",
            derivation: "half of the total",
            atTheBound: "429 `\(problem.type)`",
            \Limits[self].perClient
        )
        // A client keeps what it has, even if that is more than its new share.
        perClient.isReloadable = true
        return [total, perClient]
    }
}
