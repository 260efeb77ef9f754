/// A controller that routes the values of an IO context: it associates the IO sources with the IO actors of its IO
/// nodes, as a subclass decides.
///
/// The option `ioContext` is its context. The router advertises the context, answers Discover events for it and accepts
/// Update events for it. When the communication manager stops, the router dissolves all associations, unless another
/// router of the same context is online, which keeps them. An agent may have several routers, each for a different
/// context.
///
/// Only changes are published. When an agent returns, or the router itself, the current associations of the agent's IO
/// points are published again, and the dissolutions that it may have missed; ``maximumMissedDissolutions`` limits how
/// many are remembered.
///
/// A router decides on a separate executor. Changes that arrive during a decision are applied afterwards, in order;
/// until then, the router's properties show the earlier state. Application code, that is
/// ``shouldAssociate(source:sourceNode:actor:actorNode:)`` and the closures of rules, runs on the ``ControllerActor``,
/// in small batches of pairs.
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

    /// Maximum number of dissolved associations that are remembered for agents that are away, where each counts once
    /// for its source and once for its actor. When it is reached, the older half is forgotten: an agent that has missed
    /// these dissolutions keeps the associations until it stops.
    public nonisolated static let maximumMissedDissolutions = 100_000

    /// Maximum time for a node to be advertised or discovered after a reconnect. After that, it is removed.
    static let confirmationTime = Duration.seconds(10)
    /// Minimum interval between requests for IO nodes, however many agents appear.
    static let discoverInterval = Duration.seconds(1)
    /// Maximum number of open requests for IO nodes; a further one ends the oldest.
    nonisolated static let maximumRequests = 16

    /// The current context; nil if the option is missing.
    public private(set) var ioContext: IoContext?
    /// The advertised JSON of the context; nil if the option is missing.
    public private(set) var ioContextJSON: JSONView?

    /// The nodes and associations after the last change.
    private(set) var table = IoRoutingTable { sourceId, _ in sourceId.string }
    /// Nil while the communication manager is stopped or stopping.
    var session: Session?
    /// Nil while the communication manager is stopped.
    private(set) var publisher: AssociatePublisher?
    /// The queue of all jobs that change the table.
    let jobs = RoutingJobs()
    private let worker = RoutingWorker()
    /// Whether pairs were not associated because of the limits.
    private var isIncomplete = false
    private nonisolated let notes = DoublingCounter()
    /// The nodes that have not been advertised or discovered since the last reconnect.
    var unconfirmed: Set<CoatyUUID> = []
    var confirmation: Deadline?
    /// The clock of ``confirmationTime``.
    var confirmationClock: any Clock<Duration> = ContinuousClock()
    /// The open requests for IO nodes.
    var requests: [PendingRequest] = []
    /// The other routers of the context when the communication manager began to stop.
    private var upholders: [CoatyUUID] = []
    /// Whether the router decides and reports, but publishes nothing, because another agent does so in its place.
    package internal(set) var isSilent = false
    /// The agents that take over when this router stops; then it does not dissolve its associations.
    package var successors: [CoatyUUID] = []
    /// The random beginning of the correlation ids of updates that the router itself makes and publishes. Their Update
    /// events are ignored when they are received, however often and late, because the changes are made.
    let updatePrefix = String(CoatyUUID().string.prefix(13))
    /// What all routers have published; nil if this router is never silent.
    private(set) var published: PublishedPairs?

    /// The state that lasts until the communication manager stops.
    struct Session {
        let inbox: IoRouterInbox
        let others: OtherIoRouters
        let answer: IoContextAnswer
        /// What other agents do not yet know of the context; nil if they know it as it is.
        var unpublished: Unpublished? = .context
        /// The online period that the router has joined; nil if none.
        var period: Int?
        /// Waits for room for what is unpublished.
        var room: Subscription?

        /// What is to be published when the router joins an online period.
        enum Unpublished {
            /// The context.
            case context
            /// The context, as it was updated by a call.
            case update
        }
    }

    /// Whether changes are published now; otherwise when the router joins the next online period.
    package var publishesNow: Bool { session?.period != nil && session?.period == communicationManager.onlinePeriod }

    // MARK: - For subclasses

    /// Returns whether to associate a source and an actor of the same value type and data format; true unless
    /// overridden.
    ///
    /// The answer must depend only on the arguments and ``ioContext``. If it depends on anything else that changes,
    /// call ``evaluate()``.
    open func shouldAssociate(source: IoSource, sourceNode: IoNode, actor: IoActor, actorNode: IoNode) -> Bool { true }

    /// Returns whether to accept an Update event. If not, the event is ignored, without a Complete event.
    open func shouldUpdateIoContext(by event: UpdateEvent) -> Bool { true }

    /// Called when the context was updated and the associations were decided again, before the Complete event is
    /// published.
    open func onIoContextUpdated(by event: UpdateEvent, from previous: IoContext, changes: IoAssociationChanges) {}

    /// Called when associations have changed, for any reason.
    open func onAssociationsChanged(_ changes: IoAssociationChanges) {}

    /// Called after each change of a node, the context or the rules with the time that the change and its decisions
    /// took. The changes are not yet published.
    open func onEvaluated(duration: Duration) {}

    /// The current way to decide on pairs.
    var verdicts: IoRoutingTable.Verdicts {
        // These two classes are known not to override shouldAssociate.
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

    /// Returns a function that selects the kinds of pairs on which a changed context can change the decision.
    func touchedKinds(by context: JSONView?, from previous: JSONView?) -> @Sendable (PointKind) -> Bool {
        { _ in true }
    }

    // MARK: - Reading

    /// The IO nodes of the context, in the order in which they were added.
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

    /// The nodes and associations after the last change, to read on any thread.
    public var routingState: IoRoutingState { IoRoutingState(table: table) }

    /// Other agents that have been seen to route the same context. They are also logged.
    public var otherRouters: [CoatyUUID] { session?.others.all ?? [] }

    /// Records that an agent routes the same context.
    package func note(otherRouter id: CoatyUUID) { session?.others.note(id) }

    /// The other routers that were seen since this agent was last offline.
    package var confirmedOtherRouters: [CoatyUUID] { session?.others.confirmed ?? [] }

    /// Logs that an agent routes the same context. A router that can be silent leaves this to its owner, who knows the
    /// agents that are silent meanwhile.
    package func warn(ofOtherRouter id: CoatyUUID) { session?.others.warn(of: id) }

    // MARK: - Deciding

    /// Decides again on all pairs of the context, and publishes the changes.
    ///
    /// - Returns: the changes; empty if the communication manager stops meanwhile.
    @discardableResult
    public func evaluate() async -> IoAssociationChanges {
        await jobs.add { [self] in await evaluate { _ in true } ?? IoAssociationChanges() }.value
    }

    /// Decides again on pairs of some kinds. Call it in a job.
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

    /// Returns the effects of a change without making it.
    func preview(_ change: @escaping RoutingWorker.Change) async throws -> IoAssociationChanges {
        try await worker.change(table, change).changes
    }

    /// Makes a change, and publishes it. Call it in a job.
    ///
    /// - Parameter returned: a node whose agent may have missed earlier changes.
    /// - Throws: the errors of the change; `CancellationError` if the communication manager stops meanwhile.
    @discardableResult
    func change(
        returned: CoatyUUID? = nil,
        _ change: @escaping RoutingWorker.Change
    ) async throws -> IoAssociationChanges {
        guard session != nil else { throw CancellationError() }
        let begin = ContinuousClock.now
        var (changed, changes) = try await worker.change(table, change)
        if isIncomplete, !changed.isFull, changed.associationCount < Self.maximumAssociations / 10 * 9 {
            // There is space again for pairs that were over the limit.
            let verdicts = verdicts
            if let result = try? await worker.change(changed, { table, _ in try await table.evaluate(verdicts) }) {
                changed = result.table
                changes.append(result.changes)
                isIncomplete = false
            }
        }
        onEvaluated(duration: .now - begin)
        if let excess = changed.excess { note("\(excess)") }
        if changed.isFull {
            note("there are too many associations")
            isIncomplete = true
        }
        await publish(changes, of: changed, returned: returned)
        return changes
    }

    /// Stores a changed table and reports the changes. No other code runs between the two steps, so a reader of the
    /// associations who then follows the changes misses none.
    private func publish(
        _ changes: IoAssociationChanges,
        of changed: IoRoutingTable,
        returned: CoatyUUID? = nil
    ) async {
        let former = table
        table = changed
        if !changes.isEmpty { onAssociationsChanged(changes) }
        guard !changes.isEmpty || returned != nil else { return }
        // A node is also away while a change adds or removes it.
        let isAway = { @Sendable (point: CoatyUUID) in
            !former.contains(point: point) || !changed.contains(point: point)
        }
        guard !isSilent else {
            published?.note(changes)
            await publisher?.note(changes, isAway: isAway)
            return
        }
        var (changes, points) = (changes, [CoatyUUID]())
        if let returned {
            points = changed.points(of: returned)
            // All associations of a new node are changes.
            if former.node(returned) != nil {
                changes.changed += await worker.associations(of: returned, in: changed, except: unconfirmed)
            }
        }
        await publisher?.publish(changes, missedBy: points, isAway: isAway) { changed.association($0, $1) }
    }

    // MARK: - Lifecycle

    /// Reads the context from the options.
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

    /// Starts routing.
    open override func onCommunicationManagerStarting() {
        super.onCommunicationManagerStarting()
        guard let ioContext else { return }
        let (manager, logger, name) = (communicationManager, container.logger, ioContext.name)
        table = IoRoutingTable(makeRoute: manager.makeIoRoute)
        isIncomplete = false
        let session = Session(
            inbox: IoRouterInbox(ioContextName: name),
            others: OtherIoRouters(
                ownId: manager.identityId,
                ioContextName: name,
                warns: published == nil,
                logger: logger
            ) { [weak manager] in manager?.onlinePeriod },
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

    /// Ends the running evaluation. All associations are dissolved before the agent leaves, unless another router of
    /// the context keeps them, or this one is silent.
    open override func onCommunicationManagerStopping() {
        super.onCommunicationManagerStopping()
        upholders = (session?.others.confirmed ?? []) + successors
        (session, requests, unconfirmed, confirmation) = (nil, [], [], nil)
        jobs.cancel()
    }

    override func beforeLeaving() async {
        // After the running job, which has published either all of its changes or none.
        await jobs.add { [self] in
            // Associations that are dissolved here would stay dissolved: the other routers publish only their own
            // changes, and it is unknown which of the associations they have too.
            if isSilent {
                // They are not this router's.
            } else if !upholders.isEmpty, table.associationCount > 0 {
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

    /// Sets the router's context.
    func adopt(_ context: IoContext) throws {
        context.parentObjectId = container.identity.objectId
        let event = try ResolveEvent.with(object: context)
        ioContext = context
        ioContextJSON = event.payload.json["object"]
        session?.answer.event = isSilent ? nil : event
    }

    /// Sets the context of another agent's router.
    func adopt(_ context: IoContext, as json: JSONView) {
        ioContext = context
        ioContextJSON = json
    }

    /// Makes the router silent from the start.
    func follow() {
        isSilent = true
        published = PublishedPairs()
    }

    /// Publishes all associations, whether other agents know them or not, and dissolves those that other routers have
    /// left and this one has not decided. Call it in a job.
    func publishAll() async {
        var changes = IoAssociationChanges()
        changes.removed = published?.outdated(in: table) ?? []
        // Other agents may know them, so a pair that ends while it is queued must be dissolved.
        changes.changed = table.associations
        let table = table
        await publisher?.publish(changes) { table.association($0, $1) }
    }

    /// Logs occurrences 1, 2, 4, 8… of an event of the network, so that the network cannot fill the log.
    nonisolated func note(_ what: String) {
        guard let count = notes.increment() else { return }
        container.logger.warning(
            "an IO router can't route everything",
            metadata: ["reason": "\(what)", "router": "\(registeredName)", "noted so far": "\(count)"]
        )
    }
}

/// A router that associates every source with every compatible actor.
open class BasicIoRouter: IoRouter {}
