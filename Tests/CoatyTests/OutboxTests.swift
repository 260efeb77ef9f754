import TestSupport
import Testing

@testable import Coaty

@Suite struct OutboxTests {
    private enum Taken: Equatable {
        case subscribe([String], UInt64)
        case unsubscribe(String)
        case publish(String)
        case disconnect

        init(_ operation: LinkOperation) {
            switch operation {
            case .subscribe(let filters, let ticket): self = .subscribe(filters, ticket)
            case .unsubscribe(let filter): self = .unsubscribe(filter)
            case .publish(let publication): self = .publish(publication.topic)
            case .disconnect: self = .disconnect
            }
        }
    }

    /// Beside a queue that is searched and from which what is undone is removed.
    @Test(arguments: 0..<20 as Range<UInt64>) func whatIsUndoneDoesNotGoOut(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let outbox = Outbox(limits: OutboxLimits(publications: 10_000, bytes: 1 << 20))
        outbox.open(subscriptions: ["own"], ticket: 0, joinEvents: [])
        var expected: [Taken] = [.subscribe(["own"], 0)]
        var subscribed: Set<String> = []
        // Much is queued and undone at first, much is taken at last.
        for step in 1...5_000 as ClosedRange<UInt64> {
            let filter = "\(Int.random(in: 0..<400, using: &generator))"
            switch Int.random(in: 0..<10, using: &generator) {
            case 0:
                _ = try? outbox.publish([Publication(topic: "\(step)", payload: [])])
                expected.append(.publish("\(step)"))
            case 1..<(step < 2_500 ? 2 : 6):
                let taken = outbox.next().map(Taken.init)
                try #require(taken == (expected.isEmpty ? nil : expected.removeFirst()))
            case _ where subscribed.insert(filter).inserted:
                _ = outbox.subscribe(filter, ticket: step)
                expected.append(.subscribe([filter], step))
            default:
                subscribed.remove(filter)
                _ = outbox.unsubscribe(filter)
                let undone = expected.lastIndex { if case .subscribe([filter], _) = $0 { true } else { false } }
                if let undone { expected.remove(at: undone) } else { expected.append(.unsubscribe(filter)) }
            }
            try #require(outbox.waiting.operations == expected.count)
        }
        while let operation = outbox.next() {
            try #require(!expected.isEmpty && Taken(operation) == expected.removeFirst())
        }
        #expect(expected.isEmpty)
    }

    @Test func tellsWhatDidNotGoOut() {
        let outbox = Outbox(limits: OutboxLimits())
        outbox.open(subscriptions: ["own"], ticket: 1, joinEvents: [])
        _ = outbox.next()
        _ = outbox.subscribe("a", ticket: 2)
        _ = outbox.subscribe("b", ticket: 3, mayBeUndone: false)
        _ = outbox.unsubscribe("b")
        #expect(outbox.close().tickets == [2, 3])
        // A session begins with nothing of the one before.
        outbox.open(subscriptions: ["own"], ticket: 4, joinEvents: [])
        _ = outbox.next()
        _ = outbox.unsubscribe("a")
        #expect(outbox.next().map(Taken.init) == .unsubscribe("a"))
        #expect(outbox.next() == nil && outbox.close().tickets.isEmpty)
    }
}
