import TestSupport
import Testing

@testable import Logs

/// Messages that are written, and messages that are only counted.
@Suite(.exclusive) struct RepetitionsTests {
    private let start = ContinuousClock.now

    private func message(_ text: String, _ label: LogLabel = .http) -> Repetitions.Message {
        Repetitions.Message(label: label, level: .warning, text: text)
    }

    @Test func equalMessagesOfAnIntervalAreOneLineAndACount() {
        var repetitions = Repetitions()
        #expect(repetitions.take(message("a"), variant: 0, at: start).isWritten)
        for second in 1..<10 {
            let (isWritten, ended) = repetitions.take(message("a"), variant: 0, at: start + .seconds(second))
            #expect(!isWritten && ended.isEmpty)
        }
        #expect(repetitions.hasCounted)
        // A message with another text, label or level is another message.
        #expect(repetitions.take(message("b"), variant: 0, at: start).isWritten)
        #expect(repetitions.take(message("a", .tls), variant: 0, at: start).isWritten)
        let (isWritten, ended) = repetitions.take(message("a"), variant: 0, at: start + .seconds(10))
        #expect(isWritten)
        #expect(ended == [.init(message: message("a"), count: 9, last: start + .seconds(9))])
    }

    @Test func countsAreReportedWithoutAFurtherMessage() {
        var repetitions = Repetitions()
        for _ in 0..<3 { _ = repetitions.take(message("a"), variant: 0, at: start) }
        // Another cause is written, so it does not change the time of the last counted message.
        #expect(repetitions.take(message("a"), variant: 1, at: start + .seconds(1)).isWritten)
        _ = repetitions.take(message("b"), variant: 0, at: start)
        #expect(repetitions.expire(at: start + .seconds(9)).isEmpty)
        #expect(repetitions.expire(at: start + .seconds(10)) == [.init(message: message("a"), count: 2, last: start)])
        #expect(!repetitions.hasCounted && repetitions.expire(at: nil).isEmpty)
    }

    /// Different causes of one message are written as separate lines, but a client that invents causes does not fill
    /// the log.
    @Test func someDifferentFieldsAreWritten() {
        var repetitions = Repetitions()
        let written = (0..<1000).filter { repetitions.take(message("a"), variant: $0 % 500, at: start).isWritten }
        #expect(written.count == Repetitions.maximumVariants)
        #expect(repetitions.expire(at: nil).map(\.count) == [1000 - Repetitions.maximumVariants])
    }

    @Test func knownMessagesAreBoundedAndNoneIsLost() {
        var repetitions = Repetitions()
        _ = repetitions.take(message("first"), variant: 0, at: start)
        _ = repetitions.take(message("first"), variant: 0, at: start)
        var ended: [Repetitions.Summary] = []
        for number in 0..<(2 * Repetitions.maximumMessages) {
            let (isWritten, summaries) = repetitions.take(
                message("\(number)"),
                variant: 0,
                at: start + .milliseconds(1 + number)
            )
            #expect(isWritten)
            ended += summaries
        }
        #expect(ended == [.init(message: message("first"), count: 1, last: start)])
        // The last messages are still known, the first one is not.
        #expect(!repetitions.take(message("511"), variant: 0, at: start + .seconds(1)).isWritten)
        #expect(repetitions.take(message("0"), variant: 0, at: start + .seconds(1)).isWritten)
    }
}
