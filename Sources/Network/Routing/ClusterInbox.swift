import Coaty

/// What the other gateways of a cluster have announced about the hosted contexts.
struct ClusterInbox: Sendable {
    /// A context and its rules, as the gateway that speaks has published them.
    struct State: Sendable {
        let version: RoutingVersion
        let context, rules: JSONView
    }

    /// An element of the list of claims in a message.
    struct NamedClaim: Codable {
        let id: CoatyUUID
        let claim: RouterElection.Claim
    }

    private let hosted: Set<CoatyUUID>
    /// By gateway, then by context.
    private var claims: [CoatyUUID: [CoatyUUID: RouterElection.Claim]] = [:]
    private var states: [CoatyUUID: [CoatyUUID: State]] = [:]

    init(hosted: Set<CoatyUUID>) { self.hosted = hosted }

    /// Returns the claims of all gateways that route a context.
    func claims(of context: CoatyUUID) -> [CoatyUUID: RouterElection.Claim] { claims.compactMapValues { $0[context] } }

    /// Returns the state of a context at a gateway that speaks.
    func state(of context: CoatyUUID, at gateway: CoatyUUID) -> State? { states[gateway]?[context] }

    /// Takes a piece of the state of a gateway: `{"claims": […]}` or `{"state": {id, version, context, rules}}`.
    mutating func receive(_ piece: JSONView, replacesAll: Bool, from gateway: CoatyUUID) {
        if replacesAll { states[gateway] = nil }
        if let view = piece["claims"], let list = try? PayloadCoder.decode([NamedClaim].self, from: view) {
            let known = list.filter { hosted.contains($0.id) }
            claims[gateway] = Dictionary(known.map { ($0.id, $0.claim) }, uniquingKeysWith: { $1 })
            for named in known where !named.claim.speaks { states[gateway]?[named.id] = nil }
        }
        if let state = piece["state"], let id = state["id"]?.string.map(CoatyUUID.init(wire:)), hosted.contains(id),
            let version = state["version"].flatMap({ try? PayloadCoder.decode(RoutingVersion.self, from: $0) }),
            let context = state["context"], let rules = state["rules"]
        {
            states[gateway, default: [:]][id] = State(version: version, context: context, rules: rules)
        }
    }

    /// Forgets the gateways that are not known any more.
    mutating func keep(_ gateways: Set<CoatyUUID>) {
        claims = claims.filter { gateways.contains($0.key) }
        states = states.filter { gateways.contains($0.key) }
    }
}
