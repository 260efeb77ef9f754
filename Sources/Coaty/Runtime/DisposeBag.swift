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

    /// Ends all that is in the bag. What comes later is kept until the next time.
    public func dispose() {
        let disposables = state.withLock { state in
            defer { state.disposables = [:] }
            return state.disposables.values
        }
        for dispose in disposables { dispose() }
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
    /// Lets the bag cancel the task. A task that has ended leaves the bag.
    public func disposed(by bag: DisposeBag) {
        let id = bag.insert { cancel() }
        Task<Void, Never> { [weak bag] in
            _ = await result
            bag?.remove(id)
        }
    }
}

extension Subscription {
    /// Lets the bag end the observation.
    public func disposed(by bag: DisposeBag) {
        _ = bag.insert { [self] in cancel() }
    }
}

extension PendingRequest {
    /// Lets the bag end the request.
    public func disposed(by bag: DisposeBag) {
        _ = bag.insert { [self] in cancel() }
    }
}
