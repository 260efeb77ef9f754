import Access
package import Base
package import Coaty
package import Measurement

/// Reads and changes the IO contexts that this gateway and other agents route.
@ControllerActor
package final class RoutingAdmin {
    /// How long a change of rules waits for a gateway of the cluster that speaks for the context, in milliseconds.
    static let rulesTimeout = 5_000

    nonisolated let directory: ContextDirectory
    nonisolated let feed: RoutingFeed
    /// The durations of the changes of hosted contexts, including decisions.
    package nonisolated let evaluations = DurationHistogram()
    /// Maximum size of a context and its rules in a cluster: a message to the other gateways contains them in base64.
    let maximumSharedSize: Int
    private let manager: CommunicationManager
    /// In the order of the configuration.
    private nonisolated let routers: [(id: CoatyUUID, name: WireName, router: HostedRouter)]
    private let turns: Turns
    private var looking: Task<Void, Never>?
    /// Nil without a cluster. Set it before the gateway serves clients.
    var cluster: RoutingCluster?

    /// - Parameter routers: the routers of the hosted contexts.
    package init(
        manager: CommunicationManager,
        routers: [(id: CoatyUUID, name: WireName, router: HostedRouter)],
        feed: RoutingFeed,
        limits: Limits = Limits()
    ) {
        turns = Turns(maximumWaiting: limits.waitingContextChanges)
        maximumSharedSize = limits.maximumEventSize / 2
        self.manager = manager
        self.routers = routers
        self.feed = feed
        directory = ContextDirectory(
            manager: manager,
            hosted: Set(routers.map(\.id)),
            feed: feed,
            limits: limits
        ) { id, other in
            Task { @ControllerActor in routers.first { $0.id == id }?.router.note(otherRouter: other) }
        }
        for (_, _, router) in routers { router.evaluationHandler = { [weak self] in self?.evaluations.record($0) } }
    }

    /// Starts to observe the contexts of other routers. Call it before the communication manager starts.
    package func start() { looking = directory.start() }

    package func stop() { looking?.cancel() }

    /// The routers of the hosted contexts, in the order of the configuration.
    nonisolated var hostedRouters: [(id: CoatyUUID, router: HostedRouter)] { routers.map { ($0.id, $0.router) } }

    /// Returns the router of a hosted context.
    nonisolated func router(_ id: CoatyUUID) -> HostedRouter? { routers.first { $0.id == id }?.router }

    /// Returns whether a client means a known context.
    package nonisolated func isKnown(_ id: CoatyUUID) -> Bool { id.spellings.contains(where: hasContext) }

    /// Returns the id of the known context that a client means; the same id if there is none.
    package nonisolated func known(_ id: CoatyUUID) -> CoatyUUID { id.spellings.first(where: hasContext) ?? id }

    private nonisolated func hasContext(_ id: CoatyUUID) -> Bool { router(id) != nil || directory.contains(id) }

    /// Returns the name of a context, which never changes; nil if the context is unknown.
    package nonisolated func contextName(_ id: CoatyUUID) -> WireName? {
        let id = known(id)
        return routers.first { $0.id == id }?.name ?? directory.json(id)?["name"]?.string.map { WireName($0) }
    }

    // MARK: - Reading

    package func snapshots() -> [Snapshot] {
        routers.compactMap { snapshot($0.router) } + directory.entries.map(snapshot)
    }

    package func snapshot(_ id: CoatyUUID) throws(Failure) -> Snapshot {
        let found = known(id)
        guard let snapshot = router(found).flatMap(snapshot) ?? directory.entry(found).map(snapshot) else {
            throw .notFound("There is no IO context \(id).")
        }
        return snapshot
    }

    private func snapshot(_ router: HostedRouter) -> Snapshot? {
        router.ioContextJSON.map { json in
            var (speaker, others): (CoatyUUID?, [CoatyUUID]) = (manager.identityId, router.otherRouters)
            if let cluster, let id = router.ioContext?.objectId {
                others = cluster.otherRouters(router)
                speaker = cluster.speaker(id) ?? (others.isEmpty ? nil : others.removeFirst())
            }
            return Snapshot(
                json: json,
                router: speaker,
                otherRouters: others,
                content: .hosted(router.routingState)
            )
        }
    }

    private func snapshot(_ entry: ContextDirectory.Entry) -> Snapshot {
        Snapshot(
            json: entry.json,
            router: entry.router,
            otherRouters: entry.otherRouters,
            content: .foreign(nodes: entry.nodes, associations: entry.associations, isComplete: entry.isComplete)
        )
    }

    func hosted(_ id: CoatyUUID) throws(Failure) -> HostedRouter {
        guard let router = router(known(id)) else {
            throw .notFound("This gateway does not route an IO context \(id).")
        }
        return router
    }

    /// Observes the associations of a context: the current ones, then each change.
    ///
    /// - Returns: a function that ends the observation; nil if there is no such context.
    package func watch(_ id: CoatyUUID, _ handler: @escaping RoutingFeed.Handler) -> (@Sendable () -> Void)? {
        let id = known(id)
        guard let router = router(id) else { return directory.watch(id, handler) }
        return feed.watch(id, from: router.associations, handler)
    }

    // MARK: - Changing

    /// Returns an upper bound of the size of a context after a change, in bytes.
    package func maximumSize(of id: CoatyUUID, after change: ContextChange) -> Int {
        let id = known(id)
        return switch change {
        case .put(let view): view.bytes.count
        case .patch(let view):
            view.bytes.count + ((router(id)?.ioContextJSON ?? directory.json(id))?.bytes.count ?? 0)
        }
    }

    /// Updates a context: a hosted one by a call of its router, another one over the network.
    ///
    /// - Parameters:
    ///   - timeout: the maximum time to wait for the router of another agent or gateway, in milliseconds.
    ///   - place: released when the Update event is written or given up.
    /// - Throws: ``Failure``, `PayloadError`, `CommunicationError`, ``Turns/Full``
    package func update(
        _ id: CoatyUUID,
        _ change: ContextChange,
        ifMatch: IfMatch?,
        timeout: Int,
        holding place: (any PublicationHolder)?
    ) async throws -> UpdatedContext {
        let id = known(id)
        guard let router = router(id) else {
            return try await turns.take(id) {
                try await request(id, change, ifMatch: ifMatch, timeout: timeout, holding: place)
            }
        }
        guard let cluster else {
            return try await update(router, id, change, ifMatch: ifMatch, mayDefer: true, holding: place)
        }
        let change = RoutingChange(id: id, content: .context(change), ifMatch: ifMatch, timeout: timeout)
        let (text, changes) = try await cluster.make(change)
        return UpdatedContext(context: try JSONDocument(text).root, changes: changes, isDeferred: false)
    }

    /// Updates a hosted context at this gateway.
    func update(
        _ router: HostedRouter,
        _ id: CoatyUUID,
        _ change: ContextChange,
        ifMatch: IfMatch?,
        mayDefer: Bool,
        holding place: (any PublicationHolder)?
    ) async throws -> UpdatedContext {
        try await turns.take(id) {
            let updated = try await router.updateIoContext(mayDefer: mayDefer, holding: place) { [self] current in
                try event(id, change, current, ifMatch: ifMatch)
            }
            // The gateway stops, or another one of the cluster leads the context now.
            guard let updated else { throw router.isSilent ? Failure.noSpeaker([]) : CommunicationError.offline }
            try await untilKept { try await router.keeping?.value }
            return UpdatedContext(context: updated.context, changes: updated.changes, isDeferred: updated.isDeferred)
        }
    }

    /// Replaces the rules of a hosted context.
    ///
    /// - Throws: ``Failure``, `EncodingError`, `CommunicationError`, ``Turns/Full``
    package func replaceRules(
        _ id: CoatyUUID,
        _ rules: [IoAssociationRule],
        ifMatch: IfMatch?
    ) async throws -> ReplacedRules {
        let id = known(id)
        guard let cluster, router(id) != nil else { return try await replaceRulesHere(id, rules, ifMatch: ifMatch) }
        let change = RoutingChange(id: id, content: .rules(rules), ifMatch: ifMatch, timeout: Self.rulesTimeout)
        let (text, changes) = try await cluster.make(change)
        return ReplacedRules(text: text, changes: changes, isDeferred: false)
    }

    /// Replaces the rules like ``replaceRules(_:_:ifMatch:)``, but at this gateway.
    func replaceRulesHere(
        _ id: CoatyUUID,
        _ rules: [IoAssociationRule],
        ifMatch: IfMatch?
    ) async throws -> ReplacedRules {
        let router = try hosted(id)
        // First: rules that JSON can't represent must not be applied.
        let text = try Self.json(rules)
        return try await turns.take(id) {
            let version = EntityTag(try Self.json(router.rules))
            if let ifMatch, !ifMatch.holds(for: version) { throw Failure.preconditionFailed(version) }
            let changes = await router.replaceRules(rules)
            guard router.changeHandler?() ?? true else { throw Failure.superseded }
            let isDeferred = !changes.isEmpty && !router.publishesNow
            try await untilKept { try await router.keep()?.value }
            return ReplacedRules(text: text, changes: changes, isDeferred: isDeferred)
        }
    }

    /// Applies the rules of a reloaded configuration, and discards the stored changes of the earlier rules.
    ///
    /// - Throws: if this can't be written to the state directory; then the rules are applied nevertheless. In a cluster,
    ///   ``NotAdopted``.
    package func reconfigure(_ configured: HostedContext) async throws {
        let router = try hosted(configured.objectId)
        guard cluster == nil else {
            router.reconfigure(configured)
            do {
                _ = try await replaceRules(configured.objectId, configured.rules, ifMatch: nil)
            } catch Failure.notKept {
                throw Failure.notKept
            } catch {
                throw NotAdopted(reason: error)
            }
            return
        }
        try await turns.take(configured.objectId) {
            router.reconfigure(configured)
            await router.replaceRules(configured.rules)
            try await router.keep()?.value
        }
    }

    /// Returns the changes that another context or other rules would make.
    package func evaluate(
        _ id: CoatyUUID,
        context: JSONView?,
        rules: [IoAssociationRule]?
    ) async throws -> IoAssociationChanges {
        let router = try hosted(id)
        let object = try context.map { view in
            try event(known(id), .put(view), router.ioContextJSON).data.object as? IoContext
        }
        return try await router.preview(ioContext: object ?? nil, rules: rules)
    }

    /// Returns the rules of a hosted context as JSON text.
    package func rules(_ id: CoatyUUID) throws -> [UInt8] { try Self.json(hosted(id).rules) }

    /// Explains why a source and an actor of a hosted context are associated or not.
    package func explain(_ id: CoatyUUID, source: CoatyUUID, actor: CoatyUUID) throws(Failure)
        -> IoAssociationExplanation
    {
        let router = try hosted(id)
        let source = source.spellings.first { router.ioSource($0) != nil } ?? source
        let actor = actor.spellings.first { router.ioActor($0) != nil } ?? actor
        guard let explanation = router.explain(ioSourceId: source, ioActorId: actor) else {
            let missing = router.ioSource(source) == nil ? "IO source \(source)" : "IO actor \(actor)"
            throw .notFound("The context has no \(missing).")
        }
        return explanation
    }

    /// Returns the JSON text of rules.
    package nonisolated static func json(_ rules: [IoAssociationRule]) throws -> [UInt8] {
        try PayloadCoder.encodeBytes(rules)
    }

    private func untilKept(_ keep: @ControllerActor () async throws -> Void) async throws(Failure) {
        do {
            try await keep()
        } catch {
            throw .notKept
        }
    }

    /// Returns the Update event for a change, if the current version meets the condition.
    private func event(
        _ id: CoatyUUID,
        _ change: ContextChange,
        _ current: JSONView?,
        ifMatch: IfMatch? = nil
    ) throws -> UpdateEvent {
        if let ifMatch {
            let version = current.map(EntityTag.init)
            guard ifMatch.holds(for: version) else { throw Failure.preconditionFailed(version) }
        }
        let object: [UInt8]
        switch change {
        case .put(let view): object = Array(view.bytes)
        case .patch(let patch):
            guard let current else { throw Failure.notFound("There is no IO context \(id).") }
            object = try PayloadCoder.encodeBytes(MergePatch.apply(AnyCodable(patch), to: AnyCodable(current)))
        }
        let event: UpdateEvent
        do {
            let payload = try Payload(object: object)
            // First, because another core type requires other properties.
            guard payload.json["object"]?["coreType"]?.string == CoreType.IoContext.rawValue else {
                throw PayloadError.invalid(pointer: "/object/coreType", reason: "must be IoContext")
            }
            event = try UpdateEvent(payload: payload)
            try check(event, id, current)
        } catch PayloadError.invalid(let pointer, let reason) {
            // The request body is the object itself.
            throw PayloadError.invalid(pointer: String(pointer.dropFirst("/object".count)), reason: reason)
        }
        return event
    }

    private func check(_ event: UpdateEvent, _ id: CoatyUUID, _ current: JSONView?) throws(PayloadError) {
        guard let object = event.payload.json["object"] else { return }
        guard object["objectId"]?.string == id.string else {
            throw .invalid(pointer: "/object/objectId", reason: "must be that of the path")
        }
        let name = object["name"]?.string.map(WireName.init)
        if let current, name != current["name"]?.string.map(WireName.init) {
            throw .invalid(pointer: "/object/name", reason: "can't be changed: IO nodes know the context by it")
        }
    }

    // MARK: - Contexts of other agents

    /// Requests the update of a context from its router.
    private func request(
        _ id: CoatyUUID,
        _ change: ContextChange,
        ifMatch: IfMatch?,
        timeout: Int,
        holding place: (any PublicationHolder)?
    ) async throws -> UpdatedContext {
        let event = try event(id, change, directory.json(id), ifMatch: ifMatch)
        let complete = try await firstComplete(to: event, within: .milliseconds(timeout), holding: place)
        guard let complete, let context = complete.payload.json["object"] else { throw Failure.noAnswer(timeout) }
        directory.takeCompleted(complete)
        return UpdatedContext(context: context, changes: nil, isDeferred: false)
    }

    /// - Returns: nil if no agent answers in time, or the gateway stops.
    /// - Throws: ``CommunicationError/offline`` if the connection is lost before an answer.
    private func firstComplete(
        to event: UpdateEvent,
        within time: Duration,
        holding place: (any PublicationHolder)?
    ) async throws -> CompleteEvent? {
        let (answers, continuation) = AsyncStream<CompleteEvent?>.makeStream(bufferingPolicy: .bufferingOldest(1))
        let request = try manager.publish(event, holding: place) {
            continuation.yield(nil)
        } handler: {
            continuation.yield($0)
        }
        let timer = Task {
            do {
                try await Task.sleep(for: time)
                continuation.finish()
            } catch {
                // Cancelled: the answer has arrived.
            }
        }
        defer {
            timer.cancel()
            request.cancel()
        }
        if request.delivery == .deferred, request.withdraw() { throw CommunicationError.offline }
        for await answer in answers {
            // A stop ends every request, whether it was sent or not.
            if answer == nil, looking?.isCancelled != true { throw CommunicationError.offline }
            return answer
        }
        return nil
    }
}
