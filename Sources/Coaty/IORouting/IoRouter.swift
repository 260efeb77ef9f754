/// Routes the values of an IO context: associates the IO sources with the IO actors of its IO nodes, as a subclass decides.
///
/// The option `ioContext` is its context. The router advertises the context, answers Discover events for it, accepts Updates
/// of it, and dissolves all associations when the communication manager stops, unless another router of the same context is
/// online, which upholds them. Only changes are published. An agent may have several routers, each for a context of its own.
///
/// A router decides on an executor of its own. Changes that arrive while it decides are applied afterwards, in their order;
/// until then its properties show the state before. Code of the application, which is ``shouldAssociate(source:sourceNode:actor:actorNode:)``
/// and the closures of rules, runs on the ``ControllerActor``, in small batches of pairs.
open class IoRouter: Controller {
    /// Maximum number of IO nodes of a context; further ones are not routed.
    public nonisolated static let maximumNodes = 10_000
    /// Maximum number of sources and actors of a context; a node that would exceed it is not routed.
    public nonisolated static let maximumPoints = 100_000
    /// Maximum number of compatible pairs of a source and an actor; a node that would exceed it is not routed.
    public nonisolated static let maximumPairs = 4_000_000
    /// Maximum size of the JSON of all nodes, in bytes; a node that would exceed it is not routed.
    public nonisolated static let maximumBytes = 64 << 20
    /// Maximum number of associations of a context; further ones are not made.
    public nonisolated static let maximumAssociations = 1_000_000

    /// How long a node may take to show itself after a reconnect; then it is removed.
    static let confirmationTime = Duration.seconds(10)
    /// Minimum interval between requests for IO nodes, however many agents appear.
    static let discoverInterval = Duration.seconds(1)
    /// Maximum number of open requests for IO nodes; a further one ends the oldest.
    nonisolated static let maximumRequests = 16

    /// The current context; nil if the option is missing.
    public private(set) var ioContext: IoContext?
    /// The context as it is advertised.
    package private(set) var ioContextJSON: JSONView?

    /// The nodes and associations, as the last change has left them.
    package private(set) var table = IoRoutingTable { sourceId, _ in sourceId.string }
    /// Nil while the communication manager is stopped or stopping.
    var session: Session?
    /// Nil while the communication manager is stopped.
    private(set) var publisher: AssociatePublisher?
    /// Everything that changes the table.
    let jobs = RoutingJobs()
    private let worker = RoutingWorker()
    /// Called with the time that a change of the table and its decisions have taken.
    package var onEvaluated: (@Sendable (Duration) -> Void)?
    /// Whether pairs were not associated because there were too many.
    private var isIncomplete = false
    private nonisolated let notes = DoublingCounter()
    /// The nodes that have not shown themselves since the last reconnect.
    var unconfirmed: Set<CoatyUUID> = []
    var confirmation: Deadline?
    /// The clock of ``confirmationTime``.
    var confirmationClock: any Clock<Duration> = ContinuousClock()
    /// The open requests for IO nodes.
    var requests: [PendingRequest] = []
    /// The other routers of the context when the communication manager began to stop.
    private var upholders: [CoatyUUID] = []

    /// What lasts until the communication manager stops.
    struct Session {
        let inbox: IoRouterInbox
        let others: OtherIoRouters
        let answer: IoContextAnswer
        var hasAdvertised = false
    }

    // MARK: - For subclasses

    /// Returns whether to associate a source and an actor of the same value type and data format; true unless overridden.
    ///
    /// The answer must depend on the arguments and ``ioContext`` only. If something else changes it, call ``evaluate()``.
    open func shouldAssociate(source: IoSource, sourceNode: IoNode, actor: IoActor, actorNode: IoNode) -> Bool { true }

    /// Returns whether to accept an Update. One that is not accepted is ignored, and not completed.
    open func shouldUpdateIoContext(by event: UpdateEvent) -> Bool { true }

    /// Called when the context was updated and the associations were decided again, before the Complete is published.
    open func onIoContextUpdated(by event: UpdateEvent, from previous: IoContext, changes: IoAssociationChanges) {}

    /// Called when associations have changed, for any reason.
    open func onAssociationsChanged(_ changes: IoAssociationChanges) {}

    /// How pairs are decided now.
    var verdicts: IoRoutingTable.Verdicts {
        // These two are known not to override shouldAssociate.
        let type = type(of: self)
        if type == IoRouter.self || type == BasicIoRouter.self { return { _ in .constant(true) } }
        return { _ in
            .code { [self] source, actor in
                guard let sourceNode = source.node.node, let actorNode = actor.node.node,
                    let source = source.point, let actor = actor.point
                else { return false }
                return shouldAssociate(source: source, sourceNode: sourceNode, actor: actor, actorNode: actorNode)
            }
        }
    }

    /// Returns which pairs a changed context can decide otherwise.
    func touchedKinds(by context: JSONView?, from previous: JSONView?) -> @Sendable (PointKind) -> Bool {
        { _ in true }
    }

    // MARK: - Reading

    /// The IO nodes of the context, in the order in which they came.
    public var managedIoNodes: [IoNode] { table.nodes.compactMap(\.node) }

    /// Returns the first IO node of the context that satisfies a predicate.
    public func findManagedIoNode(_ predicate: (IoNode) -> Bool) -> IoNode? {
        table.nodes.lazy.compactMap(\.node).first(where: predicate)
    }

    /// Returns the source with an id; nil if the context has none.
    public func ioSource(_ id: CoatyUUID) -> IoSource? { table.source(id)?.point }

    /// Returns the actor with an id; nil if the context has none.
    public func ioActor(_ id: CoatyUUID) -> IoActor? { table.actor(id)?.point }

    /// The current associations.
    public var associations: [IoAssociation] { table.associations }

    /// Other agents that have shown that they route the same context. They are also logged.
    public var otherRouters: [CoatyUUID] { session?.others.all ?? [] }

    /// Records that an agent routes the same context.
    package func note(otherRouter id: CoatyUUID) { session?.others.note(id) }

    // MARK: - Deciding

    /// Decides again on all pairs of the context, and publishes the changes.
    ///
    /// - Returns: the changes; none if the communication manager stops meanwhile.
    @discardableResult
    public func evaluate() async -> IoAssociationChanges {
        await jobs.add { [self] in await evaluate { _ in true } ?? IoAssociationChanges() }.value
    }

    /// Decides again on pairs of some kinds. To be called in a job.
    ///
    /// - Returns: nil if the communication manager stops meanwhile.
    func evaluate(where isTouched: @escaping @Sendable (PointKind) -> Bool) async -> IoAssociationChanges? {
        let verdicts = verdicts
        do {
            return try await change { table, _ in try await table.evaluate(where: isTouched, verdicts) }
        } catch {
            return nil
        }
    }

    /// Returns what a change would change, without making it.
    func preview(_ change: @escaping RoutingWorker.Change) async throws -> IoAssociationChanges {
        try await worker.change(table, change).changes
    }

    /// Makes a change, and publishes it. To be called in a job.
    ///
    /// - Throws: what the change throws; `CancellationError` if the communication manager stops meanwhile.
    @discardableResult
    func change(_ change: @escaping RoutingWorker.Change) async throws -> IoAssociationChanges {
        guard session != nil else { throw CancellationError() }
        let begin = ContinuousClock.now
        var (changed, changes) = try await worker.change(table, change)
        if isIncomplete, !changed.isFull, changed.associationCount < Self.maximumAssociations / 10 * 9 {
            // There is room again for pairs that found none.
            let verdicts = verdicts
            if let result = try? await worker.change(changed, { table, _ in try await table.evaluate(verdicts) }) {
                changed = result.table
                changes.append(result.changes)
                isIncomplete = false
            }
        }
        onEvaluated?(.now - begin)
        if let excess = changed.excess { note("\(excess)") }
        if changed.isFull {
            note("there are too many associations")
            isIncomplete = true
        }
        await publish(changes, of: changed)
        return changes
    }

    /// Stores a changed table and reports the changes. Nothing else runs between the two, so a reader of the associations who
    /// then follows the changes misses none.
    private func publish(_ changes: IoAssociationChanges, of changed: IoRoutingTable) async {
        table = changed
        guard !changes.isEmpty else { return }
        onAssociationsChanged(changes)
        await publisher?.publish(changes) { changed.association($0, $1) }
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

    /// Starts to route.
    open override func onCommunicationManagerStarting() {
        super.onCommunicationManagerStarting()
        guard let ioContext else { return }
        let (manager, logger, name) = (communicationManager, container.logger, ioContext.name)
        table = IoRoutingTable(makeRoute: manager.makeIoRoute)
        isIncomplete = false
        let session = Session(
            inbox: IoRouterInbox(ioContextName: name),
            others: OtherIoRouters(ownId: manager.identityId, ioContextName: name, logger: logger) {
                [weak manager] in manager?.onlinePeriod
            },
            answer: IoContextAnswer(logger: logger)
        )
        publisher = AssociatePublisher(
            communicationManager: manager,
            ioContextName: name,
            logger: logger,
            executor: worker.executor
        )
        self.session = session
        do {
            try adopt(ioContext)
        } catch {
            logger.error("an IO context is not valid", metadata: ["error": "\(error)"])
        }
        observe(ioContext, session)
    }

    /// Ends the evaluation that is under way. All associations are dissolved before the agent leaves, unless another router of the
    /// context upholds them.
    open override func onCommunicationManagerStopping() {
        super.onCommunicationManagerStopping()
        upholders = session?.others.confirmed ?? []
        (session, requests, unconfirmed, confirmation) = (nil, [], [], nil)
        jobs.cancel()
    }

    override func beforeLeaving() async {
        // Behind the job that was under way, which has published all of its changes or made none.
        await jobs.add { [self] in
            // What is dissolved here would stay dissolved: the other routers publish only what changes for them, and which of the
            // associations are also theirs is not known.
            if !upholders.isEmpty, table.associationCount > 0 {
                container.logger.info(
                    "associations are left to another router of the IO context",
                    metadata: [
                        "router": "\(registeredName)", "associations": "\(table.associationCount)",
                        "agent": "\(DropLog.short(upholders[0].string))",
                    ]
                )
            } else if let (empty, changes) = try? await worker.change(table, { table, _ in table.removeAll() }) {
                await publish(changes, of: empty)
            }
            await publisher?.finish()
            publisher = nil
        }.value
    }

    /// Makes a context the router's own.
    func adopt(_ context: IoContext) throws {
        context.parentObjectId = container.identity.objectId
        let event = try ResolveEvent.with(object: context)
        ioContext = context
        ioContextJSON = event.payload.json["object"]
        session?.answer.event = event
    }

    /// Logs an event of the network: the 1st, 2nd, 4th, 8th… one, so that the network cannot fill the log.
    nonisolated func note(_ what: String) {
        guard let count = notes.increment() else { return }
        container.logger.warning(
            "an IO router can't route everything",
            metadata: ["reason": "\(what)", "router": "\(registeredName)", "noted so far": "\(count)"]
        )
    }
}

/// Associates every source with every compatible actor.
open class BasicIoRouter: IoRouter {}
