import Access
import Base
import ProblemDetails
import Synchronization

/// A subscription or a request of a client that the gate has allowed, until its end.
///
/// Its places and its memory are reserved before it starts, because the status of a stream can't change after its first
/// byte. It releases them when it ends, or when it is dropped without having started.
protocol Activity: AnyObject, Sendable {
    /// The operation on which the gate decides again.
    var operation: any ControlledOperation { get }
    var outcome: ActivityOutcome { get }

    /// Applies a new decision: the client may see another part of the events or responses from now on.
    func apply(_ permit: Permit)

    /// Ends with a problem, because the operation is no longer allowed.
    func refuse(_ problem: Problem)

    /// Ends, because the client no longer wants it or has received its end. Can be called several times.
    func end()
}

/// An operation whose execution lasts. It is audited only if it is denied, because it changes nothing by itself.
protocol LastingOperation: ControlledOperation {
    associatedtype Lasting: Activity

    /// Reserves what the activity needs.
    ///
    /// - Parameters:
    ///   - permit: the proof that it is allowed.
    ///   - client: the client to which it belongs.
    func open(
        on target: Target,
        in network: NetworkParts,
        under permit: Permit,
        for client: GateClient,
        _ outcome: ActivityOutcome
    ) throws -> Lasting
}

/// Counts the outcome of an activity once, before the client can see it. An activity that has none when it is released
/// counts as abandoned.
final class ActivityOutcome: Sendable {
    private let kind: OperationKind
    private let counts: OperationCounts
    private let isCounted = Atomic(false)

    init(_ kind: OperationKind, _ counts: OperationCounts) {
        self.kind = kind
        self.counts = counts
    }

    deinit { set(.abandoned) }

    /// Counts an outcome. Only the first call counts.
    func set(_ outcome: OperationCounts.Outcome) {
        guard !isCounted.exchange(true, ordering: .relaxed) else { return }
        counts.count(kind, outcome)
    }
}

extension OperationCounts.Outcome {
    /// The outcome of an activity that ended with a reason.
    init(_ reason: ServerFrame.EndReason) {
        self =
            switch reason {
            case .limit, .timeout, .until, .cancelled, .withdrawn: .done
            case .overflow: .limited
            case .offline: .failed
            }
    }
}
