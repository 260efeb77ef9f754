import Logging

/// Publishes the associations of an IO router in order, within the router's share of the outbox.
///
/// While the share is full, the publisher waits for free space in the outbox.
actor AssociatePublisher {
    /// Maximum number of publications in the outbox at which the router still adds further ones. The share is at most
    /// half of the outbox; the rest is for other publishers.
    static let maximumShare = 1_000
    /// Maximum time that ``finish()`` waits.
    static let leavingTime = Duration.seconds(5)
    /// Maximum number of associations that are published before other work on the executor gets a turn.
    static let batchSize = 256

    /// The current state of a pair; nil if it is not associated.
    typealias Association =
        @Sendable (_ sourceId: CoatyUUID, _ actorId: CoatyUUID) -> (route: String, updateRate: Int?)?

    /// The numbers of publications and bytes in the outbox below which publishing continues.
    private typealias Room = (publications: Int, bytes: Int)

    nonisolated let executor: RoutingExecutor
    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    private let communicationManager: CommunicationManager
    private let ioContextName: String
    private let logger: Logger
    private let clock: any Clock<Duration>
    private let share: Room
    private var association: Association = { _, _ in nil }
    private var queue = AssociateQueue()
    private var missed = MissedDissolutions()
    private var room: Subscription?
    /// The online period that the router has joined; nil if none.
    private var period: Int?
    /// Whether the agent leaves, so that an online period need not be joined any more.
    private var isFinishing = false
    /// Finished when the queue is empty, or the connection is lost.
    private var untilEmpty: AsyncStream<Void>.Continuation?

    init(
        communicationManager: CommunicationManager,
        ioContextName: String,
        logger: Logger,
        executor: RoutingExecutor,
        clock: any Clock<Duration> = ContinuousClock()
    ) {
        self.communicationManager = communicationManager
        self.ioContextName = ioContextName
        self.logger = logger
        self.executor = executor
        self.clock = clock
        let limits = communicationManager.outboxLimits
        share = (max(min(Self.maximumShare, limits.publications / 2), 1), max(limits.bytes / 2, 1))
    }

    var hasRoomForAction: Bool { queue.hasRoomForAction }

    /// Publishes changes, or queues those that the outbox has no space for.
    ///
    /// - Parameters:
    ///   - points: IO points whose agent has returned. The dissolutions that it may have missed are published too.
    ///   - isAway: returns whether the agent of an IO point is not online; nil if that is not known.
    ///   - association: returns the state after the changes. It is valid until the next call.
    func publish(
        _ changes: IoAssociationChanges,
        missedBy points: [CoatyUUID] = [],
        isAway: ((CoatyUUID) -> Bool)? = nil,
        as association: @escaping Association
    ) async {
        self.association = association
        if let isAway { missed.age(at: .now, inPeriod: communicationManager.onlinePeriod, isAway: isAway) }
        for pair in missed.pairs(of: points) where association(pair.sourceId, pair.actorId) == nil {
            queue.append(dissolved: pair)
        }
        queue.append(changes)
        await drain()
    }

    /// Records changes that another router publishes.
    func note(_ changes: IoAssociationChanges, isAway: (CoatyUUID) -> Bool) {
        missed.age(at: .now, inPeriod: communicationManager.onlinePeriod, isAway: isAway)
        for association in changes.removed.suffix(IoRouter.maximumMissedDissolutions) {
            missed.note(.init(sourceId: association.ioSourceId, actorId: association.ioActorId))
        }
        for association in changes.added {
            missed.forget(.init(sourceId: association.ioSourceId, actorId: association.ioActorId))
        }
    }

    /// Runs an action after everything queued before it was published.
    func append(_ action: @escaping @Sendable () -> Void) async {
        queue.append(action)
        await drain()
    }

    /// Waits until everything is published, the connection is lost, or ``leavingTime`` has passed.
    func finish() async {
        isFinishing = true
        defer { isFinishing = false }
        // Publications that are queued without a connection are discarded when the agent leaves.
        guard mayPublish else { return }
        await drain()
        guard !queue.isEmpty else { return }
        let (emptied, continuation) = AsyncStream.makeStream(of: Void.self)
        untilEmpty = continuation
        // This subscription, which every agent has, goes offline when the connection is lost.
        let connection = communicationManager.subscribe(.discover) { status in
            if status == .offline { continuation.finish() }
        } handler: { _ in
        }
        defer { connection.cancel() }
        await withTaskGroup { [clock] group in
            group.addTask { for await _ in emptied {} }
            group.addTask { try? await clock.sleep(for: Self.leavingTime) }
            await group.next()
            group.cancelAll()
        }
        room = nil
    }

    /// Discards everything that is queued.
    func discard() {
        queue = AssociateQueue()
        room = nil
    }

    /// Publishes what was queued before the router has joined an online period.
    func resume(in period: Int) async {
        self.period = period
        await drain()
    }

    private var mayPublish: Bool {
        if isFinishing { return communicationManager.isConnected }
        return period != nil && period == communicationManager.onlinePeriod
    }

    /// Publishes from the queue until it is empty or the outbox has no space. Until the router has joined the online
    /// period, the queue keeps the last state of each pair.
    private func drain() async {
        var missing: Room?
        while mayPublish, !queue.isEmpty, missing == nil {
            var left = Self.batchSize
            queue.drain { pair, isKnown in
                guard left > 0 else { return false }
                left -= 1
                missing = publish(pair, isKnown: isKnown)
                return missing == nil
            }
            if left == 0 { await Task.yield() }
        }
        guard let missing else {
            if queue.isEmpty { untilEmpty?.finish() }
            return
        }
        room = communicationManager.whenRoom(below: missing.publications, bytes: missing.bytes) { [weak self] in
            Task { await self?.drain() }
        }
    }

    /// Publishes the state of a pair.
    ///
    /// - Returns: nil if it is done; otherwise the space that it needs first.
    private func publish(_ pair: AssociateQueue.Pair, isKnown: Bool) -> Room? {
        let association = association(pair.sourceId, pair.actorId)
        // Other agents never saw a pair that was associated and dissolved while it was queued.
        guard isKnown || association != nil else { return nil }
        let queued = communicationManager.queued
        guard queued.publications < share.publications, queued.bytes < share.bytes else {
            // Continues when half of the share is free, rather than for each publication that leaves the outbox.
            return (max(share.publications / 2, 1), max(share.bytes / 2, 1))
        }
        if association == nil { missed.note(pair) } else { missed.forget(pair) }
        do {
            try communicationManager.publishAssociate(
                .with(
                    ioContextName: ioContextName,
                    ioSourceId: pair.sourceId,
                    ioActorId: pair.actorId,
                    associatingRoute: association?.route,
                    isExternalRoute: association.map { communicationManager.isExternal($0.route, pair.sourceId) }
                        ?? false,
                    updateRate: association?.updateRate
                )
            )
        } catch CommunicationError.queueFull(let publications, _) where publications > 0 {
            // Other publishers have filled the outbox. Space becomes free only when a publication leaves it.
            return (min(share.publications, publications), share.bytes)
        } catch {
            logger.error("an association could not be published", metadata: ["error": "\(error)"])
        }
        return nil
    }
}
