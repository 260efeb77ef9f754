import Synchronization

/// Counts durations by their size, from any thread and without a lock.
public struct DurationHistogram: ~Copyable, Sendable {
    /// The counts of a histogram at one time.
    public struct Snapshot: Sendable, Equatable {
        /// Number of durations that were at most as long as the bound with the same index, and longer than the previous
        /// bound. The last element counts longer durations.
        public let counts: [Int]
        /// The sum of all durations.
        public let sum: Duration

        /// Returns the sum of both.
        public static func + (one: Snapshot, other: Snapshot) -> Snapshot {
            Snapshot(counts: zip(one.counts, other.counts).map(+), sum: one.sum + other.sum)
        }
    }

    /// The upper bounds, in microseconds.
    public static let bounds = [
        1000, 2500, 5000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000, 5_000_000,
        10_000_000,
    ]

    private let counts = InlineArray<14, Atomic<Int>> { _ in Atomic(0) }
    private let nanoseconds = Atomic(0)

    /// Creates a histogram without durations.
    public init() {}

    /// Counts a duration.
    public func record(nanoseconds duration: Int) {
        var index = 0
        while index < Self.bounds.count, duration > Self.bounds[index] * 1000 { index += 1 }
        counts[index].add(1, ordering: .relaxed)
        nanoseconds.add(duration, ordering: .relaxed)
    }

    /// Counts a duration.
    public func record(_ duration: Duration) {
        let (seconds, attoseconds) = duration.components
        record(nanoseconds: Int(seconds) * 1_000_000_000 + Int(attoseconds / 1_000_000_000))
    }

    /// The current counts.
    public var snapshot: Snapshot {
        Snapshot(
            counts: counts.indices.map { counts[$0].load(ordering: .relaxed) },
            sum: .nanoseconds(nanoseconds.load(ordering: .relaxed))
        )
    }
}
