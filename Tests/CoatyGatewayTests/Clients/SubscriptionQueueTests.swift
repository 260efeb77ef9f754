import Coaty
import Testing
import TestSupport

@testable import Base
@testable import Feeds
@testable import Network

/// The queue of one subscription, and which events it drops.
@Suite(.exclusive, .closesOutboundQueues) struct SubscriptionQueueTests {
    private let outbound = OutboundQueue(SteeredTransport())

    private func queue(
        _ overflow: SubscriptionOptions.Overflow,
        buffer: Int,
        throttle: Duration? = nil
    ) -> SubscriptionQueue {
        let options = Made.options {
            ($0.overflow, $0.buffer, $0.throttle) = (overflow, buffer, throttle.map { Throttle(interval: $0) })
        }
        return SubscriptionQueue(outbound.open(id: "l", options: options), isHeld: false)
    }

    private let memory = ClientAccount.single().connection()

    private func room(besides others: Int = 0) -> QueueRoom {
        QueueRoom(others: others, limit: Limits().queuedBytes, memory: memory)
    }

    private enum Popped: Equatable {
        case event(Int)
        case change(ObjectChange.Kind)
        case gap(Int?)
    }

    private func take(_ queue: inout SubscriptionQueue) -> QueuedItem? {
        queue.pop()
    }

    private func pop(_ queue: inout SubscriptionQueue) -> Popped? {
        switch take(&queue) {
        case .event(let event): event.change.map(Popped.change) ?? .event(Int(event.cursor?.position ?? 0))
        case .gap(let count, _): .gap(count)
        case .objects, .invalid, .leftOut, .response, nil: nil
        }
    }

    private func drain(_ queue: inout SubscriptionQueue) -> [Popped] {
        var popped: [Popped] = []
        while let next = pop(&queue) { popped.append(next) }
        #expect(queue.isEmpty)
        #expect(queue.bytes == 0)
        return popped
    }

    private func item(_ key: Int, _ number: Int, padding: Int = 0) throws -> QueuedItem {
        Made.item(try Made.event(key, number, padding: padding), at: UInt64(number))
    }

    @Test func oldestEventsAreDroppedAndReportedInPlace() throws {
        var queue = queue(.dropOldest, buffer: 2)
        queue.putBack(try item(0, 1))
        for number in 2...6 { queue.append(try item(0, number), room()) }
        #expect(drain(&queue) == [.event(1), .gap(3), .event(5), .event(6)])
    }

    @Test func itemPutBackPrecedesLaterGap() throws {
        var queue = queue(.dropOldest, buffer: 1)
        queue.append(try item(0, 1), room())
        let taken = take(&queue)
        queue.putBack(try #require(taken))
        for number in 2...4 { queue.append(try item(0, number), room()) }
        #expect(drain(&queue) == [.event(1), .gap(2), .event(4)])
    }

    @Test func gapOfUnknownSizeReplacesCount() throws {
        var queue = queue(.dropOldest, buffer: 2)
        queue.append(try item(0, 1), room())
        queue.append(.gap(nil, nil), room())
        for number in 2...4 { queue.append(try item(0, number), room()) }
        #expect(drain(&queue) == [.gap(nil), .event(3), .event(4)])
        queue.append(.gap(4, nil), room())
        for number in 5...7 { queue.append(try item(0, number), room()) }
        #expect(drain(&queue) == [.gap(5), .event(6), .event(7)])
    }

    @Test func newestEventOfEachObjectIsKept() throws {
        var queue = queue(.latest, buffer: 3)
        for (number, key) in [1, 2, 1, 2].enumerated() { queue.append(try item(key, number), room()) }
        #expect(drain(&queue) == [.gap(2), .event(2), .event(3)])
    }

    /// A buffer that is full with one event per object does not drop the only event of an object.
    @Test func newestEventOfEachObjectIsKeptInFullBuffer() throws {
        var queue = queue(.latest, buffer: 3)
        for number in 1...3 { queue.append(try item(number, number), room()) }
        for number in 4...40 { queue.append(try item(3, number), room()) }
        #expect(drain(&queue) == [.gap(37), .event(1), .event(2), .event(40)])
        // With more objects, the oldest event is dropped.
        for number in 1...5 { queue.append(try item(number, number), room()) }
        #expect(drain(&queue) == [.gap(2), .event(3), .event(4), .event(5)])
    }

    @Test func closeOverflowDropsQueuedAndLaterEvents() throws {
        var queue = queue(.close, buffer: 2)
        queue.putBack(try item(0, 1))
        for number in 2...9 { queue.append(try item(0, number), room()) }
        #expect(queue.end == .overflow)
        #expect(drain(&queue) == [.event(1)])
        var other = self.queue(.close, buffer: 2)
        other.append(try item(0, 1), room(besides: Limits().queuedBytes))
        #expect(other.end == .overflow)
    }

    @Test func closeOverflowCountsOnlyEvents() throws {
        var queue = queue(.close, buffer: 3, throttle: .seconds(3600))
        queue.append(try item(0, 1), room())
        queue.append(.gap(nil, nil), room())
        queue.append(.gap(4, nil), room())
        for number in 2...6 { _ = queue.throttle?.take(try item(number % 2, number), at: .now, charging: memory) }
        #expect(queue.queued == 1 && queue.droppedInAll == 0)
        queue.append(.gap(nil, nil), room())
        // Of the throttled events, the newest of each of the two objects would have been delivered.
        #expect(queue.end == .overflow && queue.droppedInAll == 3 && queue.queued == 0)
        #expect(drain(&queue) == [])
    }

    @Test(arguments: [SubscriptionOptions.Overflow.dropOldest, .latest])
    func gapsCountNeitherAsQueuedNorAsDropped(_ overflow: SubscriptionOptions.Overflow) throws {
        var queue = queue(overflow, buffer: 3)
        for number in 1...5 {
            queue.append(.gap(1, nil), room())
            queue.append(try item(0, number), room())
            #expect(queue.queued <= 2 && queue.queued + queue.droppedInAll == number)
        }
        _ = drain(&queue)
        #expect(queue.queued == 0)
    }

    @Test func singleEventMayExceedByteBoundAcrossSubscriptions() throws {
        var queue = queue(.dropOldest, buffer: 9)
        queue.append(try item(0, 1, padding: Limits().queuedBytes), room())
        #expect(queue.bytes > Limits().queuedBytes)
        queue.append(try item(0, 2), room())
        #expect(drain(&queue) == [.gap(1), .event(2)])
        queue.append(try item(0, 3), room(besides: Limits().queuedBytes))
        #expect(drain(&queue) == [.gap(1)])
        let size = try item(0, 4).size
        queue.append(try item(0, 4), room(besides: Limits().queuedBytes - size))
        queue.append(try item(0, 5), room(besides: Limits().queuedBytes - size))
        #expect(drain(&queue) == [.gap(1), .event(5)])
    }

    @Test(arguments: [
        ([(ObjectChange.Kind.added, 1), (.changed, 1), (.changed, 1)], [Popped.gap(2), .change(.added)]),
        ([(.added, 1), (.changed, 1), (.removed, 1), (.changed, 2)], [.gap(3), .change(.changed)]),
        ([(.removed, 1), (.added, 1), (.changed, 2), (.changed, 2)], [.gap(2), .change(.changed), .change(.changed)]),
        ([(.changed, 1), (.removed, 1), (.changed, 2)], [.gap(1), .change(.removed), .change(.changed)]),
    ])
    private func latestChangeReplacesEarlierChanges(_ changes: [(ObjectChange.Kind, Int)], _ expected: [Popped]) throws
    {
        var queue = queue(.latest, buffer: 2)
        for (kind, key) in changes {
            queue.append(Made.item(try Made.change(kind, key, from: kind == .changed ? 0 : nil)), room())
        }
        #expect(drain(&queue) == expected)
    }

    /// For any order of operations, delivered and dropped events add up, and events keep their order.
    @Test(arguments: [SubscriptionOptions.Overflow.dropOldest, .latest], 0..<40 as Range<UInt64>)
    func deliveredAndDroppedEventsAddUp(_ overflow: SubscriptionOptions.Overflow, seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let limit = Int.random(in: 1...12, using: &random)
        let keys = Int.random(in: 1...limit, using: &random)
        var queue = queue(overflow, buffer: limit)
        var sent = 0
        var popped: [Popped] = []
        var newest: [Int: Int] = [:]
        for _ in 0..<600 {
            switch Int.random(in: 0..<10, using: &random) {
            case 0..<6:
                sent += 1
                let key = Int.random(in: 0..<keys, using: &random)
                newest[key] = sent
                queue.append(try item(key, sent), room())
            case 6:
                if let item = take(&queue) { queue.putBack(item) }
            default:
                if let next = pop(&queue) { popped.append(next) }
            }
        }
        let rest = drain(&queue)
        let queued = rest.filter { if case .event = $0 { true } else { false } }
        // One more item may have been put back.
        #expect(queued.count <= limit + 1)
        popped += rest
        var last = 0
        var delivered = 0
        var dropped = 0
        for next in popped {
            switch next {
            case .event(let number):
                #expect(number > last)
                if overflow == .dropOldest {
                    #expect(number == delivered + dropped + 1, "the gap is in the wrong place")
                }
                last = number
                delivered += 1
            case .gap(let count): dropped += try #require(count)
            case .change: Issue.record("no change was sent")
            }
        }
        #expect(delivered + dropped == sent)
        if overflow == .latest {
            for number in newest.values { #expect(popped.contains(.event(number)), "the newest event is missing") }
        }
    }
}
