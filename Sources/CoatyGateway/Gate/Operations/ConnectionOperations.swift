import Access
import Base
import ProblemDetails

/// Lists the open connections of clients.
struct ReadConnections: Operation {
    /// Maximum number of connections in the list.
    let limit: Int

    var kind: OperationKind { OperationKind(verb: .administer, pattern: .clients) }

    func claims(on target: Void, in network: NetworkParts, by subject: Principal.Subject) -> [AccessRequest] {
        [AccessRequest(verb: .administer, pattern: .clients)]
    }

    func execute(on target: Void, in network: NetworkParts, under permit: Permit) -> ClientConnections.Listing {
        network.feeds.streams.listing(limit: limit)
    }
}

/// Ends a connection of a client.
struct Disconnect: Operation {
    /// The number of the connection; nil if the client has sent none.
    let number: Int?

    var kind: OperationKind { OperationKind(verb: .administer, pattern: .clients) }
    var isAudited: Bool { true }
    var concealment: AccessRequest? { AccessRequest(verb: .administer, pattern: .clients) }
    var unknown: Problem { Problems.notFound(detail: "There is no such connection, or it has closed.") }

    func resolve(in network: NetworkParts) -> ClientConnection? { number.flatMap { network.feeds.streams[$0] } }

    func claims(on target: ClientConnection, in network: NetworkParts, by subject: Principal.Subject) -> [AccessRequest]
    {
        [AccessRequest(verb: .administer, pattern: .clients, target: .client("\(target.client)"))]
    }

    func execute(on target: ClientConnection, in network: NetworkParts, under permit: Permit) {
        target.outbound.disconnect()
    }
}
