import TestSupport
import Testing

@testable import Coaty

@Suite(.exclusive) struct MissedDissolutionsTests {
    private static func pair(_ source: String, _ actor: String) -> AssociateQueue.Pair {
        .init(sourceId: CoatyUUID(wire: source), actorId: CoatyUUID(wire: actor))
    }

    private var missed = MissedDissolutions()
    private let start = ContinuousClock.now

    /// Advances the time, in seconds since the start.
    private mutating func age(_ seconds: Int, period: Int? = 1, away: Set<CoatyUUID> = []) {
        missed.age(at: start + .seconds(seconds), inPeriod: period) { away.contains($0) }
    }

    @Test mutating func dissolutionsAreKeptForBothPointsUntilThePairIsAssociated() {
        missed.note(Self.pair("s", "a"))
        missed.note(Self.pair("s", "b"))
        missed.note(Self.pair("s", "b"))
        #expect(missed.count == 4)
        #expect(missed.pairs(of: ["a"]) == [Self.pair("s", "a")])
        #expect(missed.pairs(of: ["x", "s", "a"]) == [Self.pair("s", "a"), Self.pair("s", "b")])
        missed.forget(Self.pair("s", "a"))
        missed.forget(Self.pair("s", "a"))
        #expect(missed.pairs(of: ["s", "a"]) == [Self.pair("s", "b")])
        #expect(missed.count == 2)
    }

    @Test mutating func onlyPointsThatAreAwayKeepDissolutionsForLong() {
        age(0)
        missed.note(Self.pair("s", "a"))
        age(299)
        #expect(missed.count == 2)
        age(300)
        missed.note(Self.pair("s", "b"))
        age(599)
        #expect(missed.pairs(of: ["s"]).count == 2)
        age(600, away: ["a"])
        #expect(missed.pairs(of: ["s"]) == [Self.pair("s", "b")])
        #expect(missed.pairs(of: ["a"]) == [Self.pair("s", "a")])
        for time in stride(from: 900, to: 9_000, by: 300) { age(time, away: ["a"]) }
        #expect(missed.pairs(of: ["s", "b"]).isEmpty && missed.pairs(of: ["a"]) == [Self.pair("s", "a")])
        age(9_000)
        age(9_300)
        #expect(missed.count == 0)
    }

    @Test mutating func timeCountsOnlyWithinOneOnlinePeriod() {
        age(0)
        missed.note(Self.pair("s", "a"))
        age(300)
        for time in stride(from: 600, to: 3_000, by: 300) { age(time, period: nil) }
        age(3_000, period: 2)
        age(3_299, period: 2)
        #expect(missed.count == 2)
        age(3_300, period: 2)
        #expect(missed.count == 0)
    }

    @Test mutating func theOlderHalfIsForgottenAtTheLimit() {
        let pairs = (0..<IoRouter.maximumMissedDissolutions).map { Self.pair("s\($0)", "a\($0)") }
        for (index, pair) in pairs.enumerated() {
            missed.note(pair)
            if missed.count > IoRouter.maximumMissedDissolutions { Issue.record("\(missed.count) at \(index)") }
        }
        #expect(missed.count >= IoRouter.maximumMissedDissolutions / 2)
        #expect(missed.pairs(of: ["s0"]).isEmpty)
        #expect(missed.pairs(of: [pairs[pairs.count - 1].actorId]) == [pairs[pairs.count - 1]])
        for pair in pairs { missed.forget(pair) }
        #expect(missed.count == 0)
    }
}
