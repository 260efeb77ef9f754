import Logging

/// Publishes what an IO router has decided, as far as its share of the outbox allows, and the rest as soon as there is room.
@ControllerActor
final class AssociatePublisher {
    /// How long to wait before the outbox is looked at again.
    static let outboxInterval = Duration.milliseconds(5)
    /// How long a stop waits until all has gone out.
    static let leavingTime = Duration.seconds(5)

    /// How a pair is at this moment; nil where it is not associated.
    typealias Association = (_ sourceId: CoatyUUID, _ actorId: CoatyUUID) -> (route: String, updateRate: Int?)?

    private let communicationManager: CommunicationManager
    private let ioContextName: String
    private let logger: Logger
    private let association: Association
    private var queue = AssociateQueue()
    private var publishing: Task<Void, any Error>?

    init(
        communicationManager: CommunicationManager,
        ioContextName: String,
        logger: Logger,
        association: @escaping Association
    ) {
        self.communicationManager = communicationManager
        self.ioContextName = ioContextName
        self.logger = logger
        self.association = association
    }

    var hasRoomForAction: Bool { queue.hasRoomForAction }

    func publish(_ changes: IoAssociationChanges) {
        for association in changes.removed { queue.append(association, isNew: false) }
        for association in changes.added { queue.append(association, isNew: true) }
        for association in changes.changed { queue.append(association, isNew: false) }
        drain()
    }

    /// Has something done when all that was to be published before has gone out.
    func append(_ action: @escaping () -> Void) {
        queue.append(action)
        drain()
    }

    /// Lets everything go out before the agent leaves, for a bounded time.
    func finish() async {
        publishing?.cancel()
        let deadline = ContinuousClock.now + Self.leavingTime
        while communicationManager.isConnected, .now < deadline {
            queue.drain(publish)
            if queue.isEmpty { return }
            try? await Task.sleep(for: Self.outboxInterval)
        }
    }

    private func drain() {
        queue.drain(publish)
        guard !queue.isEmpty, publishing == nil else { return }
        publishing = Task { [weak self] in
            while let self, !queue.isEmpty {
                try await Task.sleep(for: Self.outboxInterval)
                queue.drain(publish)
            }
            self?.publishing = nil
        }
    }

    /// Publishes how a pair is.
    ///
    /// - Returns: false where it has to wait.
    private func publish(_ pair: AssociateQueue.Pair, isKnown: Bool) -> Bool {
        let association = association(pair.sourceId, pair.actorId)
        // What came and went while it waited is nobody's business.
        guard isKnown || association != nil else { return true }
        let (queued, limits) = (communicationManager.queued, communicationManager.outboxLimits)
        guard queued.publications < min(AssociateQueue.maximumWaiting, limits.publications / 2),
            queued.bytes < limits.bytes / 2
        else { return false }
        do {
            try communicationManager.publishAssociate(
                .with(
                    ioContextName: ioContextName,
                    ioSourceId: pair.sourceId,
                    ioActorId: pair.actorId,
                    associatingRoute: association?.route,
                    isExternalRoute: association.map { communicationManager.isExternal($0.route, pair.sourceId) } ?? false,
                    updateRate: association?.updateRate
                )
            )
        } catch CommunicationError.queueFull {
            return false
        } catch {
            logger.error("an association could not be published", metadata: ["error": "\(error)"])
        }
        return true
    }
}
