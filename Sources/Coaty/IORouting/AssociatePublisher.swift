import Logging

/// Publishes the associations of an IO router in order, as far as the router's share of the outbox allows.
///
/// While the share is full, it waits for the outbox to have room.
actor AssociatePublisher {
    /// Maximum number of publications in the outbox with which the router adds further ones. Its share is at most half of
    /// the outbox; the rest is for others.
    static let maximumShare = 1_000
    /// How long ``finish()`` waits.
    static let leavingTime = Duration.seconds(5)
    /// How many associations are published in one go; then other work on the executor has its turn.
    static let batchSize = 256

    /// The current state of a pair; nil if it is not associated.
    typealias Association =
        @Sendable (_ sourceId: CoatyUUID, _ actorId: CoatyUUID) -> (route: String, updateRate: Int?)?

    /// Publications and bytes in the outbox below which to go on.
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
    private var room: Subscription?
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

    /// Publishes changes, or queues what has no room in the outbox.
    ///
    /// - Parameter association: the state after the changes. It holds until the next call.
    func publish(_ changes: IoAssociationChanges, as association: @escaping Association) async {
        self.association = association
        queue.append(changes)
        await drain()
    }

    /// Runs an action when everything before it was published.
    func append(_ action: @escaping @Sendable () -> Void) async {
        queue.append(action)
        await drain()
    }

    /// Waits until everything is published, the connection is lost, or ``leavingTime`` has passed.
    func finish() async {
        // What is queued without a connection is discarded when the agent leaves.
        guard communicationManager.isConnected else { return }
        await drain()
        guard !queue.isEmpty else { return }
        let (emptied, continuation) = AsyncStream.makeStream(of: Void.self)
        untilEmpty = continuation
        // The subscription that every agent has goes with the connection.
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

    /// Publishes from the queue until it is empty or the outbox has no room.
    private func drain() async {
        var missing: Room?
        while !queue.isEmpty, missing == nil {
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
            untilEmpty?.finish()
            return
        }
        room = communicationManager.whenRoom(below: missing.publications, bytes: missing.bytes) { [weak self] in
            Task { await self?.drain() }
        }
    }

    /// Publishes the state of a pair.
    ///
    /// - Returns: nil if it is done; else the room that it needs first.
    private func publish(_ pair: AssociateQueue.Pair, isKnown: Bool) -> Room? {
        let association = association(pair.sourceId, pair.actorId)
        // A pair that was associated and dissolved while it was queued is nobody's concern.
        guard isKnown || association != nil else { return nil }
        let queued = communicationManager.queued
        guard queued.publications < share.publications, queued.bytes < share.bytes else {
            // Goes on when half of the share is free, not for each publication that leaves the outbox.
            return (max(share.publications / 2, 1), max(share.bytes / 2, 1))
        }
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
            // Others have filled the outbox. A publication must leave it before there is more room than now.
            return (min(share.publications, publications), share.bytes)
        } catch {
            logger.error("an association could not be published", metadata: ["error": "\(error)"])
        }
        return nil
    }
}
