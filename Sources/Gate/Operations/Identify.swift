package import Access
package import Feeds
package import Network

/// Gives a connection an identity, with its own agent.
package struct Identify: AsyncOperation {
    package var kind: OperationKind { OperationKind(verb: .register, pattern: .identity) }

    let name: String
    /// The resume token of an identity that the client had before.
    let token: String?
    /// Whether the connection is open.
    let isOpen: @Sendable () -> Bool
    /// Ends the connection, because the identity was resumed on another one.
    let disconnect: @Sendable () -> Void

    package init(
        name: String,
        token: String?,
        isOpen: @escaping @Sendable () -> Bool,
        disconnect: @escaping @Sendable () -> Void
    ) {
        self.name = name
        self.token = token
        self.isOpen = isOpen
        self.disconnect = disconnect
    }

    package var isAudited: Bool { true }

    package func claims(on target: Void, in network: NetworkParts, by subject: Principal.Subject) -> [AccessRequest] {
        [AccessRequest(verb: .register, pattern: .identity)]
    }

    /// - Throws: `Problem` if there are too many identities, the token is unknown, or the identity could not be
    ///   advertised in time.
    package func execute(on target: Void, in network: NetworkParts, under permit: Permit) async throws -> ClientIdentity
    {
        let client = ClientIdentities.Client(
            subject: permit.principal.subject,
            takePlace: { try permit.account.take(.identities) },
            isOpen: isOpen,
            disconnect: disconnect
        )
        return try await network.identities.join(name: name, resuming: token, for: client)
    }
}
