import Synchronization
import TestSupport
import Testing

@testable import Coaty

/// The order and the cancellation of deadlines.
@Suite(.exclusive) struct DeadlineTests {
    private let start = ContinuousClock.now

    private func time(_ milliseconds: Int) -> ContinuousClock.Instant { start + .milliseconds(milliseconds) }

    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func handlersAreCalledInOrderUnlessRemoved(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var heap = DeadlineHeap()
        let called = Box()
        /// The keys and times of the entries that must still be there, by number.
        var expected: [Int: (key: DeadlineHeap.Key, time: Int)] = [:]
        var removed: [DeadlineHeap.Key] = []
        for number in 0..<2000 {
            switch Int.random(in: 0..<4, using: &random) {
            case 0 where !expected.isEmpty:
                let (number, entry) = try #require(expected.randomElement(using: &random))
                expected[number] = nil
                removed.append(entry.key)
                #expect(heap.remove(entry.key) != nil)
            case 1:
                let now = Int.random(in: 0...500, using: &random)
                var last = 0
                while let handler = heap.popDue(at: time(now)) {
                    handler()
                    let entry = try #require(expected[called.last])
                    expected[called.last] = nil
                    #expect(last <= entry.time && entry.time <= now)
                    last = entry.time
                    removed.append(entry.key)
                }
                #expect(expected.values.allSatisfy { $0.time > now })
            default:
                let due = Int.random(in: 0...1000, using: &random)
                expected[number] = (heap.insert({ called.set(number) }, at: time(due)), due)
            }
            #expect(heap.count == expected.count)
            #expect(heap.first == expected.values.map(\.time).min().map(time))
        }
        // The key of a removed entry does not remove another one.
        for key in removed { #expect(heap.remove(key) == nil) }
        #expect(heap.count == expected.count)
    }

    private final class Box: Sendable {
        private let value = Mutex(-1)
        var last: Int { value.withLock(\.self) }
        func set(_ number: Int) { value.withLock { $0 = number } }
    }

    @Test func earlierDeadlineIsNotDelayedByALaterOne() async {
        let late = Deadline(after: .seconds(3600)) {}
        let (stream, continuation) = AsyncStream<Void>.makeStream()
        let early = Deadline(after: .milliseconds(5)) { continuation.finish() }
        for await _ in stream {}
        withExtendedLifetime((late, early)) {}
    }

    @Test func cancelledAndReleasedDeadlinesAreNotCalled() async {
        let called = Box()
        Deadline(after: .milliseconds(1)) { called.set(1) }.cancel()
        _ = Deadline(after: .milliseconds(1)) { called.set(2) }
        let (stream, continuation) = AsyncStream<Void>.makeStream()
        let last = Deadline(after: .milliseconds(20)) { continuation.finish() }
        for await _ in stream {}
        #expect(called.last == -1)
        withExtendedLifetime(last) {}
    }
}
