import Base
import Network
import ProblemDetails
import Synchronization

/// Charges clients for the versions of objects that only their unread snapshots still reference, because they were
/// replaced or removed since.
///
/// Otherwise a client that does not read could keep a whole version of the object registry in memory for each of its
/// snapshots. If its account has no memory for these versions, the rest of the snapshot is dropped, with a gap.
final class SnapshotPins: Job {
    /// The bytes of replaced objects after which the charges are updated.
    private static let interval = 1 << 20
    /// The bytes that a snapshot needs for each object in its list.
    private static let bytesPerObject = 16

    private struct Weak {
        weak var pin: SnapshotPin?
    }

    private struct State {
        var pins: [Weak] = []
        /// The number of pins at which released ones are removed.
        var sweep = 64
    }

    let ticket = JobTicket(isUrgent: false)
    private let workers: WorkerPool
    private let state = Mutex(State())
    /// The bytes of all objects that were replaced or removed so far.
    private let replaced = Atomic(0)

    init(workers: WorkerPool) { self.workers = workers }

    /// Charges a subscription for its snapshot of some content, until the pin is released.
    ///
    /// - Throws: `Problem` with status 429 or 503 if there is no memory for it.
    func pin(_ content: RegisteredObjects, for subscription: ClientSubscription) throws(Problem) -> SnapshotPin {
        let count = content.listed.count
        let pin = SnapshotPin(
            charge: try subscription.charged(count * Self.bytesPerObject),
            maximum: content.listed.bytes + count * Limits.bytesPerObject,
            since: replaced.load(ordering: .relaxed),
            subscription
        )
        state.withLock { state in
            if state.pins.count >= state.sweep {
                state.pins.removeAll { $0.pin == nil }
                state.sweep = max(64, 2 * state.pins.count)
            }
            state.pins.append(Weak(pin: pin))
        }
        return pin
    }

    /// Counts the version that a change has replaced or removed. Call it for every change.
    func note(_ change: ObjectChange) {
        guard let object = change.kind == .removed ? change.object : change.previous else { return }
        let bytes = object.size + Limits.bytesPerObject
        let (before, now) = replaced.add(bytes, ordering: .relaxed)
        if before / Self.interval != now / Self.interval { workers.schedule(self) }
    }

    func turn() -> TurnEnd {
        let pins = state.withLock { state in
            state.pins.removeAll { $0.pin == nil }
            return state.pins.compactMap(\.pin)
        }
        let replaced = replaced.load(ordering: .relaxed)
        for pin in pins { pin.update(replaced) }
        return .idle
    }
}

/// The charge for one snapshot, which keeps it as long as it has unread objects.
final class SnapshotPin: Sendable {
    private let charge: Charge
    private let list: Int
    /// The size of all objects of the snapshot.
    private let maximum: Int
    private let since: Int
    private weak let subscription: ClientSubscription?

    fileprivate init(charge: Charge, maximum: Int, since: Int, _ subscription: ClientSubscription) {
        self.charge = charge
        list = charge.bytes
        self.maximum = maximum
        self.since = since
        self.subscription = subscription
    }

    /// Charges for all versions that were replaced up to now. Only one thread at a time may call it.
    fileprivate func update(_ replaced: Int) {
        if !charge.resize(to: list + min(maximum, replaced - since)) { subscription?.discardSnapshot() }
    }
}
