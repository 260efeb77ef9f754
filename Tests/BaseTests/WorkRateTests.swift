import TestSupport
import Testing

@testable import Base

@Suite(.exclusive) struct WorkRateTests {
    private static let second: Int64 = 1_000_000_000
    private let total = WorkBucket(stepsPerSecond: 6_400)

    @Test func burstIsFreeAndDebtIsPaidByTime() {
        let work = WorkRate(within: total)
        #expect(!work.isOverdrawn(at: 0) && work.isIdle(at: 0))
        // The burst is half of the rate for 50 ms.
        work.spend(160, at: 0)
        #expect(!work.isOverdrawn(at: 0) && !work.isIdle(at: 0))
        work.spend(320, at: 0)
        #expect(work.isOverdrawn(at: 0))
        #expect(work.isOverdrawn(at: Self.second / 10 - 1))
        #expect(!work.isOverdrawn(at: Self.second / 10))
        #expect(work.overdraft(at: 0) == Self.second / 10)
        #expect(work.spent == 480)
    }

    @Test func debtIsBounded() {
        let work = WorkRate(within: total)
        work.spend(1_000_000_000, at: 0)
        #expect(work.isOverdrawn(at: Self.second - 1))
        #expect(!work.isOverdrawn(at: Self.second))
    }

    @Test func clientBelowItsGuaranteeIsNotDelayedByOthers() {
        let (one, other, small) = (WorkRate(within: total), WorkRate(within: total), WorkRate(within: total))
        // For 100 ms, both clients use the full rate in equal parts.
        for time in 0..<10 as Range<Int64> {
            one.spend(32, at: time * 10_000_000)
            other.spend(32, at: time * 10_000_000)
        }
        for client in [one, other] { client.spend(320, at: Self.second / 10) }
        #expect(total.overdraft(at: Self.second / 10) > 0)
        #expect(!small.isOverdrawn(at: Self.second / 10))
        small.spend(100, at: Self.second / 10)
        #expect(small.isOverdrawn(at: Self.second / 10))
    }
}
