import Glibc

/// Connection limits that the file descriptors of this process allow.
///
/// Clients are refused before the broker session runs out of descriptors.
struct DescriptorLimit {
    /// Descriptors reserved for the broker, the gateway's session, the log, pipes and libraries.
    static let reserve = 128
    /// Descriptors of an IO node, a client identity or another session: a socket, and pipes to wake the network thread.
    static let perAgent = 5
    /// Maximum number of connections of one kind, however many descriptors there are.
    static let maximumConnections = 10_000

    /// Maximum number of REST connections, and of WebSocket connections.
    let connections: Int
    /// Maximum number of connections whose protocol is not yet known.
    let undecided: Int

    /// Raises the soft limit of descriptors to the hard one, and divides the descriptors.
    ///
    /// - Parameter agents: maximum number of IO nodes, client identities and others; descriptors for their sessions are
    ///   reserved too.
    init(agents: Int) {
        var limit = rlimit()
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        getrlimit(resource, &limit)
        limit.rlim_cur = limit.rlim_max
        setrlimit(resource, &limit)
        getrlimit(resource, &limit)
        self.init(descriptors: Int(clamping: limit.rlim_cur) - agents * Self.perAgent)
    }

    init(descriptors: Int) {
        // Two fifths for each of the two protocols, one fifth for undecided connections.
        let part = max((descriptors - Self.reserve) / 5, 1)
        connections = min(2 * part, Self.maximumConnections)
        undecided = min(part, PortListener.maximumUndecided)
    }
}
