import Synchronization

/// How full the buckets of one client are.
///
/// For each kind it is one number: the time at which the bucket is full again. So a rate can change meanwhile, and a client has only
/// as many buckets as something was taken from. Its lock is a leaf.
struct RateLevels: ~Copyable, Sendable {
    /// The most that a client can owe, in nanoseconds of its rate.
    static let maximumDebt: Int64 = 60_000_000_000
    /// What a client may owe without waiting for its next HTTP request, in nanoseconds of its rate. A client whose streams have more to send
    /// than its rate allows always owes about one event.
    static let requestCredit: Int64 = 1_000_000_000

    /// By kind, in nanoseconds; empty before anything is taken.
    private let full = Mutex<[Int64]>([])

    /// Takes an amount, or nothing if there is not as much.
    ///
    /// - Parameter credit: what may be owed after it, in nanoseconds of the rate.
    /// - Returns: the time until there is as much, in nanoseconds; nil if it is taken.
    func take(_ kind: Rate.Kind, _ amount: Int, at rate: Rate, credit: Int64 = 0, _ now: Int64) -> Int64? {
        full.withLock { full in
            let start = Self.start(full, kind, rate, now)
            let next = start + rate.nanoseconds(amount)
            let wait = next - rate.nanoseconds(rate.burst) - credit - now
            // Also if nothing is taken: what a former rate has left beyond this one must not move on with the time.
            Self.set(&full, kind, wait <= 0 ? next : start)
            return wait <= 0 ? nil : wait
        }
    }

    /// Takes an amount, whether there is as much or not.
    func spend(_ kind: Rate.Kind, _ amount: Int, at rate: Rate, _ now: Int64) {
        full.withLock { full in
            let next = Self.start(full, kind, rate, now) + rate.nanoseconds(amount)
            Self.set(&full, kind, min(next, Self.latest(kind, rate, now)))
        }
    }

    /// Whether all buckets are full.
    func isIdle(at now: Int64) -> Bool { full.withLock { $0.allSatisfy { $0 <= now } } }

    private static func start(_ full: [Int64], _ kind: Rate.Kind, _ rate: Rate, _ now: Int64) -> Int64 {
        guard !full.isEmpty else { return now }
        // After a change to a larger rate nobody waits as long as the former one demanded.
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
