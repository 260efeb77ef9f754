import Glibc

/// How many connections the descriptors of this process allow.
///
/// A client must be refused before the link to the broker finds no descriptor.
struct DescriptorLimit {
    /// Descriptors that are kept for the broker, its link, log, pipes and the libraries.
    static let reserve = 128
    /// Descriptors of an IO node, a virtual agent or another link: its socket, and the pipes that wake its network thread.
    static let perAgent = 5
    /// The most connections of one kind, however many descriptors there are.
    static let maximumConnections = 10_000

    /// The most connections for REST, and as many for streams.
    let connections: Int
    /// The most connections that have not yet sent enough to tell which they are.
    let undecided: Int

    /// Raises the soft limit of descriptors to the hard one, and divides what there is.
    ///
    /// - Parameter agents: the most IO nodes, virtual agents and others, whose links to the broker are kept free too.
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
        // Each of both kinds two parts of five, the undecided one.
        let part = max((descriptors - Self.reserve) / 5, 1)
        connections = min(2 * part, Self.maximumConnections)
        undecided = min(part, PortListener.maximumUndecided)
    }
}
