import Foundation

/// The limits on the resources and work that clients can cause. `Limits.bounds` lists them with their settings.
package struct Limits: Sendable {
    /// A limit on a count, for all clients together and for one client.
    package struct Count: Sendable {
        package var total: Int
        /// Nil for half of the total.
        var perClient: Int?
    }

    /// Bytes of resident memory beyond those at start.
    package var memory = 512 << 20
    /// Bytes that one client may hold; nil for a quarter of ``clientMemory``.
    var memoryPerClient: Int?
    /// Bytes of events kept for clients that resume; nil for a sixteenth of ``accountedMemory``, at most 16 MiB.
    package var replayMemory: Int?
    /// Objects that the object registry lists and remembers.
    package var registryObjects = 10_000
    /// Bytes of the object registry; nil for an eighth of ``accountedMemory``.
    package var objectMemory: Int?
    /// Bytes of an object in the registry.
    package var objectSize = 1 << 20
    /// Steps of one query of the object registry.
    package var querySteps = 20_000_000
    /// Bytes of the properties that such a query keeps to sort objects.
    package var queryMemory = 32 << 20
    /// Objects that one response lists.
    package var listedObjects = 1000
    /// Agents that have left and are still listed.
    package var departedAgents = 1000
    /// Milliseconds from the request to the result of such a query.
    package var queryTimeout = 10_000
    /// Steps of work per second for all clients. A step is about 50 ns.
    var workRate = 20_000_000
    /// Seconds until a broker accepts a connection.
    package var brokerConnectTimeout = 5
    /// Bytes of a packet with a publication, if the broker does not state its own limit.
    package var publicationSize = 1 << 20
    /// Publications that may be queued for the broker, by all clients.
    package var outboxPublications = 10_000
    /// Bytes of an event that is received from the broker; nil for a 16th of ``memory``, at most 16 MiB.
    var eventSize: Int?
    /// JSON values of an event that is received from the broker, names of members included.
    package var eventValues = 1_000_000
    /// Objects that the gateway advertises again after a reconnect, of all clients.
    package var keptObjects = 5_000
    /// Seconds of the lifetime that a client can give an object.
    package var objectLifetime = 86_400
    /// Broker connections that observe raw events.
    package var rawConnections = 4
    /// Subscriptions and pending requests of one WebSocket connection.
    package var activitiesPerConnection = 256
    /// Streams over HTTP.
    package var streams = 4096
    /// Bytes of a request body, and of a message of a WebSocket client.
    package var bodySize = 1 << 20
    /// Bytes of a request body that are read and discarded after the request was answered.
    package var discardedBodySize = 64 << 20
    /// Seconds for which such a body is read.
    package var discardTimeout = 30
    /// Bytes of the request line and the header fields.
    package var headerSize = 8 << 10
    /// Milliseconds that a request may wait for responses.
    package var timeout = 60_000
    /// Seconds from the first byte of an HTTP request to the end of its body.
    package var requestTimeout = 60
    /// Seconds for each step until a connection has sent the bytes that identify its protocol and, over WebSocket, has
    /// authenticated.
    package var handshakeTimeout = 10
    /// Seconds that an HTTP connection may make no progress during a request or a response.
    package var connectionTimeout = 30
    /// Seconds for which an HTTP connection without a request is kept. Longer than the time of the usual proxies: one
    /// that sends a request while the gateway closes the connection must answer it with 502.
    package var keepAliveTimeout = 150
    /// Seconds for which the gateway still serves after a signal to stop.
    package var drainDelay = 0
    /// Queued events of a feed: about two seconds of a busy network, because a single large event can delay all others
    /// for a fraction of a second.
    package var waitingEvents = 16_384
    /// Feeds that are kept only for the clients of other gateways of a cluster.
    package var peerFeeds = 1000
    /// Queued events of a subscription.
    package var buffer = 4096
    /// Bytes of the queued events of a connection.
    package var queuedBytes = 4 << 20
    /// Bytes of the collected responses to a request, and of the queued responses of a connection.
    package var responseBytes = 16 << 20
    /// Property conditions of a filter.
    package var filterProperties = 100
    /// JSON values of a filter, those of operands and names of properties included.
    package var filterValues = 10_000
    /// Properties that a client can select.
    package var fields = 100
    /// Publications in a batch.
    package var batchPublications = 10_000
    /// Ids in a client's Deadvertise event: each is looked up, with all objects that are withdrawn with it.
    package var deadvertisedIds = 1_000
    /// Bytes of the name of an identity or an IO node. It is sent in response to every Discover event.
    package var agentNameSize = 256
    /// IO sources and IO actors of a node, together.
    package var ioNodePoints = 1000
    /// Bytes of the registration of an IO node.
    package var ioNodeSize = 256 << 10
    /// Bytes of an event that an identity or an IO node receives. Each of them receives every Discover event.
    package var agentEventSize = 2 << 20
    /// JSON values of such an event.
    package var agentEventValues = 100_000
    /// Observed requests that are kept so that clients can answer them.
    package var answerableRequests = 10_000
    /// Bytes of the observed requests that are kept so that clients can answer them; nil for a 32nd of ``memory``, at
    /// most 16 MiB.
    package var answerableRequestBytes: Int?
    /// Delivered requests that one client may answer.
    package var answerableRequestsPerClient = 1024
    /// Failed authentications of an address per minute.
    package var failedAttempts = 10
    /// Addresses whose failed authentications are counted.
    package var failingAddresses = 10_000
    /// Bytes of a token of an identity provider.
    package var tokenSize = 8 << 10
    /// Cached verified tokens of an identity provider.
    package var verifiedTokens = 4096
    /// Unused tickets.
    package var tickets = 10_000
    /// Unused tickets of one client.
    package var ticketsPerClient = 100
    /// Queued lines of the audit log.
    package var auditLines = 10_000
    /// Lines of the audit log about one client per second.
    package var auditLinesPerClient = 100
    /// Connections whose protocol is not known yet, and WebSocket handshakes under way.
    package var undecidedConnections = 1024
    /// Queued replies of a connection.
    package var queuedReplies = 1024
    /// Steps of a filter for one event, of `until` for one response, and of `where` for one request.
    package var filterSteps = 10_000
    /// Objects for which a subscription stores when `throttle` last passed an event.
    package var throttledObjects = 10_000
    /// Queued responses to a request.
    package var waitingResponses = 1024
    /// Answers of one client to a Discover event.
    package var discoverAnswers = 1000
    /// Listed IO contexts of other routers.
    package var observedContexts = 1000
    /// IO nodes in these contexts.
    package var observedIoNodes = 10_000
    /// Bytes of these contexts, nodes and their associations; nil for an eighth of ``memory``, at most 64 MiB.
    var observedContextMemory: Int?
    /// Queued changes of one IO context.
    package var waitingContextChanges = 16
    /// Queued publications of an identity or IO node.
    package var agentPublications = 1000
    /// Bytes that a client gets even if others use much memory, as long as the reserve lasts.
    package var minimumMemory = 256 << 10
    /// Seconds from a signal to stop until the process has ended.
    package var stopTimeout = 10
    /// Seconds over which the reconnects of clients are spread when the gateway stops.
    package var reconnectSpread = 5
    /// Threads that serve HTTP connections.
    package var httpThreads = 2
    /// Threads that evaluate events and responses; nil for ``eventWorkers``' default.
    var eventThreads: Int?
    /// Threads that search objects; nil for ``queryWorkers``' default.
    var queryThreads: Int?

    private var counts: [Count] = Resource.allCases.map {
        Count(total: $0.defaultTotal, perClient: $0.defaultPerClient)
    }

    /// Creates the defaults.
    package init() {}

    package subscript(resource: Resource) -> Count {
        get { counts[resource.rawValue] }
        set { counts[resource.rawValue] = newValue }
    }

    /// Returns the quota of a resource.
    package func quota(of resource: Resource) -> Quota {
        Quota(count: self[resource].total, perClient: self[resource].perClient)
    }

    /// Minimum number of bytes that a publication counts in the outbox: a client with half of the bytes has half of the
    /// publications.
    var outboxBytesPerPublication: Int { self[.outbox].total / max(1, outboxPublications) }

    /// Minimum number of bytes that a kept object counts, as for publications.
    package var bytesPerKeptObject: Int { self[.keptObjects].total / max(1, keptObjects) }
}

// MARK: - Memory

extension Limits {
    /// The accounted bytes: 70 %. The rest is for fragmentation and for the memory of C libraries.
    package var accountedMemory: Int { memory / 10 * 7 }
    /// The part of ``accountedMemory`` for the object registry.
    package var registryMemory: Int { objectMemory ?? accountedMemory / 8 }
    /// The overhead of an object in it in addition to its bytes: ids, types and the entries of indexes.
    package static let bytesPerObject = 512
    /// Maximum size, in bytes, of the removed objects whose last version it keeps.
    package static let maximumRemovedBytes = 4 << 20
    /// The bytes of objects in it. The rest is for the registry's overhead for each object, and for recently removed
    /// objects.
    package var registryBytes: Int {
        let rest = registryObjects * Self.bytesPerObject + Self.maximumRemovedBytes
        return max(registryMemory / 2, registryMemory - rest)
    }
    /// The part for events that are queued for the fan-out workers.
    package var feedMemory: Int { accountedMemory / 16 }
    /// The part for messages of the broker that are being received and parsed.
    package var inboundMemory: Int { accountedMemory / 16 * 3 }
    /// Maximum size of an event that is received from the broker, in bytes. A parsed event takes a few times as much
    /// memory.
    package var maximumEventSize: Int { eventSize ?? min(16 << 20, memory / 16) }
    /// The part for the replay buffers.
    package var replayBytes: Int { replayMemory ?? min(16 << 20, accountedMemory / 16) }

    /// Bytes of the listed contexts of other routers, which are not accounted.
    package var contextMemory: Int { observedContextMemory ?? min(64 << 20, memory / 8) }
    /// Bytes of the requests that clients may answer, which are not accounted, either.
    package var requestMemory: Int { answerableRequestBytes ?? min(16 << 20, memory / 32) }

    /// The part for clients: the rest. The gateway's own parts stay available even if clients use their entire part.
    package var clientMemory: Int {
        accountedMemory - registryMemory - feedMemory - inboundMemory - replayBytes - self[.outbox].total
            - self[.keptObjects].total
    }

    /// Minimum number of bytes that must be left for clients.
    package var minimumClientMemory: Int { accountedMemory / 4 }

    /// The quota of the bytes that are charged to clients.
    var memoryQuota: Quota {
        Quota(
            total: clientMemory,
            perClient: memoryPerClient ?? clientMemory / 4,
            guaranteed: minimumMemory,
            reserve: clientMemory / 10
        )
    }
}

extension Resource {
    fileprivate var defaultTotal: Int {
        switch self {
        case .connections: 20_000
        case .unauthenticated: 1000
        case .feeds, .objects, .idempotencyKeys: 10_000
        case .subscriptions: 100_000
        case .requests: 4096
        case .outbox: 16 << 20
        case .keptObjects: 8 << 20
        case .identities, .ioNodes: 100
        case .brokerConnections: 8
        case .queries: 64
        }
    }

    fileprivate var defaultPerClient: Int? {
        switch self {
        case .unauthenticated: 100
        case .objects: 2_000
        case .queries: 4
        default: nil
        }
    }
}

extension Limits {
    /// At least two threads by default, so that one long turn does not delay all feeds.
    package var eventWorkers: Int { eventThreads ?? max(2, ProcessInfo.processInfo.activeProcessorCount) }
    package var queryWorkers: Int { queryThreads ?? max(1, ProcessInfo.processInfo.activeProcessorCount / 2) }
}
