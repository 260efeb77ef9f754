import Synchronization

/// How a subscription stands with the broker.
public enum SubscriptionStatus: Sendable, Hashable {
    /// The broker has acknowledged it: from here on no event is missed.
    case standing
    /// The agent is not connected: events that are published meanwhile do not arrive.
    case offline
    /// The broker refuses it: no events arrive. The agent asks again after each connect. If the broker closes the connection
    /// because of it, the binding asks again some minutes later.
    case refused
}

/// Reports to an observer how its subscription stands.
///
/// The first status may be reported on the thread that subscribes, all others on the binding's. The observer sees one call at a
/// time: the binding's thread waits until the first has returned. A status that the observer knows is not reported again.
final class StatusObserver: Sendable {
    private let onStatus: @Sendable (SubscriptionStatus) -> Void
    /// Whether the end of each connection is reported, also if the status was not known since the one before.
    private let reportsEachLoss: Bool
    private let reported = Mutex<SubscriptionStatus?>(nil)
    private let hasBegun = Atomic(false)
    private let beginning = Mutex(())

    init(reportsEachLoss: Bool, _ onStatus: @escaping @Sendable (SubscriptionStatus) -> Void) {
        self.reportsEachLoss = reportsEachLoss
        self.onStatus = onStatus
    }

    /// Adds the observer by a function that returns the present status, and reports that.
    func begin(_ add: () -> SubscriptionStatus?) {
        // Nobody else knows this lock before the observer is added, so it is free, also for a caller that holds locks.
        beginning.withLock { _ in
            if let status = add() { reportChange(status) }
            hasBegun.store(true, ordering: .releasing)
        }
    }

    /// Returns when the first status has been reported, which the observer's other calls wait for.
    func awaitBeginning() {
        if !hasBegun.load(ordering: .acquiring) { beginning.withLock { _ in } }
    }

    /// Reports a status. To be called under no lock: the observer may subscribe, cancel and publish.
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
