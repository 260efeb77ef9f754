import DequeModule
import Synchronization

/// Reports the status of an observation that has its own session.
///
/// While the session connects for the first time, nothing is reported, for at most ``timeout``.
final class OpeningStatus: Sendable {
    /// Maximum time until the session is connected. After that, events count as missed: a broker may accept one client
    /// and refuse another.
    static let timeout = Duration.seconds(10)

    private struct State {
        /// The last known status; nil at first.
        var status: SubscriptionStatus?
        /// Status changes that are not yet reported, in order.
        var unreported: Deque<SubscriptionStatus> = []
        /// Whether a thread is reporting them.
        var isReporting = false
        var deadline: Deadline?
    }

    private let onStatus: @Sendable (SubscriptionStatus) -> Void
    private let state = Mutex(State())
    private let hasEnded = Atomic(false)

    init(_ onStatus: @escaping @Sendable (SubscriptionStatus) -> Void) {
        self.onStatus = onStatus
        let deadline = Deadline(after: Self.timeout) { [weak self] in self?.waitNoLonger() }
        state.withLock { $0.deadline = deadline }
    }

    /// Handles a status of the subscription.
    ///
    /// - Parameter isOpening: whether the session has never been connected; then `offline` is not reported.
    func take(_ status: SubscriptionStatus, isOpening: Bool) {
        settle { $0.status == nil && status == .offline && isOpening ? nil : status }
    }

    /// Reports that the observation is offline if no status is known by now.
    func waitNoLonger() {
        settle { $0.status == nil ? .offline : nil }
    }

    /// Stops reporting.
    func end() {
        hasEnded.store(true, ordering: .releasing)
        state.withLock { $0.deadline = nil }
    }

    /// Updates the status and reports it if it has changed.
    ///
    /// The observer is called under no lock: it may end the observation or begin another one. It gets one call at a
    /// time and the changes in order: a second thread leaves its report to the thread that is already reporting.
    private func settle(_ body: (inout State) -> SubscriptionStatus?) {
        let mustReport = state.withLock { state in
            guard let status = body(&state), state.status != status else { return false }
            state.status = status
            state.unreported.append(status)
            defer { state.isReporting = true }
            return !state.isReporting
        }
        guard mustReport else { return }
        while let status = nextUnreported() { if !hasEnded.load(ordering: .acquiring) { onStatus(status) } }
    }

    private func nextUnreported() -> SubscriptionStatus? {
        state.withLock { state in
            state.isReporting = !state.unreported.isEmpty
            return state.unreported.popFirst()
        }
    }
}
