import DequeModule
import Synchronization

/// Reports how an observation stands whose session is opened for it.
///
/// While the session connects for the first time, nothing is reported, for at most ``timeout``.
final class OpeningStatus: Sendable {
    /// How long the session may take until it stands; then events count as missed: a broker may let one client in and not another.
    static let timeout = Duration.seconds(10)

    private struct State {
        /// nil until it is known.
        var status: SubscriptionStatus?
        /// Changes of status that are to be reported, in order.
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

    /// Takes a status of the subscription.
    ///
    /// - Parameter isOpening: whether the session has never been connected: then it is no news that it is offline.
    func take(_ status: SubscriptionStatus, isOpening: Bool) {
        settle { $0.status == nil && status == .offline && isOpening ? nil : status }
    }

    /// Reports that the observation is offline if nothing is known by now.
    func waitNoLonger() {
        settle { $0.status == nil ? .offline : nil }
    }

    /// Reports nothing more.
    func end() {
        hasEnded.store(true, ordering: .releasing)
        state.withLock { $0.deadline = nil }
    }

    /// Notes how the observation stands, and reports it if that is a change.
    ///
    /// The observer is called under no lock: it may end the observation, or begin another. It sees one call at a time and the
    /// changes in their order: a thread that comes meanwhile leaves the next report to the one that reports.
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
