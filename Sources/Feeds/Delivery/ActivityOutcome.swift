import Synchronization

/// Counts the outcome of an activity once, before the client can see it. An activity that has none when it is released
/// counts as abandoned.
package final class ActivityOutcome: Sendable {
    private let kind: OperationKind
    private let counts: OperationCounts
    private let isCounted = Atomic(false)

    package init(_ kind: OperationKind, _ counts: OperationCounts) {
        self.kind = kind
        self.counts = counts
    }

    deinit { set(.abandoned) }

    /// Counts an outcome. Only the first call counts.
    package func set(_ outcome: OperationCounts.Outcome) {
        guard !isCounted.exchange(true, ordering: .relaxed) else { return }
        counts.count(kind, outcome)
    }
}

extension OperationCounts.Outcome {
    /// The outcome of an activity that ended with a reason.
    package init(_ reason: ServerFrame.EndReason) {
        self =
            switch reason {
            case .limit, .timeout, .until, .cancelled, .withdrawn: .done
            case .overflow: .limited
            case .offline: .failed
            }
    }
}
