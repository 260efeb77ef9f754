import Synchronization

/// Observations and tasks that end together.
public final class DisposeBag: Sendable {
    private struct State {
        var disposables: [UInt64: @Sendable () -> Void] = [:]
        var lastId: UInt64 = 0
    }

    private let state = Mutex(State())

    /// Creates an empty bag.
    public init() {}

    deinit { dispose() }

    /// Number of observations and tasks in the bag.
    var count: Int { state.withLock(\.disposables.count) }

    /// Ends everything in the bag. Observations and tasks that are added later are kept until the next call.
    public func dispose() {
        let disposables = state.withLock { state in
            defer { state.disposables = [:] }
            return state.disposables.values
        }
        for dispose in disposables { dispose() }
    }

    /// Keeps an observation or a request until it ends.
    fileprivate func keep(_ object: some AnyObject & Sendable, until ending: Ending) {
        let id = insert { withExtendedLifetime(object) { ending.reach() } }
        ending.append { [weak self] in self?.remove(id) }
    }

    fileprivate func insert(_ dispose: @escaping @Sendable () -> Void) -> UInt64 {
        state.withLock { state in
            state.lastId += 1
            state.disposables[state.lastId] = dispose
            return state.lastId
        }
    }

    fileprivate func remove(_ id: UInt64) {
        let removed = state.withLock { $0.disposables.removeValue(forKey: id) }
        withExtendedLifetime(removed) {}
    }
}

extension Task {
    /// Adds the task to a bag, which cancels it. A task that has ended is removed from the bag.
    public func disposed(by bag: DisposeBag) {
        let id = bag.insert { cancel() }
        Task<Void, Never> { [weak bag] in
            _ = await result
            bag?.remove(id)
        }
    }
}

extension Subscription {
    /// Adds the observation to a bag, which ends it. An observation that is cancelled is removed from the bag.
    public func disposed(by bag: DisposeBag) { bag.keep(self, until: ending) }
}

extension PendingRequest {
    /// Adds the request to a bag, which ends it. A request that is cancelled is removed from the bag.
    public func disposed(by bag: DisposeBag) { bag.keep(self, until: ending) }
}
