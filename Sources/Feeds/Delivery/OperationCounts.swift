package import Access
import Base
import ProblemDetails
import Synchronization

/// The kind of an operation, for its counter: the verb, and the event or resource.
package struct OperationKind: Sendable, Hashable {
    package let verb: Verb
    package let pattern: AccessPattern

    package init(verb: Verb, pattern: AccessPattern) {
        self.verb = verb
        self.pattern = pattern
    }
}

/// Counts the operations of clients by kind and outcome, from any thread and without a lock.
package final class OperationCounts: Sendable {
    /// The outcome of an operation.
    package enum Outcome: Int, CaseIterable {
        /// It was executed. A request has received its last response, or was cancelled; a subscription had begun when the
        /// client ended it.
        case done
        /// It is not allowed, or its target does not exist for the client.
        case denied
        /// A limit is reached.
        case limited
        /// It could not be executed, or not to its end.
        case failed
        /// The connection has closed before the end of a request or the beginning of a subscription.
        case abandoned

        /// The outcome of an operation that ended with an error.
        package init(_ error: any Error) {
            let problem = error as? Problem
            switch problem?.status {
            case 401, 403, 404: self = .denied
            // Without the broker, no limit is reached.
            case 429, 503: self = problem?.type == Problems.connectionLost.type ? .failed : .limited
            default: self = .failed
            }
        }
    }

    private final class Cell: Sendable {
        let outcomes = InlineArray<5, Atomic<Int>> { _ in Atomic(0) }
    }

    /// In the order of `allCases`, by verb, then by pattern.
    private static let kinds = Verb.allCases.flatMap { verb in
        AccessPattern.allCases.map { OperationKind(verb: verb, pattern: $0) }
    }
    private let cells = Dictionary(uniqueKeysWithValues: kinds.map { ($0, Cell()) })

    package init() {}

    package func count(_ kind: OperationKind, _ outcome: Outcome) {
        guard let cell = cells[kind] else { return }
        cell.outcomes[outcome.rawValue].add(1, ordering: .relaxed)
    }

    /// The operations that occurred.
    package var all: [(kind: OperationKind, outcome: Outcome, count: Int)] {
        Self.kinds.flatMap { kind in
            Outcome.allCases.compactMap { outcome in
                let count = cells[kind]?.outcomes[outcome.rawValue].load(ordering: .relaxed) ?? 0
                return count > 0 ? (kind, outcome, count) : nil
            }
        }
    }
}
