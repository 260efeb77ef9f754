/// The bounds on what clients can make the gateway hold and do.
struct Limits: Sendable {
    /// A bound on a count, in all and for one client.
    struct Count: Sendable {
        var total: Int
        /// Nil for half of the total.
        var perClient: Int?
    }

    /// Bytes of resident memory beyond those at start.
    var maximumMemory = 512 << 20
    /// Bytes that one client may hold; nil for a quarter of ``maximumMemory``.
    var maximumMemoryPerClient: Int?
    /// Bytes that a client gets even if others hold much, as long as the reserve lasts.
    static let guaranteedMemory = 256 << 10

    private var counts: [Count] = Resource.allCases.map {
        Count(total: $0.defaultTotal, perClient: $0.defaultPerClient)
    }

    subscript(resource: Resource) -> Count {
        get { counts[resource.rawValue] }
        set { counts[resource.rawValue] = newValue }
    }

    /// The quota of a resource.
    func quota(of resource: Resource) -> Quota {
        Quota(count: self[resource].total, perClient: self[resource].perClient)
    }

    /// The quota of the bytes that are charged: 70 % of ``maximumMemory``. The rest is for fragmentation and for the C libraries.
    var memoryQuota: Quota {
        Quota(
            total: maximumMemory / 10 * 7,
            perClient: maximumMemoryPerClient ?? maximumMemory / 4,
            guaranteed: Self.guaranteedMemory,
            reserve: maximumMemory / 10
        )
    }
}

extension Resource {
    fileprivate var defaultTotal: Int {
        switch self {
        case .connections, .feeds, .objects: 10_000
        case .subscriptions: 100_000
        case .requests: 4096
        case .outbox: 16 << 20
        case .identities, .ioNodes: 100
        case .brokerConnections: 8
        case .queries: 64
        }
    }

    fileprivate var defaultPerClient: Int? { self == .queries ? 4 : nil }
}
