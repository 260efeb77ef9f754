import Base
import Glibc

/// Connection limits that the file descriptors of this process allow.
///
/// Clients are refused before the broker session runs out of descriptors.
package struct DescriptorLimit {
    /// The error that the process may open too few files.
    package struct TooFew: Error, CustomStringConvertible {
        let limit: Int
        let agents: Int
        let isEncrypted: Bool

        package var description: String {
            """
            cannot start: the limit of open files is \(limit) (ulimit -Hn), and at least \(DescriptorLimit.minimum(agents: agents, isEncrypted: isEncrypted)) \
            are needed: \(DescriptorLimit.reserve) for the gateway, \(agents * DescriptorLimit.perAgent) for up to \(agents) \
            broker connections of IO nodes, identities and subscriptions, \(DescriptorLimit.minimumForClients(isEncrypted)) \
            for clients. Raise the \
            limit, or lower maximum-io-nodes and maximum-identities
            """
        }
    }

    /// Descriptors reserved for the broker, the gateway's session, the log, pipes, health checks, refused connections
    /// and libraries.
    static let reserve = 256
    /// Descriptors of an IO node, a client identity or another session: a socket, and pipes to wake the network thread.
    static let perAgent = 5
    /// Descriptors of a connection with TLS: the client's socket, and both ends of the socket pair to the server.
    static let perEncryptedConnection = 3
    /// A fifth of the connections, below which the gateway does not start.
    static let minimumPart = 64

    /// Maximum number of REST connections, and of WebSocket connections, for which there are descriptors.
    package let connections: Int
    /// Maximum number of connections whose protocol is not yet known.
    package let undecided: Int

    /// Raises the soft limit of descriptors to the hard one, and divides the descriptors.
    ///
    /// - Parameters:
    ///   - agents: maximum number of agents, such as IO nodes and client identities; descriptors for their sessions are
    ///     reserved too.
    ///   - isEncrypted: whether the gateway terminates TLS.
    ///   - undecided: maximum number of connections whose protocol is not yet known.
    package init(agents: Int, isEncrypted: Bool, undecided: Int) throws(TooFew) {
        var limit = rlimit()
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        getrlimit(resource, &limit)
        limit.rlim_cur = limit.rlim_max
        setrlimit(resource, &limit)
        getrlimit(resource, &limit)
        try self.init(
            descriptors: Int(clamping: limit.rlim_cur),
            agents: agents,
            isEncrypted: isEncrypted,
            undecided: undecided
        )
    }

    init(
        descriptors: Int,
        agents: Int,
        isEncrypted: Bool = false,
        undecided: Int = Limits().undecidedConnections
    ) throws(TooFew) {
        guard descriptors >= Self.minimum(agents: agents, isEncrypted: isEncrypted) else {
            throw TooFew(limit: descriptors, agents: agents, isEncrypted: isEncrypted)
        }
        // At most a fifth for undecided connections, which have one descriptor each, and half of the rest for each
        // protocol.
        let clients = descriptors - Self.reserve - agents * Self.perAgent
        self.undecided = min(clients / 5, undecided)
        let perConnection = isEncrypted ? Self.perEncryptedConnection : 1
        connections = (clients - self.undecided) / 2 / perConnection
    }

    /// Returns the minimum number of descriptors with which the gateway starts.
    static func minimum(agents: Int, isEncrypted: Bool = false) -> Int {
        reserve + agents * perAgent + minimumForClients(isEncrypted)
    }

    private static func minimumForClients(_ isEncrypted: Bool) -> Int {
        minimumPart * (isEncrypted ? 1 + 4 * perEncryptedConnection : 5)
    }
}
