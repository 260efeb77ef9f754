import Access
import Base
import Coaty
import Network
import ProblemDetails

/// Lists the objects currently in the network.
struct ReadObjects: AsyncOperation {
    var kind: OperationKind { OperationKind(verb: .read, pattern: .objects) }

    let selection: ObjectSelection
    /// Returns whether the client still waits for the response.
    let isWanted: @Sendable () -> Bool

    struct Outcome: Sendable {
        /// The objects of the page.
        let objects: [AliveObject]
        /// Number of matching objects.
        let total: Int
        let isComplete: Bool
        /// Whether there may be objects that the client must not see.
        let isFiltered: Bool
        /// Kept until the objects are sent to the client.
        let place: Place
    }

    var admission: AdmissionRule { .filtered(AccessRequest(verb: .read, pattern: .objects, target: .anyObject)) }

    func claims(on target: Void, in network: NetworkParts, by subject: Principal.Subject) -> [AccessRequest] { [] }

    func execute(on target: Void, in network: NetworkParts, under permit: Permit) async throws -> Outcome {
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
struct ReadObject: Operation {
    var kind: OperationKind { OperationKind(verb: .read, pattern: .objects) }

    let id: CoatyUUID

    var concealment: AccessRequest? { AccessRequest(verb: .read, pattern: .objects, target: .anyObject) }
    var unknown: Problem {
        Problems.notFound(detail: "No object with this id was advertised or discovered, or it has left the network.")
    }

    func resolve(in network: NetworkParts) -> AliveObject? {
        id.spellings.lazy.compactMap(network.objects.object).first
    }

    func claims(on target: AliveObject, in network: NetworkParts, by subject: Principal.Subject) -> [AccessRequest] {
        [target.request(.read, .objects)]
    }

    func execute(on target: AliveObject, in network: NetworkParts, under permit: Permit) -> AliveObject { target }
}

/// Lists the agents of the network.
struct ReadAgents: AsyncOperation {
    var kind: OperationKind { OperationKind(verb: .read, pattern: .agents) }

    /// Whether to list the agents that are online, or those that are not; nil for all.
    let isOnline: Bool?
    /// Returns whether the client still waits for the response.
    let isWanted: @Sendable () -> Bool

    struct Outcome: Sendable {
        let agents: [AgentPresence]
        let isComplete: Bool
        /// Whether there may be agents that the client must not see.
        let isFiltered: Bool
        /// Kept until the agents are sent to the client.
        let place: Place
    }

    var admission: AdmissionRule { .filtered(AccessRequest(verb: .read, pattern: .agents)) }

    func claims(on target: Void, in network: NetworkParts, by subject: Principal.Subject) -> [AccessRequest] { [] }

    func execute(on target: Void, in network: NetworkParts, under permit: Permit) async throws -> Outcome {
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
