import Coaty
import TestSupport
import Testing

@testable import CoatyGateway

/// What waits for a client that is behind, and what of it goes.
@Suite(.closesOutlets) struct LaneQueueTests {
    private let outlet = Outlet(SteeredTransport())
    private let room = Outlet.maximumWaitingBytes

    private func queue(_ overflow: StreamOptions.Overflow, buffer: Int, throttle: Duration? = nil) -> LaneQueue {
        let options = Made.options { ($0.overflow, $0.buffer, $0.throttle) = (overflow, buffer, throttle) }
        return LaneQueue(outlet.open(id: "l", options: options), isHeld: false)
    }

    private enum Popped: Equatable {
        case event(Int)
        case change(ObjectChange.Kind)
        case gap(Int?)
    }

    private func take(_ queue: inout LaneQueue) -> LaneItem? {
        var budget = Outlet.turn
        return queue.pop(&budget)
    }

    private func pop(_ queue: inout LaneQueue) -> Popped? {
        switch take(&queue) {
        case .event(let record, _, let kind): kind.map(Popped.change) ?? .event(Int(record.cursor?.position ?? 0))
        case .gap(let count, _): .gap(count)
        case .response, nil: nil
        }
    }

    private func drain(_ queue: inout LaneQueue) -> [Popped] {
        var popped: [Popped] = []
        while let next = pop(&queue) { popped.append(next) }
        #expect(queue.isEmpty)
        #expect(queue.bytes == 0)
        return popped
    }

    private func item(_ key: Int, _ number: Int, padding: Int = 0) throws -> LaneItem {
        Made.item(try Made.event(key, number, padding: padding), at: UInt64(number))
    }

    @Test func theOldestGoesAndIsCountedWhereItWas() throws {
        var queue = queue(.dropOldest, buffer: 2)
        queue.putBack(try item(0, 1))
        for number in 2...6 { queue.append(try item(0, number), others: 0, room: room) }
        #expect(drain(&queue) == [.event(1), .gap(3), .event(5), .event(6)])
    }

    @Test func whatIsPutBackComesAgainBeforeWhatIsLostThen() throws {
        var queue = queue(.dropOldest, buffer: 1)
        queue.append(try item(0, 1), others: 0, room: room)
        let taken = take(&queue)
        queue.putBack(try #require(taken))
        for number in 2...4 { queue.append(try item(0, number), others: 0, room: room) }
        #expect(drain(&queue) == [.event(1), .gap(2), .event(4)])
    }

    @Test func aLossOfUnknownSizeWinsOverACount() throws {
        var queue = queue(.dropOldest, buffer: 2)
        queue.append(try item(0, 1), others: 0, room: room)
        queue.append(.gap(nil, nil), others: 0, room: room)
        for number in 2...4 { queue.append(try item(0, number), others: 0, room: room) }
        #expect(drain(&queue) == [.gap(nil), .event(3), .event(4)])
        queue.append(.gap(4, nil), others: 0, room: room)
        for number in 5...7 { queue.append(try item(0, number), others: 0, room: room) }
        #expect(drain(&queue) == [.gap(5), .event(6), .event(7)])
    }

    @Test func theNewestOfEachObjectStays() throws {
        var queue = queue(.latest, buffer: 3)
        for (number, key) in [1, 2, 1, 2].enumerated() { queue.append(try item(key, number), others: 0, room: room) }
        #expect(drain(&queue) == [.gap(2), .event(2), .event(3)])
    }

    /// As many objects as the buffer holds are no reason to lose the only event of one.
    @Test func theNewestOfEachObjectStaysWhereTheyFillTheBuffer() throws {
        var queue = queue(.latest, buffer: 3)
        for number in 1...3 { queue.append(try item(number, number), others: 0, room: room) }
        for number in 4...40 { queue.append(try item(3, number), others: 0, room: room) }
        #expect(drain(&queue) == [.gap(37), .event(1), .event(2), .event(40)])
        // Beyond that the oldest goes.
        for number in 1...5 { queue.append(try item(number, number), others: 0, room: room) }
        #expect(drain(&queue) == [.gap(2), .event(3), .event(4), .event(5)])
    }

    @Test func closingKeepsNothingAndTakesNothing() throws {
        var queue = queue(.close, buffer: 2)
        queue.putBack(try item(0, 1))
        for number in 2...9 { queue.append(try item(0, number), others: 0, room: room) }
        #expect(queue.end == .overflow)
        #expect(drain(&queue) == [.event(1)])
        var other = self.queue(.close, buffer: 2)
        other.append(try item(0, 1), others: Outlet.maximumWaitingBytes, room: room)
        #expect(other.end == .overflow)
    }

    @Test func closingCountsEventsAlone() throws {
        var queue = queue(.close, buffer: 3, throttle: .seconds(3600))
        queue.append(try item(0, 1), others: 0, room: room)
        queue.append(.gap(nil, nil), others: 0, room: room)
        queue.append(.gap(4, nil), others: 0, room: room)
        for number in 2...6 { _ = queue.throttle?.take(try item(number % 2, number), at: .now) }
        #expect(queue.waiting == 1 && queue.lostInAll == 0)
        queue.append(.gap(nil, nil), others: 0, room: room)
        // Of what was held back the newest of both objects would have been told.
        #expect(queue.end == .overflow && queue.lostInAll == 3 && queue.waiting == 0)
        #expect(drain(&queue) == [])
    }

    @Test(arguments: [StreamOptions.Overflow.dropOldest, .latest])
    func gapsAreNeitherWaitingNorLostEvents(_ overflow: StreamOptions.Overflow) throws {
        var queue = queue(overflow, buffer: 3)
        for number in 1...5 {
            queue.append(.gap(1, nil), others: 0, room: room)
            queue.append(try item(0, number), others: 0, room: room)
            #expect(queue.waiting <= 2 && queue.waiting + queue.lostInAll == number)
        }
        _ = drain(&queue)
        #expect(queue.waiting == 0)
    }

    @Test func bytesAreBoundedAcrossLanesButForWhatIsAlone() throws {
        var queue = queue(.dropOldest, buffer: 9)
        queue.append(try item(0, 1, padding: Outlet.maximumWaitingBytes), others: 0, room: room)
        #expect(queue.bytes > Outlet.maximumWaitingBytes)
        queue.append(try item(0, 2), others: 0, room: room)
        #expect(drain(&queue) == [.gap(1), .event(2)])
        queue.append(try item(0, 3), others: Outlet.maximumWaitingBytes, room: room)
        #expect(drain(&queue) == [.gap(1)])
        let size = try item(0, 4).size
        queue.append(try item(0, 4), others: Outlet.maximumWaitingBytes - size, room: room)
        queue.append(try item(0, 5), others: Outlet.maximumWaitingBytes - size, room: room)
        #expect(drain(&queue) == [.gap(1), .event(5)])
    }

    @Test(arguments: [
        ([(ObjectChange.Kind.added, 1), (.changed, 1), (.changed, 1)], [Popped.gap(2), .change(.added)]),
        ([(.added, 1), (.changed, 1), (.removed, 1), (.changed, 2)], [.gap(3), .change(.changed)]),
        ([(.removed, 1), (.added, 1), (.changed, 2), (.changed, 2)], [.gap(2), .change(.changed), .change(.changed)]),
        ([(.changed, 1), (.removed, 1), (.changed, 2)], [.gap(1), .change(.removed), .change(.changed)]),
    ])
    private func aChangeStandsForThoseBeforeIt(_ changes: [(ObjectChange.Kind, Int)], _ expected: [Popped]) throws {
        var queue = queue(.latest, buffer: 2)
        for (kind, key) in changes {
            queue.append(Made.item(try Made.change(kind, key, from: kind == .changed ? 0 : nil)), others: 0, room: room)
        }
        #expect(drain(&queue) == expected)
    }

    /// Whatever comes and is taken, in any order: what was told and what was counted add up, and nothing changes its place.
    @Test(arguments: [StreamOptions.Overflow.dropOldest, .latest], 0..<40 as Range<UInt64>)
    func whatIsToldAndWhatIsLostAddUp(_ overflow: StreamOptions.Overflow, seed: UInt64) throws {
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
                queue.append(try item(key, sent), others: 0, room: room)
            case 6:
                if let item = take(&queue) { queue.putBack(item) }
            default:
                if let next = pop(&queue) { popped.append(next) }
            }
        }
        let rest = drain(&queue)
        let waiting = rest.filter { if case .event = $0 { true } else { false } }
        // One more may have been put back.
        #expect(waiting.count <= limit + 1)
        popped += rest
        var last = 0
        var told = 0
        var lost = 0
        for next in popped {
            switch next {
            case .event(let number):
                #expect(number > last)
                if overflow == .dropOldest { #expect(number == told + lost + 1, "the gap is not where it belongs") }
                last = number
                told += 1
            case .gap(let count): lost += try #require(count)
            case .change: Issue.record("no change was sent")
            }
        }
        #expect(told + lost == sent)
        if overflow == .latest {
            for number in newest.values { #expect(popped.contains(.event(number)), "the newest of an object is lost") }
        }
    }
}
