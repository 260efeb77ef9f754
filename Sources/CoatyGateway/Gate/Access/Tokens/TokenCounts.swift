import Synchronization

/// Counts the tokens of an identity provider by outcome, from any thread and without a lock. A connection presents its
/// token once.
final class TokenCounts: Sendable {
    enum Outcome: String, CaseIterable {
        case accepted
        case invalid
        case expired
        /// No keys were loaded yet.
        case keysNotLoaded = "keys_not_loaded"
        /// No key matched, and the keys were about to be fetched again.
        case keyUnknown = "key_unknown"

        init(_ refusal: TokenVerifier.Refusal) {
            switch refusal {
            case .invalid: self = .invalid
            case .expired: self = .expired
            case .keysNotLoaded: self = .keysNotLoaded
            case .keyUnknown: self = .keyUnknown
            }
        }

        fileprivate var index: Int {
            switch self {
            case .accepted: 0
            case .invalid: 1
            case .expired: 2
            case .keysNotLoaded: 3
            case .keyUnknown: 4
            }
        }
    }

    private let counts = InlineArray<5, Atomic<Int>> { _ in Atomic(0) }

    func count(_ outcome: Outcome) { counts[outcome.index].add(1, ordering: .relaxed) }

    /// The count of each outcome.
    var all: [(outcome: Outcome, count: Int)] {
        Outcome.allCases.map { ($0, counts[$0.index].load(ordering: .relaxed)) }
    }
}
