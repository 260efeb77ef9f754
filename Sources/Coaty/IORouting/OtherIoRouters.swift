import Logging
import Synchronization

/// Other agents that route the context of an IO router. They are reported, not fought: each goes on with what it decides.
final class OtherIoRouters: Sendable {
    /// How many are told apart.
    static let maximumCount = 100

    private let ownId: CoatyUUID
    private let ioContextName: String
    private let logger: Logger
    private let ids = Mutex<[CoatyUUID]>([])
    private let notes = DoublingCounter()

    init(ownId: CoatyUUID, ioContextName: String, logger: Logger) {
        self.ownId = ownId
        self.ioContextName = ioContextName
        self.logger = logger
    }

    var all: [CoatyUUID] { ids.withLock(\.self) }

    /// Notes who acts as a router of the context.
    func note(_ id: CoatyUUID?) {
        guard let id, id != ownId else { return }
        let isNew = ids.withLock { ids in
            guard !ids.contains(id), ids.count < Self.maximumCount else { return false }
            ids.append(id)
            return true
        }
        guard isNew, let count = notes.increment() else { return }
        logger.warning(
            "another agent routes this IO context too",
            metadata: [
                "context": "\(DropLog.short(ioContextName))", "agent": "\(DropLog.short(id.string))",
                "so far": "\(count)",
            ]
        )
    }

    func remove(_ gone: [CoatyUUID]) {
        ids.withLock { $0.removeAll(where: gone.contains) }
    }
}
