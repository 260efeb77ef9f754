package import Access
import Base
package import Coaty
package import Feeds
package import Network
package import ProblemDetails

/// Subscribes to events.
package struct Observe: LastingOperation {
    /// The memory of a subscription without its filter and its queue, in bytes.
    static let cost = 2 << 10

    let observation: Observation
    /// The memory of the subscription's options, in bytes.
    var footprint = 0

    package init(observation: Observation, footprint: Int = 0) {
        self.observation = observation
        self.footprint = footprint
    }

    /// The IO node of an observed IO point, or the name of an observed IO context.
    package enum Target: Sendable {
        case node(IoNodeRegistry.Owned)
        case context(WireName)
        case network
    }

    package var kind: OperationKind { OperationKind(verb: .observe, pattern: observation.pattern) }

    package func resolve(in network: NetworkParts) -> Target? {
        switch observation {
        case .ioValue(let id):
            network.ioNodes.actor(id) == nil ? nil : network.ioNodes.owned(ofPoint: id).map(Target.node)
        case .ioState(let id): network.ioNodes.owned(ofPoint: id).map(Target.node)
        case .routing(let id): network.routing.contextName(id).map(Target.context)
        default: .network
        }
    }

    package var unknown: Problem {
        switch observation {
        case .ioValue: Problems.notRegistered("IO actor")
        case .routing(let id): Problems.unknownContext(id)
        default: Problems.notRegistered("IO point")
        }
    }

    package var concealment: AccessRequest? {
        switch observation {
        case .ioValue: AccessRequest(verb: .observe, pattern: .iovalue, target: .anyContext)
        case .ioState: AccessRequest(verb: .observe, pattern: .iostate, target: .anyContext)
        case .routing: AccessRequest(verb: .observe, pattern: .routing, target: .anyContext)
        default: nil
        }
    }

    package var admission: AdmissionRule {
        func request(_ pattern: AccessPattern) -> AccessRequest {
            AccessRequest(verb: .observe, pattern: pattern, target: .anyObject)
        }
        return switch observation {
        case .deadvertise: .filtered(request(.deadvertise))
        case .discover: .filtered(request(.discover))
        case .query: .filtered(request(.query))
        case .objects(nil): .filtered(request(.advertise))
        case .traffic: .filteredByEvent(AccessRequest(verb: .observe, pattern: .traffic))
        default: .standing
        }
    }

    package func claims(on target: Target, in network: NetworkParts, by subject: Principal.Subject) -> [AccessRequest] {
        func request(_ pattern: AccessPattern, _ target: AccessTarget) -> [AccessRequest] {
            [AccessRequest(verb: .observe, pattern: pattern, target: target)]
        }
        switch (observation, target) {
        case (.advertise(let kind), _), (.objects(let kind?), _): return request(.advertise, kind.target)
        case (.update(let kind), _): return request(.update, kind.target)
        case (.channel(let id), _): return request(.channel, .channel(id))
        case (.call(let operation), _): return request(.call, .operation(operation))
        case (.raw(let filter), _): return request(.raw, .topicFilter(filter.text))
        case (.associate(let name), _): return request(.associate, .context(name))
        case (.routing, .context(let name)): return request(.routing, .context(name))
        case (.ioValue, .node(let node)): return [node.request(.observe, .iovalue, by: subject)]
        case (.ioState, .node(let node)): return [node.request(.observe, .iostate, by: subject)]
        // The events of these observations are filtered.
        case (.deadvertise, _), (.discover, _), (.query, _), (.objects(nil), _), (.traffic, _): return []
        case (.routing, _), (.ioValue, _), (.ioState, _): return []
        }
    }

    /// - Throws: `Problem` if the observation is not possible now.
    package func open(
        on target: Target,
        in network: NetworkParts,
        under permit: Permit,
        for client: GateClient,
        _ outcome: ActivityOutcome
    ) throws -> SubscriptionActivity {
        let account = permit.account
        if let problem = network.feeds.refusal(of: observation) {
            if problem.type == Problems.tooManyFeeds.type {
                account.countRefusal(.resource(observation.isTraffic ? .brokerConnections : .feeds), .all)
            }
            throw problem
        }
        var places: [any AnyObject & Sendable] = [try account.take(.subscriptions)]
        let charge = try account.charge(Self.cost + footprint)
        if let share = try network.feedShares.take(observation, by: account) { places.append(share) }
        return SubscriptionActivity(
            self,
            permit.view,
            account,
            SubscriptionActivity.Holdings(places: places, charge: charge),
            in: network.feeds,
            for: client,
            outcome
        )
    }
}

extension ObjectKind {
    fileprivate var target: AccessTarget {
        switch self {
        case .core(let coreType): .coreType(coreType)
        case .object(let objectType): .objectType(objectType)
        }
    }
}
