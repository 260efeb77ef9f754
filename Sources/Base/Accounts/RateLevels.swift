import Synchronization

/// The levels of one client's buckets.
///
/// Each kind has one number: the time at which the bucket is full again. Therefore a rate can change meanwhile, and a
/// client needs only the buckets that it uses. Its lock is a leaf.
struct RateLevels: ~Copyable, Sendable {
    /// Maximum debt of a client, in nanoseconds of its rate.
    static let maximumDebt: Int64 = 60_000_000_000
    /// Maximum debt at which a client's next HTTP request is not delayed, in nanoseconds of its rate. A client whose
    /// streams have more to send than its rate allows always has a debt of about one event.
    static let requestCredit: Int64 = 1_000_000_000

    /// By kind, in nanoseconds; empty before the first use.
    private let full = Mutex<[Int64]>([])

    /// Takes an amount, or nothing if the bucket does not contain enough.
    ///
    /// - Parameter credit: the debt that is allowed afterwards, in nanoseconds of the rate.
    /// - Returns: the time until the bucket contains enough, in nanoseconds; nil if the amount is taken.
    func take(_ kind: Rate.Kind, _ amount: Int, at rate: Rate, credit: Int64 = 0, _ now: Int64) -> Int64? {
        full.withLock { full in
            let start = Self.start(full, kind, rate, now)
            let next = start + rate.nanoseconds(amount)
            let wait = next - rate.nanoseconds(rate.burst) - credit - now
            // Also stored if nothing is taken: a remainder from an earlier rate that exceeds this rate must not move
            // along with the time.
            Self.set(&full, kind, wait <= 0 ? next : start)
            return wait <= 0 ? nil : wait
        }
    }

    /// Takes an amount, even if the bucket does not contain enough.
    func spend(_ kind: Rate.Kind, _ amount: Int, at rate: Rate, _ now: Int64) {
        full.withLock { full in
            let next = Self.start(full, kind, rate, now) + rate.nanoseconds(amount)
            Self.set(&full, kind, min(next, Self.latest(kind, rate, now)))
        }
    }

    /// Returns whether all buckets are full.
    func isIdle(at now: Int64) -> Bool { full.withLock { $0.allSatisfy { $0 <= now } } }

    private static func start(_ full: [Int64], _ kind: Rate.Kind, _ rate: Rate, _ now: Int64) -> Int64 {
        guard !full.isEmpty else { return now }
        // After a change to a larger rate, no client is delayed for as long as the earlier rate required.
        return min(max(full[kind.rawValue], now), latest(kind, rate, now))
    }

    private static func latest(_ kind: Rate.Kind, _ rate: Rate, _ now: Int64) -> Int64 {
        now + rate.nanoseconds(rate.burst) + (kind.isBytes ? maximumDebt : 0)
    }

    private static func set(_ full: inout [Int64], _ kind: Rate.Kind, _ time: Int64) {
        if full.isEmpty { full = Rate.Kind.allCases.map { _ in .min } }
        full[kind.rawValue] = time
    }
}
