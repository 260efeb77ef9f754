package import Access
package import Base
package import Coaty
package import Feeds
package import Network
package import ProblemDetails

/// Lists the objects currently in the network.
package struct ReadObjects: AsyncOperation {
    package var kind: OperationKind { OperationKind(verb: .read, pattern: .objects) }

    let selection: ObjectSelection
    /// Returns whether the client still waits for the response.
    let isWanted: @Sendable () -> Bool

    package init(selection: ObjectSelection, isWanted: @escaping @Sendable () -> Bool) {
        self.selection = selection
        self.isWanted = isWanted
    }

    package struct Outcome: Sendable {
        /// The objects of the page.
        package let objects: [AliveObject]
        /// Number of matching objects.
        package let total: Int
        package let isComplete: Bool
        /// Whether there may be objects that the client must not see.
        package let isFiltered: Bool
        /// Kept until the objects are sent to the client.
        package let place: Place
    }

    package var admission: AdmissionRule {
        .filtered(AccessRequest(verb: .read, pattern: .objects, target: .anyObject))
    }

    package func claims(on target: Void, in network: NetworkParts, by subject: Principal.Subject) -> [AccessRequest] {
        []
    }

    package func execute(on target: Void, in network: NetworkParts, under permit: Permit) async throws -> Outcome {
        let account = permit.account
        let place = try account.take(.queries)
        let content = network.objects.content
        let search = ObjectSearch(
            selection,
            in: content,
            permit.view,
            maximumKeyBytes: network.accounts.limits.queryMemory
        )
        let found = try await network.queries.perform(search, for: account.work, while: isWanted)
        return Outcome(
            objects: found.objects,
            total: found.total,
            isComplete: content.isComplete,
            isFiltered: permit.view != nil,
            place: place
        )
    }
}

/// Reads one object.
package struct ReadObject: Operation {
    package var kind: OperationKind { OperationKind(verb: .read, pattern: .objects) }

    let id: CoatyUUID

    package init(id: CoatyUUID) {
        self.id = id
    }

    package var concealment: AccessRequest? { AccessRequest(verb: .read, pattern: .objects, target: .anyObject) }
    package var unknown: Problem {
        Problems.notFound(detail: "No object with this id was advertised or discovered, or it has left the network.")
    }

    package func resolve(in network: NetworkParts) -> AliveObject? {
        id.spellings.lazy.compactMap(network.objects.object).first
    }

    package func claims(on target: AliveObject, in network: NetworkParts, by subject: Principal.Subject)
        -> [AccessRequest]
    {
        [target.request(.read, .objects)]
    }

    package func execute(on target: AliveObject, in network: NetworkParts, under permit: Permit) -> AliveObject {
        target
    }
}

/// Lists the agents of the network.
package struct ReadAgents: AsyncOperation {
    package var kind: OperationKind { OperationKind(verb: .read, pattern: .agents) }

    /// Whether to list the agents that are online, or those that are not; nil for all.
    let isOnline: Bool?
    /// Returns whether the client still waits for the response.
    let isWanted: @Sendable () -> Bool

    package init(isOnline: Bool?, isWanted: @escaping @Sendable () -> Bool) {
        self.isOnline = isOnline
        self.isWanted = isWanted
    }

    package struct Outcome: Sendable {
        package let agents: [AgentPresence]
        package let isComplete: Bool
        /// Whether there may be agents that the client must not see.
        package let isFiltered: Bool
        /// Kept until the agents are sent to the client.
        package let place: Place
    }

    package var admission: AdmissionRule { .filtered(AccessRequest(verb: .read, pattern: .agents)) }

    package func claims(on target: Void, in network: NetworkParts, by subject: Principal.Subject) -> [AccessRequest] {
        []
    }

    package func execute(on target: Void, in network: NetworkParts, under permit: Permit) async throws -> Outcome {
        let account = permit.account
        let place = try account.take(.queries)
        let content = network.objects.content
        let search = AgentSearch(isOnline: isOnline, in: content, permit.view)
        return Outcome(
            agents: try await network.queries.perform(search, for: account.work, while: isWanted),
            isComplete: content.isComplete,
            isFiltered: permit.view != nil,
            place: place
        )
    }
}
