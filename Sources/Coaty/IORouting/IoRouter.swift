/// Routes the values of an IO context: associates the IO sources with the IO actors of its IO nodes, as a subclass decides.
///
/// Its context is the option `ioContext`. The router advertises it and answers who discovers it, takes it over from an
/// Update, and dissolves all associations when the communication manager stops. Only changes are published. An agent may
/// have several routers, each for a context of its own.
open class IoRouter: Controller {
    /// How many IO nodes a context has at most; further ones are not routed.
    public nonisolated static let maximumNodes = 10_000
    /// How many sources and actors a context has at most; a node with more than are left is not routed.
    public nonisolated static let maximumPoints = 100_000
    /// How many pairs of a source and an actor that fit there are at most to decide on; a node with which there would be more
    /// is not routed.
    public nonisolated static let maximumPairs = 4_000_000
    /// How many bytes the texts of all nodes have at most; a node that is larger than what is left is not routed.
    public nonisolated static let maximumBytes = 64 << 20
    /// How many associations a context has at most; further ones are not made.
    public nonisolated static let maximumAssociations = 1_000_000

    /// How long a node may take to show itself after a reconnect; then it counts as gone.
    static let confirmationTime = Duration.seconds(10)
    /// How often to ask for IO nodes at most, however many agents appear.
    static let discoverInterval = Duration.seconds(1)
    /// How many requests for IO nodes are open at most; then the oldest is given up.
    nonisolated static let maximumRequests = 16

    /// The context as it is; nil where the option is missing.
    public private(set) var ioContext: IoContext?
    /// The context as it is advertised.
    package private(set) var ioContextJSON: JSONView?

    private(set) var table = IoRoutingTable { sourceId, _ in sourceId.string }
    private var session: Session?
    private var publisher: AssociatePublisher?
    /// Whether pairs were not associated because there were too many.
    private var isIncomplete = false
    private nonisolated let notes = DoublingCounter()
    /// The nodes that have not shown themselves since the reconnect.
    private(set) var unconfirmed: Set<CoatyUUID> = []
    private var confirmation: Task<Void, any Error>?
    /// By which the time for that is taken.
    var confirmationClock: any Clock<Duration> = ContinuousClock()
    private var requests: [PendingRequest] = []

    /// What lasts until the communication manager stops.
    private struct Session {
        let inbox: IoRouterInbox
        let others: OtherIoRouters
        let answer: IoContextAnswer
        var hasAdvertised = false
    }

    // MARK: - For subclasses

    /// Whether a source and an actor of the same value type and data format are to be associated; all are unless a subclass
    /// says otherwise. The answer must depend on the arguments and ``ioContext`` alone, or ``evaluate()`` be called when
    /// something else changes it.
    open func shouldAssociate(source: IoSource, sourceNode: IoNode, actor: IoActor, actorNode: IoNode) -> Bool { true }

    /// Asked before an Update is taken over; one that is not is ignored, and not completed.
    open func shouldUpdateIoContext(by event: UpdateEvent) -> Bool { true }

    /// Called when the context was taken over from an Update and the associations were decided anew, before the Complete is
    /// published.
    open func onIoContextUpdated(by event: UpdateEvent, from previous: IoContext, changes: IoAssociationChanges) {}

    /// Called when associations have changed, whatever the cause.
    open func onAssociationsChanged(_ changes: IoAssociationChanges) {}

    func verdict(_ source: RoutedPoint<IoSource>, _ actor: RoutedPoint<IoActor>) -> Bool {
        shouldAssociate(
            source: source.point,
            sourceNode: source.node.node,
            actor: actor.point,
            actorNode: actor.node.node
        )
    }

    /// Whether a context that has changed may have changed verdicts on points of a value type.
    func isTouched(_ valueType: WireName, by context: JSONView?, from previous: JSONView?) -> Bool { true }

    // MARK: - What there is

    /// The IO nodes of the context, in the order in which they came.
    public var managedIoNodes: [IoNode] { table.nodes.map(\.node) }

    /// The first IO node of the context that a predicate holds for.
    public func findManagedIoNode(_ predicate: (IoNode) -> Bool) -> IoNode? { managedIoNodes.first(where: predicate) }

    /// The IO nodes as they stand on the wire, in the same order.
    package var managedIoNodesJSON: [JSONView] { table.nodes.map(\.json) }

    /// The source of an id; nil where the context has none.
    public func ioSource(_ id: CoatyUUID) -> IoSource? { table.source(id)?.point }

    /// The actor of an id; nil where the context has none.
    public func ioActor(_ id: CoatyUUID) -> IoActor? { table.actor(id)?.point }

    /// The associations as they are.
    public var associations: [IoAssociation] { table.associations }

    /// Other agents that route the same context, as far as they have shown themselves. They are reported in the log, too.
    public var otherRouters: [CoatyUUID] { session?.others.all ?? [] }

    /// Notes that an agent routes the same context.
    package func note(otherRouter id: CoatyUUID) { session?.others.note(id) }

    /// Decides anew on all pairs of the context, and publishes what changed.
    ///
    /// - Returns: what changed.
    @discardableResult
    public func evaluate() -> IoAssociationChanges { evaluate { _ in true } }

    func evaluate(where isTouched: (PointKind) -> Bool) -> IoAssociationChanges {
        tell(table.evaluate(where: isTouched, verdict))
    }

    // MARK: - Life

    /// Takes the context from the options.
    open override func onInit() {
        super.onInit()
        guard let context = options.extra["ioContext"] as? IoContext else {
            container.logger.error(
                "an IO router needs the option ioContext",
                metadata: ["controller": "\(registeredName)"]
            )
            return
        }
        do {
            try adopt(context)
        } catch {
            container.logger.error("an IO context is not valid", metadata: ["error": "\(error)"])
        }
    }

    /// Begins to route.
    open override func onCommunicationManagerStarting() {
        super.onCommunicationManagerStarting()
        guard let ioContext else { return }
        let manager = communicationManager
        let (name, contextId, ownId) = (ioContext.name, ioContext.objectId, manager.identityId)
        let (asks, ask) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        table = IoRoutingTable(makeRoute: manager.makeIoRoute)
        let inbox = IoRouterInbox(ioContextName: name)
        let logger = container.logger
        let others = OtherIoRouters(ownId: ownId, ioContextName: name, logger: logger)
        let answer = IoContextAnswer(logger: logger)
        publisher = AssociatePublisher(communicationManager: manager, ioContextName: name, logger: logger) {
            [weak self] in
            self?.table.association($0, $1)
        }
        session = Session(inbox: inbox, others: others, answer: answer)
        do {
            try adopt(ioContext)
        } catch {
            logger.error("an IO context is not valid", metadata: ["error": "\(error)"])
        }

        var observations = [
            manager.subscribe(.advertise(withCoreType: .IoNode)) { [weak self] in self?.offer($0.payload, to: inbox) },
            manager.subscribe(.advertise(withCoreType: .Identity)) { if $0.sourceId != ownId { ask.yield() } },
            manager.subscribe(.deadvertise) { event in
                inbox.deadvertise(event.data.objectIds)
                others.remove(event.data.objectIds)
            },
            manager.subscribe(.advertise(withCoreType: .IoContext)) { event in
                guard let object = event.payload.json["object"], object["parentObjectId"]?.string != ownId.string,
                    object["objectId"]?.string == contextId.string
                        || object["name"]?.string.map(WireName.init) == WireName(name)
                else { return }
                others.note(event.sourceId)
            },
            manager.subscribe(.discover) { answer.resolve($0) },
            manager.subscribe(.update(withCoreType: .IoContext)) { [weak self] event in
                if event.data.objectId == contextId, !inbox.update(event) {
                    self?.note("too many updates are to be made")
                }
            },
        ]
        if let associates = try? EventObservation<AssociateEvent>.associate(ioContextName: name) {
            observations.append(manager.subscribe(associates) { others.note($0.sourceId) })
        }
        for observation in observations { observation.disposed(by: disposeBag) }
        let periods = manager.onlinePeriods()
        Task { for await period in periods { inbox.online(period) } }.disposed(by: disposeBag)
        Task { for await _ in inbox.signals { act(on: inbox.take(), inbox) } }.disposed(by: disposeBag)
        Task {
            for await _ in asks where session?.inbox === inbox {
                discover(inbox)
                try await Task.sleep(for: Self.discoverInterval)
            }
        }
        .disposed(by: disposeBag)
    }

    /// Dissolves all associations.
    open override func onCommunicationManagerStopping() {
        super.onCommunicationManagerStopping()
        tell(table.removeAll())
        (session, requests, unconfirmed) = (nil, [], [])
        confirmation = nil
    }

    override func beforeLeaving() async {
        await publisher?.finish()
        publisher = nil
    }

    private func adopt(_ context: IoContext) throws {
        context.parentObjectId = container.identity.objectId
        let event = try ResolveEvent.with(object: context)
        ioContext = context
        ioContextJSON = event.payload.json["object"]
        session?.answer.event = event
    }

    // MARK: - What comes in

    private nonisolated func offer(_ payload: Payload, to inbox: IoRouterInbox) {
        if !inbox.offer(payload) { note("there are too many IO nodes") }
    }

    private func act(on content: IoRouterInbox.Content, _ inbox: IoRouterInbox) {
        // What comes when everything is dissolved would stay.
        guard session?.inbox === inbox else { return }
        if let period = content.onlinePeriod { joined(period, inbox) }
        for (id, change) in content.nodes { take(id, change) }
        for event in content.updates { update(event) }
    }

    private func joined(_ period: Int, _ inbox: IoRouterInbox) {
        // Agents that left while the connection was lost were missed.
        unconfirmed = Set(table.nodes.map(\.node.objectId))
        discover(inbox)
        do {
            // After a reconnect the communication manager advertises it again.
            if session?.hasAdvertised == false, let ioContext {
                try communicationManager.publishAdvertise(.with(object: ioContext))
            }
            session?.hasAdvertised = true
        } catch {
            container.logger.error("an IO context could not be advertised", metadata: ["error": "\(error)"])
        }
        confirmation?.cancel()
        guard !unconfirmed.isEmpty else { return }
        let confirmation = Task {
            try await confirmationClock.sleep(for: Self.confirmationTime)
            // If the connection was lost meanwhile, nodes could not show themselves; the next period gives them time again.
            guard communicationManager.onlinePeriod == period else { return }
            inbox.deadvertise(Array(unconfirmed))
        }
        confirmation.disposed(by: disposeBag)
        self.confirmation = confirmation
    }

    /// Asks for the IO nodes. Some agents in the field advertise only one of theirs when they join, so this is done for each
    /// that does.
    private func discover(_ inbox: IoRouterInbox) {
        // What was asked before may still be answered.
        if requests.count == Self.maximumRequests { requests.removeFirst() }
        do {
            requests.append(
                try communicationManager.publish(DiscoverEvent.with(coreTypes: [.IoNode])) { [weak self] in
                    self?.offer($0.payload, to: inbox)
                }
            )
        } catch {
            container.logger.warning("IO nodes could not be discovered", metadata: ["error": "\(error)"])
        }
    }

    private func take(_ id: CoatyUUID, _ change: IoRouterInbox.NodeChange) {
        unconfirmed.remove(id)
        do {
            guard let payload = change.offer, let json = payload.json["object"],
                let node = try payload.object() as? IoNode
            else {
                tell(table.remove(id, verdict))
                return
            }
            // Another agent, or one that is back, knows nothing of the associations.
            if change.wasGone || table.node(id)?.node.parentObjectId != node.parentObjectId {
                tell(table.remove(id, verdict))
            }
            tell(try table.take(node, json: json, verdict))
        } catch {
            note("an IO node is not routed: \(DropLog.short("\(error)"))")
            // Nor as it was before.
            tell(table.remove(id, verdict))
        }
    }

    private func update(_ event: UpdateEvent) {
        do {
            // Nodes and routers know a context by its name: under another one it would be another context.
            guard let updated = try event.data.object as? IoContext, let previous = ioContext,
                WireName(updated.name) == WireName(previous.name)
            else { return note("an update would make another IO context") }
            guard shouldUpdateIoContext(by: event) else { return }
            guard publisher?.hasRoomForAction ?? false else { return note("too many updates are to be made") }
            let previousJSON = ioContextJSON
            updated.parentObjectId = container.identity.objectId
            // First, because it is refused where the outbox is full: then nothing has changed.
            try communicationManager.publishAdvertise(.with(object: updated))
            try adopt(updated)
            let changes = evaluate { isTouched($0.valueType, by: ioContextJSON, from: previousJSON) }
            onIoContextUpdated(by: event, from: previous, changes: changes)
            let complete = try CompleteEvent.with(object: updated)
            publisher?.append { [logger = container.logger] in
                do {
                    try event.complete(complete)
                } catch {
                    logger.warning("an update could not be completed", metadata: ["error": "\(error)"])
                }
            }
        } catch {
            container.logger.warning("an update was not made", metadata: ["error": "\(error)"])
        }
    }

    /// Logs what the network brings about: at 1, 2, 4, 8…, so that it can't fill the log.
    private nonisolated func note(_ what: String) {
        guard let count = notes.increment() else { return }
        container.logger.warning(
            "\(what)",
            metadata: ["router": "\(registeredName)", "noted so far": "\(count)"]
        )
    }

    // MARK: - What goes out

    @discardableResult
    func tell(_ changes: IoAssociationChanges) -> IoAssociationChanges {
        if table.isFull {
            note("there are too many associations")
            // Those that found no room are looked for again when there is some.
            isIncomplete = true
        } else if isIncomplete, table.associationCount < Self.maximumAssociations / 10 * 9 {
            isIncomplete = false
            var changes = changes
            changes.append(table.evaluate(verdict))
            return tell(changes)
        }
        guard !changes.isEmpty else { return changes }
        publisher?.publish(changes)
        onAssociationsChanged(changes)
        return changes
    }
}

/// Associates every source with every compatible actor.
open class BasicIoRouter: IoRouter {}
