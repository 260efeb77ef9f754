package import Access
package import Base
package import Coaty
package import Feeds
package import Network
package import ProblemDetails

/// Lists the routed IO contexts.
package struct ReadContexts: AsyncOperation {
    package var kind: OperationKind { OperationKind(verb: .read, pattern: .contexts) }

    package var admission: AdmissionRule { .filtered(.context(.read, .anyContext)) }

    package func claims(on target: Void, in network: NetworkParts, by subject: Principal.Subject) -> [AccessRequest] {
        []
    }

    /// - Returns: the contexts, and whether there may be others that the client must not see.
    package func execute(
        on target: Void,
        in network: NetworkParts,
        under permit: Permit
    ) async throws -> (contexts: [RoutingAdmin.Snapshot], isFiltered: Bool) {
        let snapshots = await network.routing.snapshots()
        guard let view = permit.view else { return (snapshots, false) }
        let visible = snapshots.filter { snapshot in
            let name = snapshot.json["name"]?.string.map { AccessTarget.context(WireName($0)) }
            return view.allows([.context(.read, name ?? .anyContext)])
        }
        return (visible, true)
    }

    package init() {}
}

/// An operation on one IO context. Grants contain the names of contexts; clients send ids.
protocol ContextOperation: AsyncOperation where Target == WireName {
    var id: CoatyUUID { get }
    static var verb: Verb { get }
}

extension ContextOperation {
    package var kind: OperationKind { OperationKind(verb: Self.verb, pattern: .contexts) }
    package var concealment: AccessRequest? { .context(Self.verb, .anyContext) }
    package var unknown: Problem { Problems.unknownContext(id) }

    package func resolve(in network: NetworkParts) -> WireName? { network.routing.contextName(id) }

    package func claims(on target: WireName, in network: NetworkParts, by subject: Principal.Subject) -> [AccessRequest]
    {
        [.context(Self.verb, .context(target))]
    }
}

/// Reads one IO context.
package struct ReadContext: ContextOperation {
    static let verb = Verb.read
    let id: CoatyUUID

    package init(id: CoatyUUID) {
        self.id = id
    }

    package func execute(
        on target: WireName,
        in network: NetworkParts,
        under permit: Permit
    ) async throws -> RoutingAdmin.Snapshot {
        try await network.routing.snapshot(id)
    }
}

/// Updates an IO context, including one that is unknown to the gateway.
package struct UpdateContext: AsyncOperation {
    package var kind: OperationKind { OperationKind(verb: .route, pattern: .contexts) }

    let id: CoatyUUID
    let change: RoutingAdmin.ContextChange
    let ifMatch: IfMatch?
    /// In milliseconds.
    let timeout: Int

    package init(id: CoatyUUID, change: RoutingAdmin.ContextChange, ifMatch: IfMatch?, timeout: Int) {
        self.id = id
        self.change = change
        self.ifMatch = ifMatch
        self.timeout = timeout
    }

    package var isAudited: Bool { true }
    package var concealment: AccessRequest? { .context(.route, .anyContext) }
    package var unknown: Problem { Problems.unknownContext(id) }

    /// Returns the known name and the new one. They can differ only if the update will be refused.
    package func resolve(in network: NetworkParts) -> [WireName]? {
        var names = network.routing.contextName(id).map { [$0] } ?? []
        if case .put(let context) = change, let name = context["name"]?.string { names.append(WireName(name)) }
        return names
    }

    package func claims(on target: [WireName], in network: NetworkParts, by subject: Principal.Subject)
        -> [AccessRequest]
    {
        target.isEmpty ? [.context(.route, .anyContext)] : target.map { .context(.route, .context($0)) }
    }

    /// - Throws: errors of ``RoutingAdmin/update(_:_:ifMatch:timeout:)``.
    package func execute(
        on target: [WireName],
        in network: NetworkParts,
        under permit: Permit
    ) async throws -> RoutingAdmin.UpdatedContext {
        // An Update and, of a hosted context, an Advertise event with the whole context.
        let size = await network.routing.maximumSize(of: id, after: change)
        let place = try permit.account.takeOutbox(size, publications: 2)
        return try await network.routing.update(id, change, ifMatch: ifMatch, timeout: timeout, holding: place)
    }
}

/// Reads the association rules of a hosted IO context.
package struct ReadRules: ContextOperation {
    static let verb = Verb.read
    let id: CoatyUUID

    package init(id: CoatyUUID) {
        self.id = id
    }

    /// - Returns: the JSON text.
    package func execute(on target: WireName, in network: NetworkParts, under permit: Permit) async throws -> [UInt8] {
        try await network.routing.rules(id)
    }
}

/// Replaces the association rules of a hosted IO context.
package struct ReplaceRules: ContextOperation {
    static let verb = Verb.route
    let id: CoatyUUID
    let rules: [IoAssociationRule]
    let ifMatch: IfMatch?

    package init(id: CoatyUUID, rules: [IoAssociationRule], ifMatch: IfMatch?) {
        self.id = id
        self.rules = rules
        self.ifMatch = ifMatch
    }

    package var isAudited: Bool { true }

    package func execute(
        on target: WireName,
        in network: NetworkParts,
        under permit: Permit
    ) async throws -> RoutingAdmin.ReplacedRules {
        try await network.routing.replaceRules(id, rules, ifMatch: ifMatch)
    }
}

/// Returns the changes that another context or other rules would make. Reads the context and its nodes, and changes
/// nothing.
package struct EvaluateRules: ContextOperation {
    static let verb = Verb.read
    let id: CoatyUUID
    let context: JSONView?
    let rules: [IoAssociationRule]?

    package init(id: CoatyUUID, context: JSONView?, rules: [IoAssociationRule]?) {
        self.id = id
        self.context = context
        self.rules = rules
    }

    package func execute(on target: WireName, in network: NetworkParts, under permit: Permit) async throws
        -> IoAssociationChanges
    {
        do {
            return try await network.routing.evaluate(id, context: context, rules: rules)
        } catch PayloadError.invalid(let pointer, let reason) {
            throw PayloadError.invalid(pointer: "/context" + pointer, reason: reason)
        }
    }
}

/// Explains why an IO source and an IO actor are associated or not.
package struct ExplainAssociation: ContextOperation {
    static let verb = Verb.read
    let id: CoatyUUID
    let source: CoatyUUID
    let actor: CoatyUUID

    package init(id: CoatyUUID, source: CoatyUUID, actor: CoatyUUID) {
        self.id = id
        self.source = source
        self.actor = actor
    }

    package func execute(
        on target: WireName,
        in network: NetworkParts,
        under permit: Permit
    ) async throws -> IoAssociationExplanation {
        try await network.routing.explain(id, source: source, actor: actor)
    }
}

extension AccessRequest {
    fileprivate static func context(_ verb: Verb, _ target: AccessTarget) -> AccessRequest {
        AccessRequest(verb: verb, pattern: .contexts, target: target)
    }
}
