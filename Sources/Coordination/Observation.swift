import Synchronization

/// An observer in a coordinator's list; see ``AnyCoordinator/observe(_:)``.
///
/// Releasing it has no effect: the observer stays until ``cancel()``, or as long as the coordinator exists.
public final class Observation: Sendable {
    private let list: ObserverList
    private let id: UInt64

    fileprivate init(list: ObserverList, id: UInt64) {
        self.list = list
        self.id = id
    }

    /// Removes the observer. A call to it on another thread may still be running.
    public func cancel() {
        list.remove(id)
    }
}

/// The observers of one coordinator, in the order in which they were added.
final class ObserverList: Sendable {
    typealias Observer = @Sendable (CoordinatorChange) -> Void

    private struct State {
        var nextID: UInt64 = 0
        var observers: [(id: UInt64, observer: Observer)] = []
    }

    private let state = Mutex(State())

    func add(_ observer: @escaping Observer) -> Observation {
        state.withLock { state in
            let id = state.nextID
            state.nextID += 1
            state.observers.append((id, observer))
            return Observation(list: self, id: id)
        }
    }

    func remove(_ id: UInt64) {
        state.withLock { $0.observers.removeAll { $0.id == id } }
    }

    /// Calls the observers outside the lock, so that they may add and cancel observations.
    func notify(_ change: CoordinatorChange) {
        for (_, observer) in state.withLock({ $0.observers }) { observer(change) }
    }
}
