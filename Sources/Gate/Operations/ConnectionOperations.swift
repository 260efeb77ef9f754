package import Access
import Base
package import Feeds
package import ProblemDetails

/// Lists the open connections of clients.
package struct ReadConnections: Operation {
    /// Maximum number of connections in the list.
    let limit: Int

    package init(limit: Int) {
        self.limit = limit
    }

    package var kind: OperationKind { OperationKind(verb: .administer, pattern: .clients) }

    package func claims(on target: Void, in network: NetworkParts, by subject: Principal.Subject) -> [AccessRequest] {
        [AccessRequest(verb: .administer, pattern: .clients)]
    }

    package func execute(on target: Void, in network: NetworkParts, under permit: Permit) -> ClientConnections.Listing {
        network.feeds.streams.listing(limit: limit)
    }
}

/// Ends a connection of a client.
package struct Disconnect: Operation {
    /// The number of the connection; nil if the client has sent none.
    let number: Int?

    package init(number: Int?) {
        self.number = number
    }

    package var kind: OperationKind { OperationKind(verb: .administer, pattern: .clients) }
    package var isAudited: Bool { true }
    package var concealment: AccessRequest? { AccessRequest(verb: .administer, pattern: .clients) }
    package var unknown: Problem { Problems.notFound(detail: "There is no such connection, or it has closed.") }

    package func resolve(in network: NetworkParts) -> ClientConnection? { number.flatMap { network.feeds.streams[$0] } }

    package func claims(on target: ClientConnection, in network: NetworkParts, by subject: Principal.Subject)
        -> [AccessRequest]
    {
        [AccessRequest(verb: .administer, pattern: .clients, target: .client("\(target.client)"))]
    }

    package func execute(on target: ClientConnection, in network: NetworkParts, under permit: Permit) {
        target.outbound.disconnect()
    }
}
