import Synchronization

/// Counts the tokens of an identity provider by outcome, from any thread and without a lock. A connection presents its
/// token once.
package final class TokenCounts: Sendable {
    package enum Outcome: String, CaseIterable {
        case accepted
        case invalid
        case expired
        case notYetValid = "not_yet_valid"
        /// No keys were loaded yet.
        case keysNotLoaded = "keys_not_loaded"
        /// No key matched, and the keys were about to be fetched again.
        case keyUnknown = "key_unknown"

        init(_ refusal: TokenVerifier.Refusal) {
            switch refusal {
            case .invalid: self = .invalid
            case .expired: self = .expired
            case .notYetValid: self = .notYetValid
            case .keysNotLoaded: self = .keysNotLoaded
            case .keyUnknown: self = .keyUnknown
            }
        }

        fileprivate var index: Int {
            switch self {
            case .accepted: 0
            case .invalid: 1
            case .expired: 2
            case .notYetValid: 3
            case .keysNotLoaded: 4
            case .keyUnknown: 5
            }
        }
    }

    private let counts = InlineArray<6, Atomic<Int>> { _ in Atomic(0) }

    package func count(_ outcome: Outcome) { counts[outcome.index].add(1, ordering: .relaxed) }

    /// The count of each outcome.
    package var all: [(outcome: Outcome, count: Int)] {
        Outcome.allCases.map { ($0, counts[$0.index].load(ordering: .relaxed)) }
    }
}
