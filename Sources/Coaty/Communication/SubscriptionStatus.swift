import Synchronization

/// The broker's status of a subscription.
public enum SubscriptionStatus: Sendable, Hashable {
    /// The broker has acknowledged it: from now on, no event is missed.
    case standing
    /// The agent is not connected: it does not receive events that are published meanwhile.
    case offline
    /// The broker refuses it: no events arrive. The agent requests it again after each connect. If the broker closes
    /// the connection because of it, the binding requests it again some minutes later.
    case refused
}

/// Reports the status of a subscription to its observer.
///
/// The first status may be reported on the thread that subscribes, all others on the binding's thread. The observer
/// gets one call at a time: the binding's thread waits until the first call has returned. An unchanged status is not
/// reported again.
final class StatusObserver: Sendable {
    private let onStatus: @Sendable (SubscriptionStatus) -> Void
    /// Whether the end of each connection is reported, even if the status was not known since the previous end.
    private let reportsEachLoss: Bool
    private let reported = Mutex<SubscriptionStatus?>(nil)
    private let hasBegun = Atomic(false)
    private let beginning = Mutex(())

    init(reportsEachLoss: Bool, _ onStatus: @escaping @Sendable (SubscriptionStatus) -> Void) {
        self.reportsEachLoss = reportsEachLoss
        self.onStatus = onStatus
    }

    /// Calls `add`, which adds the observer and returns the current status, and reports that status.
    func begin(_ add: () -> SubscriptionStatus?) {
        // Before the observer is added, only this thread knows the lock, so it is free even if the caller holds other
        // locks.
        beginning.withLock { _ in
            if let status = add() { reportChange(status) }
            hasBegun.store(true, ordering: .releasing)
        }
    }

    /// Waits until the first status has been reported. All other calls of the observer wait for this.
    func awaitBeginning() {
        if !hasBegun.load(ordering: .acquiring) { beginning.withLock { _ in } }
    }

    /// Reports a status. Call it under no lock: the observer may subscribe, cancel and publish.
    func report(_ status: SubscriptionStatus) {
        awaitBeginning()
        reportChange(status)
    }

    private func reportChange(_ status: SubscriptionStatus) {
        let isChange = reported.withLock { reported in
            defer { reported = status }
            return reported != status || reportsEachLoss && status == .offline
        }
        if isChange { onStatus(status) }
    }
}
