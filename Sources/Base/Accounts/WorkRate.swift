import Synchronization

/// The work that is performed for one client, compared with its allowance.
///
/// A client is overdrawn if it has used more than half of the rate of all clients, or if they have used the whole rate
/// and the client more than a 64th. Work is charged after it is performed, so a client may have a debt, but never more
/// than one second. While a client is overdrawn, its further work is held back: see ``WorkerPool``.
package final class WorkRate: Sendable {
    private let total: WorkBucket
    private let share: WorkBucket
    private let guaranteed: WorkBucket
    private let steps = Atomic(0)

    init(within total: WorkBucket) {
        self.total = total
        share = WorkBucket(stepsPerSecond: total.stepsPerSecond / 2)
        guaranteed = WorkBucket(stepsPerSecond: total.stepsPerSecond / 64)
    }

    /// Returns the steps for passing on events or a response, without their evaluation.
    ///
    /// - Parameters:
    ///   - bytes: the bytes that are read or copied.
    ///   - events: the number of events that these bytes are of.
    package static func steps(toPass bytes: Int, events: Int = 1) -> Int { 20 * events + bytes / 256 }

    /// Charges steps that were spent for the client.
    package func spend(_ steps: Int, at now: Int64 = WorkBucket.now()) {
        total.spend(steps, at: now)
        share.spend(steps, at: now)
        guaranteed.spend(steps, at: now)
        self.steps.add(steps, ordering: .relaxed)
    }

    /// The steps that were spent so far.
    var spent: Int { steps.load(ordering: .relaxed) }

    /// Returns by how much the client has recently exceeded its guaranteed part, in nanoseconds; 0 if it has not.
    func excess(at now: Int64) -> Int64 { max(0, guaranteed.overdraft(at: now)) }

    /// Whether further work for the client must be held back.
    package var isOverdrawn: Bool { isOverdrawn(at: WorkBucket.now()) }

    package func isOverdrawn(at now: Int64) -> Bool { overdraft(at: now) > 0 }

    /// Returns how long further work for the client must be held back if nothing else is spent, in nanoseconds; 0 or
    /// less if it need not be.
    func overdraft(at now: Int64) -> Int64 {
        max(share.overdraft(at: now), min(total.overdraft(at: now), guaranteed.overdraft(at: now)))
    }

    /// Whether all spent steps are paid for.
    var isIdle: Bool { isIdle(at: WorkBucket.now()) }

    func isIdle(at now: Int64) -> Bool { guaranteed.isIdle(at: now) }
}

/// A rate of steps that saves up at most ``burst`` and has a debt of at most ``maximumDebt``.
///
/// It is one number without a lock: the time at which everything spent so far is paid for.
package final class WorkBucket: Sendable {
    /// In nanoseconds.
    static let burst: Int64 = 50_000_000
    /// In nanoseconds.
    static let maximumDebt: Int64 = 1_000_000_000

    let stepsPerSecond: Int
    private let paid = Atomic<Int64>(.min)

    init(stepsPerSecond: Int) { self.stepsPerSecond = max(1, stepsPerSecond) }

    /// Returns the current time in nanoseconds, relative to an arbitrary moment.
    package static func now() -> Int64 { Int64((ContinuousClock.now - origin) / .nanoseconds(1)) }
    private static let origin = ContinuousClock.now

    func spend(_ steps: Int, at now: Int64) {
        let cost = Int64(Double(steps) / Double(stepsPerSecond) * 1e9)
        var current = paid.load(ordering: .relaxed)
        while true {
            let next = min(max(current, now - Self.burst) + cost, now + Self.maximumDebt)
            let (isDone, original) = paid.weakCompareExchange(expected: current, desired: next, ordering: .relaxed)
            if isDone { return }
            current = original
        }
    }

    /// Returns the time until everything is paid for, in nanoseconds; 0 or less if it is.
    func overdraft(at now: Int64) -> Int64 { max(paid.load(ordering: .relaxed), now - Self.burst) - now }

    func isIdle(at now: Int64) -> Bool { paid.load(ordering: .relaxed) <= now - Self.burst }
}
