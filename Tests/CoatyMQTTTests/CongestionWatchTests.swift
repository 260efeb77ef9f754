import TestSupport
import Testing

@testable import CoatyMQTT

@Suite(.exclusive) struct CongestionWatchTests {
    private static let start = ContinuousClock.now

    /// Samples a buffer at given times, and returns the times at which losses were reported.
    private func reports(_ samples: [(at: Int, isFull: Bool)], idle: Int = 0, until end: Int) -> [Int] {
        var watch = CongestionWatch()
        var reports: [Int] = []
        var samples = samples[...]
        for time in stride(from: 0, through: end, by: 10) {
            let now = Self.start + .milliseconds(time)
            while let sample = samples.first, sample.at <= time {
                samples.removeFirst()
                watch.note(isFull: sample.isFull, idle: .milliseconds(idle), now: now)
            }
            if watch.takeLoss(now: now) { reports.append(time) }
        }
        return reports
    }

    private func full(_ times: StrideThrough<Int>) -> [(at: Int, isFull: Bool)] { times.map { ($0, true) } }

    @Test func fullBufferIsReportedAsLossAfterSomeTime() {
        #expect(reports(full(stride(from: 0, through: 190, by: 10)), until: 3000).isEmpty)
        #expect(reports(full(stride(from: 0, through: 200, by: 10)), until: 3000) == [260])
    }

    @Test func briefRoomDoesNotResetTheWatch() {
        let samples = stride(from: 0, through: 300, by: 10).map { (at: $0, isFull: $0 % 50 == 0) }
        #expect(reports(samples, until: 3000) == [360])
        let seldom = stride(from: 0, through: 2000, by: 10).map { (at: $0, isFull: $0 % 100 == 0) }
        #expect(reports(seldom, until: 3000).isEmpty)
    }

    @Test func aLongCongestionIsReportedOnceASecondAndAtItsEnd() {
        #expect(reports(full(stride(from: 0, through: 3000, by: 10)), until: 6000) == [1200, 2210, 3210])
    }

    /// The buffer counts as full for the whole time in which the reader was stalled.
    @Test func readerStallCountsAsFullTime() {
        #expect(reports([(0, true)], idle: 250, until: 1000) == [60])
        #expect(reports([(0, true)], idle: 150, until: 1000).isEmpty)
    }

    /// Messages larger than the buffer fill it each time, but are read immediately.
    @Test func readerPausesPreventLossReports() {
        var watch = CongestionWatch()
        for time in stride(from: 0, through: 2000, by: 10) {
            let now = Self.start + .milliseconds(time)
            watch.notePause(of: .milliseconds(8))
            watch.note(isFull: true, idle: .zero, now: now)
            let isLost = watch.takeLoss(now: now)
            #expect(!isLost)
        }
    }
}
