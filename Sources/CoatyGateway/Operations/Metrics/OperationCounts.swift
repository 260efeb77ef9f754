import Access
import ProblemDetails
import Synchronization

/// The kind of an operation, for its counter: the verb, and the event or resource.
struct OperationKind: Sendable {
    let verb: Verb
    let pattern: AccessPattern
}

/// Counts the operations of clients by kind and outcome, from any thread and without a lock.
final class OperationCounts: Sendable {
    /// The outcome of an operation.
    enum Outcome: Int, CaseIterable {
        /// It was executed.
        case done
        /// It is not allowed, or its target does not exist for the client.
        case denied
        /// A limit is reached.
        case limited
        /// It could not be executed.
        case failed

        /// Creates the outcome of an operation whose execution has thrown an error.
        init(_ error: any Error) {
            switch (error as? Problem)?.status {
            case 429, 503: self = .limited
            default: self = .failed
            }
        }
    }

    private final class Cell: Sendable {
        let outcomes = InlineArray<4, Atomic<Int>> { _ in Atomic(0) }
    }

    /// By verb, then by pattern, in the order of `allCases`.
    private let cells = (0..<Verb.allCases.count * AccessPattern.allCases.count).map { _ in Cell() }

    func count(_ kind: OperationKind, _ outcome: Outcome) {
        let cell = cells[kind.verb.index * AccessPattern.allCases.count + kind.pattern.index]
        cell.outcomes[outcome.rawValue].add(1, ordering: .relaxed)
    }

    /// The operations that occurred.
    var all: [(kind: OperationKind, outcome: Outcome, count: Int)] {
        Verb.allCases.flatMap { verb in
            AccessPattern.allCases.flatMap { pattern in
                let cell = cells[verb.index * AccessPattern.allCases.count + pattern.index]
                return Outcome.allCases.compactMap { outcome in
                    let count = cell.outcomes[outcome.rawValue].load(ordering: .relaxed)
                    return count > 0 ? (OperationKind(verb: verb, pattern: pattern), outcome, count) : nil
                }
            }
        }
    }
}

extension Verb {
    /// The position in `allCases`.
    var index: Int {
        switch self {
        case .publish: 0
        case .request: 1
        case .observe: 2
        case .answer: 3
        case .read: 4
        case .route: 5
        case .register: 6
        case .administer: 7
        }
    }
}

extension AccessPattern {
    /// The position in `allCases`.
    var index: Int {
        switch self {
        case .advertise: 0
        case .deadvertise: 1
        case .channel: 2
        case .raw: 3
        case .iovalue: 4
        case .discover: 5
        case .query: 6
        case .update: 7
        case .call: 8
        case .associate: 9
        case .iostate: 10
        case .routing: 11
        case .traffic: 12
        case .objects: 13
        case .agents: 14
        case .nodes: 15
        case .contexts: 16
        case .status: 17
        case .info: 18
        case .identity: 19
        case .clients: 20
        case .gateway: 21
        }
    }
}
