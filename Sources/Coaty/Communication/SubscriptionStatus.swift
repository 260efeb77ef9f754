import Synchronization

/// How a subscription stands with the broker.
public enum SubscriptionStatus: Sendable, Hashable {
    /// The broker has acknowledged it: from here on nothing is missed.
    case standing
    /// The link is down: what is published meanwhile does not come.
    case offline
    /// The broker has refused it: nothing comes, at least until the next connect, which asks again. Or the broker has cut the
    /// link upon it: then a connect asks again when some minutes have passed.
    case refused
}

/// Tells an observer how its subscription stands.
///
/// The first status may be told on the thread that subscribes, all others come on the binding's. So that the observer sees
/// one call at a time, the binding's thread waits where the first has not returned. What the observer knows is not told again.
final class StatusObserver: Sendable {
    private let onStatus: @Sendable (SubscriptionStatus) -> Void
    private let told = Mutex<SubscriptionStatus?>(nil)
    private let hasBegun = Atomic(false)
    private let beginning = Mutex(())

    init(_ onStatus: @escaping @Sendable (SubscriptionStatus) -> Void) {
        self.onStatus = onStatus
    }

    /// Adds the observer to those who are told, and tells the status that it found.
    ///
    /// - Returns: the observer's id.
    func begin(_ add: () -> (id: UInt64, status: SubscriptionStatus?)) -> UInt64 {
        // Nobody else knows this lock before the observer is added, so it is had at once, also by who holds locks.
        beginning.withLock { _ in
            let (id, status) = add()
            if let status { tellChange(status) }
            hasBegun.store(true, ordering: .releasing)
            return id
        }
    }

    /// Returns when the first status has been told, which the observer's other calls wait for.
    func awaitBeginning() {
        if !hasBegun.load(ordering: .acquiring) { beginning.withLock { _ in } }
    }

    /// To be called under no lock: the observer may subscribe, cancel and publish.
    func tell(_ status: SubscriptionStatus) {
        awaitBeginning()
        tellChange(status)
    }

    private func tellChange(_ status: SubscriptionStatus) {
        let isChange = told.withLock { told in
            defer { told = status }
            return told != status
        }
        if isChange { onStatus(status) }
    }
}
