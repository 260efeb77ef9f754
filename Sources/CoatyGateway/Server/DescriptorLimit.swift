import Glibc

/// Connection limits that the file descriptors of this process allow.
///
/// Clients are refused before the broker session runs out of descriptors.
struct DescriptorLimit {
    /// The process may open too few files.
    struct TooFew: Error, CustomStringConvertible {
        let limit: Int
        let agents: Int

        var description: String {
            """
            cannot start: the limit of open files is \(limit) (ulimit -Hn), and at least \(DescriptorLimit.minimum(agents: agents)) \
            are needed: \(DescriptorLimit.reserve) for the gateway, \(agents * DescriptorLimit.perAgent) for up to \(agents) \
            broker connections of IO nodes, identities and subscriptions, \(5 * DescriptorLimit.minimumPart) for clients. Raise the \
            limit, or lower maximum-io-nodes and maximum-identities
            """
        }
    }

    /// Descriptors reserved for the broker, the gateway's session, the log, pipes, health checks, refused connections and libraries.
    static let reserve = 256
    /// Descriptors of an IO node, a client identity or another session: a socket, and pipes to wake the network thread.
    static let perAgent = 5
    /// Maximum number of connections of one kind, however many descriptors there are.
    static let maximumConnections = 10_000
    /// Descriptors of one fifth of the connections, below which the gateway does not start.
    static let minimumPart = 64

    /// Maximum number of REST connections, and of WebSocket connections.
    let connections: Int
    /// Maximum number of connections whose protocol is not yet known.
    let undecided: Int

    /// Raises the soft limit of descriptors to the hard one, and divides the descriptors.
    ///
    /// - Parameter agents: maximum number of IO nodes, client identities and others; descriptors for their sessions are
    ///   reserved too.
    init(agents: Int) throws(TooFew) {
        var limit = rlimit()
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        getrlimit(resource, &limit)
        limit.rlim_cur = limit.rlim_max
        setrlimit(resource, &limit)
        getrlimit(resource, &limit)
        try self.init(descriptors: Int(clamping: limit.rlim_cur), agents: agents)
    }

    init(descriptors: Int, agents: Int) throws(TooFew) {
        guard descriptors >= Self.minimum(agents: agents) else { throw TooFew(limit: descriptors, agents: agents) }
        // Two fifths for each of the two protocols, one fifth for undecided connections.
        let part = (descriptors - Self.reserve - agents * Self.perAgent) / 5
        connections = min(2 * part, Self.maximumConnections)
        undecided = min(part, PortListener.maximumUndecided)
    }

    /// The number of descriptors below which the gateway does not start.
    static func minimum(agents: Int) -> Int { reserve + agents * perAgent + 5 * minimumPart }
}
