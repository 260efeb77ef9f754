import Logging

/// Routes the values of an IO context: associates the IO sources with the IO actors of its IO nodes, by a rule that a subclass
/// gives.
///
/// Its context is the option `ioContext`. The router advertises it and answers who discovers it, takes it over from an
/// Update, and dissolves all associations when the communication manager stops. Only changes are published.
open class IoRouter: Controller {
    /// How many IO nodes a context has at most; further ones are not routed.
    public static let maximumNodes = 10_000

    /// How many requests for IO nodes are open at most; then the oldest is given up.
    static let maximumRequests = 16

    /// The context as it is.
    public private(set) var ioContext: IoContext?

    private var nodes: [CoatyUUID: IoNode] = [:]
    /// The order in which the nodes came.
    private var nodeIds: [CoatyUUID] = []
    private var associations: [CoatyUUID: SourceAssociations] = [:]
    private var requests: [Subscription] = []

    private struct SourceAssociations {
        var route: String
        var updateRate: Int?
        var actorIds: [CoatyUUID] = []
    }

    private enum Step: Sendable {
        case online
        case agent
        case offer(Payload)
        case deadvertise(DeadvertiseEvent)
        case discover(DiscoverEvent)
        case update(UpdateEvent)
    }

    /// Whether a source and an actor that are compatible are to be associated; all are unless a subclass says otherwise.
    open func shouldAssociate(source: IoSource, sourceNode: IoNode, actor: IoActor, actorNode: IoNode) -> Bool { true }

    /// Takes the context from the options.
    open override func onInit() {
        super.onInit()
        ioContext = options.extra["ioContext"] as? IoContext
        ioContext?.parentObjectId = container.identity.objectId
        if ioContext == nil {
            container.logger.error(
                "an IO router needs the option ioContext",
                metadata: ["controller": "\(registeredName)"]
            )
        }
    }

    /// Begins to route.
    open override func onCommunicationManagerStarting() {
        super.onCommunicationManagerStarting()
        guard ioContext != nil else { return }
        let manager = communicationManager
        let (steps, continuation) = AsyncStream.makeStream(
            of: Step.self,
            bufferingPolicy: .bufferingNewest(CommunicationManager.streamBuffer)
        )
        let observations = [
            manager.subscribe(.advertise(withCoreType: .IoNode)) { continuation.yield(.offer($0.payload)) },
            manager.subscribe(.advertise(withCoreType: .Identity)) { _ in continuation.yield(.agent) },
            manager.subscribe(.deadvertise) { continuation.yield(.deadvertise($0)) },
            manager.subscribe(.discover) { continuation.yield(.discover($0)) },
            manager.subscribe(.update(withCoreType: .IoContext)) { continuation.yield(.update($0)) },
        ]
        for observation in observations { observation.disposed(by: disposeBag) }
        let states = manager.getCommunicationState()
        Task { for await state in states where state == .online { continuation.yield(.online) } }
            .disposed(by: disposeBag)
        Task { for await step in steps { take(step, offer: { continuation.yield(.offer($0)) }) } }
            .disposed(by: disposeBag)
    }

    /// Dissolves all associations.
    open override func onCommunicationManagerStopping() {
        super.onCommunicationManagerStopping()
        for (sourceId, associated) in associations {
            for actorId in associated.actorIds { publish(sourceId, actorId, nil, nil) }
        }
        (nodes, nodeIds, associations, requests) = ([:], [], [:], [])
    }

    /// Decides anew on all pairs of the context, and publishes what changed.
    public func evaluate() {
        var changes = Changes()
        for sourceId in Set(associations.keys).union(sources().map(\.source.objectId)) {
            decide(sourceId, &changes)
        }
        publish(changes)
    }

    private func take(_ step: Step, offer: @escaping @Sendable (Payload) -> Void) {
        do {
            switch step {
            case .online:
                try discover(offer)
                if let ioContext { try communicationManager.publishAdvertise(.with(object: ioContext)) }
            // Some agents in the field advertise only one of their IO nodes when they join.
            case .agent: try discover(offer)
            case .offer(let payload):
                guard let node = try payload.object() as? IoNode, node.name == ioContext?.name else { return }
                replace(node.objectId, with: node.ioSources.isEmpty && node.ioActors.isEmpty ? nil : node)
            case .deadvertise(let event):
                for id in event.data.objectIds where nodes[id] != nil { replace(id, with: nil) }
            case .discover(let event): try answer(event)
            case .update(let event): try update(event)
            }
        } catch {
            container.logger.warning("an event could not be routed", metadata: ["error": "\(error)"])
        }
    }

    private func discover(_ offer: @escaping @Sendable (Payload) -> Void) throws {
        // What was asked before may still be answered.
        if requests.count == Self.maximumRequests { requests.removeFirst() }
        requests.append(
            try communicationManager.publish(DiscoverEvent.with(coreTypes: [.IoNode])) { offer($0.payload) }
        )
    }

    private func answer(_ event: DiscoverEvent) throws {
        guard let ioContext else { return }
        let asked = event.data
        let isAsked =
            asked.isDiscoveringObjectId()
            ? asked.objectId == ioContext.objectId
            : asked.isDiscoveringTypes()
                && (asked.isCoreTypeCompatible(.IoContext) || asked.isObjectTypeCompatible(ioContext.objectType))
        if isAsked { try event.resolve(.with(object: ioContext)) }
    }

    private func update(_ event: UpdateEvent) throws {
        // Nodes and routers know a context by its name: under another one it would be another context.
        guard let updated = try event.data.object as? IoContext, updated.objectId == ioContext?.objectId,
            updated.name == ioContext?.name
        else { return }
        updated.parentObjectId = container.identity.objectId
        ioContext = updated
        try communicationManager.publishAdvertise(.with(object: updated))
        evaluate()
        try event.complete(.with(object: updated))
    }

    /// Takes a node, or lets it go, and decides on the pairs that it is part of.
    private func replace(_ id: CoatyUUID, with node: IoNode?) {
        let old = nodes[id]
        if let node {
            guard old != nil || nodes.count < Self.maximumNodes else {
                container.logger.error("an IO context has too many nodes", metadata: ["limit": "\(Self.maximumNodes)"])
                return
            }
            if old == nil { nodeIds.append(id) }
            nodes[id] = node
        } else {
            nodes[id] = nil
            nodeIds.removeAll { $0 == id }
        }
        var changes = Changes()
        let both = [old, node].compactMap(\.self)
        let valueTypes = Set(both.flatMap { $0.ioActors.map(\.valueType) })
        var sourceIds = both.flatMap { $0.ioSources.map(\.objectId) }
        sourceIds += sources().filter { valueTypes.contains($0.source.valueType) }.map(\.source.objectId)
        var decided: Set<CoatyUUID> = []
        for sourceId in sourceIds where decided.insert(sourceId).inserted { decide(sourceId, &changes) }
        publish(changes)
    }

    private func sources() -> [(source: IoSource, node: IoNode)] {
        nodeIds.compactMap { nodes[$0] }.flatMap { node in node.ioSources.map { ($0, node) } }
    }

    // MARK: - Associations

    private struct Changes {
        var dissolved: [(sourceId: CoatyUUID, actorId: CoatyUUID)] = []
        var associated: [(sourceId: CoatyUUID, actorId: CoatyUUID, route: String, updateRate: Int?)] = []
    }

    /// Finds the actors of a source, and what is different from before.
    private func decide(_ sourceId: CoatyUUID, _ changes: inout Changes) {
        let old = associations[sourceId]
        var new: SourceAssociations?
        if let (source, sourceNode) = sources().first(where: { $0.source.objectId == sourceId }) {
            var wanted = SourceAssociations(route: old?.route ?? route(of: source))
            for actorNode in nodeIds.compactMap({ nodes[$0] }) {
                for actor in actorNode.ioActors
                where actor.valueType == source.valueType
                    && (actor.useRawIoValues ?? false) == (source.useRawIoValues ?? false)
                    && shouldAssociate(source: source, sourceNode: sourceNode, actor: actor, actorNode: actorNode)
                {
                    wanted.actorIds.append(actor.objectId)
                    let rates = [wanted.updateRate, source.updateRate, actor.updateRate].compactMap(\.self)
                    wanted.updateRate = rates.max()
                }
            }
            new = wanted
        }
        associations[sourceId] = new
        let (before, now) = (Set(old?.actorIds ?? []), Set(new?.actorIds ?? []))
        for actorId in old?.actorIds ?? [] where !now.contains(actorId) {
            changes.dissolved.append((sourceId, actorId))
        }
        guard let new else { return }
        for actorId in new.actorIds where !before.contains(actorId) || old?.updateRate != new.updateRate {
            changes.associated.append((sourceId, actorId, new.route, new.updateRate))
        }
    }

    private func route(of source: IoSource) -> String {
        source.externalRoute
            ?? CommunicationTopic.publication(
                .ioValue,
                namespace: communicationManager.namespace,
                sourceId: source.objectId
            )
    }

    private func publish(_ changes: Changes) {
        for (sourceId, actorId) in changes.dissolved { publish(sourceId, actorId, nil, nil) }
        for (sourceId, actorId, route, updateRate) in changes.associated {
            publish(sourceId, actorId, route, updateRate)
        }
    }

    private func publish(_ sourceId: CoatyUUID, _ actorId: CoatyUUID, _ route: String?, _ updateRate: Int?) {
        guard let name = ioContext?.name else { return }
        do {
            try communicationManager.publishAssociate(
                .with(
                    ioContextName: name,
                    ioSourceId: sourceId,
                    ioActorId: actorId,
                    associatingRoute: route,
                    updateRate: updateRate
                )
            )
        } catch {
            container.logger.error("an association could not be published", metadata: ["error": "\(error)"])
        }
    }
}

/// Associates every source with every compatible actor.
open class BasicIoRouter: IoRouter {}
