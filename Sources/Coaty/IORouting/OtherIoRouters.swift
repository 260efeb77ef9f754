import Logging
import Synchronization

/// Other agents that route the context of an IO router. They are only reported: each router keeps its own decisions.
final class OtherIoRouters: Sendable {
    /// Maximum number of routers that are distinguished.
    static let maximumCount = 100

    private let ownId: CoatyUUID
    private let ioContextName: String
    private let warns: Bool
    private let logger: Logger
    private let period: @Sendable () -> Int?
    private let state = Mutex(State())
    private let notes = DoublingCounter()

    private struct State {
        var routers: [(id: CoatyUUID, lastPeriod: Int?)] = []
        var joined: Int?
    }

    /// - Parameters:
    ///   - warns: whether each new router is logged.
    ///   - period: returns the current online period; nil while the agent is offline.
    init(
        ownId: CoatyUUID,
        ioContextName: String,
        warns: Bool = true,
        logger: Logger,
        period: @escaping @Sendable () -> Int?
    ) {
        self.ownId = ownId
        self.ioContextName = ioContextName
        self.warns = warns
        self.logger = logger
        self.period = period
    }

    var all: [CoatyUUID] { state.withLock { $0.routers.map(\.id) } }

    /// The routers that were seen since the agent was last offline: while it is offline, departures are not reported.
    var confirmed: [CoatyUUID] {
        state.withLock { state in
            state.routers.filter { router in
                guard let joined = state.joined, let lastPeriod = router.lastPeriod else { return false }
                return lastPeriod >= joined
            }
            .map(\.id)
        }
    }

    /// Records that an online period has begun.
    func join(_ period: Int) { state.withLock { $0.joined = period } }

    /// Records an agent that acts as a router of the context.
    func note(_ id: CoatyUUID?) {
        guard let id, id != ownId else { return }
        let period = period()
        let isNew = state.withLock { state in
            if let index = state.routers.firstIndex(where: { $0.id == id }) {
                state.routers[index].lastPeriod = period
                return false
            }
            guard state.routers.count < Self.maximumCount else { return false }
            state.routers.append((id, period))
            return true
        }
        if isNew, warns { warn(of: id) }
    }

    /// Logs that an agent routes the context; occurrences 1, 2, 4, 8….
    func warn(of id: CoatyUUID) {
        guard let count = notes.increment() else { return }
        logger.warning(
            "another agent routes this IO context too",
            metadata: [
                "context": "\(DropLog.short(ioContextName))", "agent": "\(DropLog.short(id.string))",
                "so far": "\(count)",
            ]
        )
    }

    /// Removes the routers that have left.
    func remove(_ data: DeadvertiseEventData) {
        let known = state.withLock { $0.routers.map(\.id) }
        guard !known.isEmpty else { return }
        let gone = Set(data.objectIds(among: known.count) { NameFilter(known.lazy.map(\.string)) })
        state.withLock { $0.routers.removeAll { gone.contains($0.id) } }
    }
}
