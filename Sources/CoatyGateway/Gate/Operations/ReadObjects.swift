import Coaty
import HTTPServer

/// Lists the objects currently in the network.
struct ReadObjects: Operation {
    let selection: ObjectSelection

    struct Outcome {
        /// The objects of the page.
        let objects: ArraySlice<AliveObject>
        /// How many objects match.
        let total: Int
        let isComplete: Bool
        /// Whether there may be objects that the client must not see.
        let isFiltered: Bool
    }

    var admission: AdmissionRule { .filtered(AccessRequest(verb: .read, pattern: .objects, target: .anyObject)) }

    func claims(on target: Void, in network: Network, by subject: Principal.Subject) -> [AccessRequest] { [] }

    func execute(on target: Void, in network: Network, under permit: Permit) -> Outcome {
        let content = network.objects.content
        var objects = selection.candidates(in: content)
        if let view = permit.view { objects = objects.filter { view.allows([$0.request(.read, .objects)]) } }
        let matching = selection.matching(objects)
        return Outcome(
            objects: matching.dropFirst(selection.offset).prefix(selection.limit),
            total: matching.count,
            isComplete: content.isComplete,
            isFiltered: permit.view != nil
        )
    }
}

/// Reads one object.
struct ReadObject: Operation {
    let id: CoatyUUID

    var concealment: AccessRequest? { AccessRequest(verb: .read, pattern: .objects, target: .anyObject) }
    var unknown: Problem {
        Problems.notFound(detail: "No object with this id was advertised or discovered, or it is gone.")
    }

    func resolve(in network: Network) -> AliveObject? { network.objects.object(id) }

    func claims(on target: AliveObject, in network: Network, by subject: Principal.Subject) -> [AccessRequest] {
        [target.request(.read, .objects)]
    }

    func execute(on target: AliveObject, in network: Network, under permit: Permit) -> AliveObject { target }
}

/// Lists the agents of the network.
struct ReadAgents: Operation {
    /// Whether to list the agents that are online, or those that are not; nil for all.
    let isOnline: Bool?

    struct Outcome {
        let agents: [AgentPresence]
        let isComplete: Bool
        /// Whether there may be agents that the client must not see.
        let isFiltered: Bool
    }

    var admission: AdmissionRule { .filtered(AccessRequest(verb: .read, pattern: .agents)) }

    func claims(on target: Void, in network: Network, by subject: Principal.Subject) -> [AccessRequest] { [] }

    func execute(on target: Void, in network: Network, under permit: Permit) -> Outcome {
        let content = network.objects.content
        let agents = content.agents.filter { agent in
            guard isOnline == nil || agent.isOnline == isOnline else { return false }
            guard let view = permit.view else { return true }
            return view.allows([AccessRequest(verb: .read, pattern: .agents, objectText: agent.identity)])
        }
        return Outcome(agents: agents, isComplete: content.isComplete, isFiltered: permit.view != nil)
    }
}
