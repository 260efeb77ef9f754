import TestSupport
import Testing

@testable import CoatyMQTT

@Suite(.exclusive) struct VersionChoiceTests {
    private let start = ContinuousClock.now

    @Test func refusedVersionFallsBackAtOnceForADay() {
        var choice = VersionChoice()
        #expect(choice.version(now: start) == .v5)
        let repeats = [
            choice.note(.refusedVersion, with: .v5, now: start), choice.note(.accepted, with: .v311, now: start),
        ]
        #expect(repeats == [true, false])
        #expect(choice.version(now: start + VersionChoice.retryInterval - .seconds(1)) == .v311)
        #expect(choice.version(now: start + VersionChoice.retryInterval) == .v5)
    }

    @Test func closedConnectionsFallBackOnlyIfTheOlderVersionIsAccepted() {
        var choice = VersionChoice()
        var repeats: [Bool] = []
        for _ in 0..<VersionChoice.maximumCloses {
            #expect(choice.version(now: start) == .v5)
            repeats.append(choice.note(.closed, with: .v5, now: start))
        }
        #expect(repeats == [true, true] && choice.version(now: start) == .v311)
        var stopped = choice
        repeats = [
            stopped.note(.closed, with: .v311, now: start), choice.note(.accepted, with: .v311, now: start),
        ]
        #expect(repeats == [false, false])
        #expect(stopped.version(now: start) == .v5 && choice.version(now: start) == .v311)
    }

    @Test func acceptedConnectionsAndOtherErrorsChangeNothing() {
        var choice = VersionChoice()
        let repeats = [
            choice.note(.failed, with: .v5, now: start), choice.note(.closed, with: .v5, now: start),
            choice.note(.accepted, with: .v5, now: start),
        ]
        #expect(repeats == [false, true, false] && choice == VersionChoice())
    }
}
