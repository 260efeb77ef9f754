import Coaty
import TestSupport
import Testing

@testable import Feeds

/// The records that a replay buffer keeps and evicts.
@Suite(.exclusive) struct ReplayBufferTests {
    /// Inserts records into a replay buffer as the feed of an epoch does.
    private final class Inserter {
        let buffer: ReplayBuffer
        let epoch: UInt64
        var position: UInt64 = 0

        init(_ buffer: ReplayBuffer, _ epoch: UInt64) { (self.buffer, self.epoch) = (buffer, epoch) }

        @discardableResult
        func insert(_ count: Int = 1, padding: Int = 0) throws -> [EventRecord] {
            try (0..<count).map { _ in
                let record = EventRecord(.event(try Made.event(1, 10, padding: padding)), cursor: nil)
                position += 1
                buffer.insert(record, at: FeedCursor(epoch: epoch, position: position))
                return record
            }
        }

        func insertGap() {
            position += 1
            buffer.insert(EventRecord(.gap, cursor: nil), at: FeedCursor(epoch: epoch, position: position))
        }

        /// Returns the number of missing records after a position, whether a gap is among them, and the records that
        /// follow.
        func read(behind position: UInt64 = 0) -> (missing: Int, hasGap: Bool, kept: [EventRecord]) {
            var place = FeedCursor(epoch: epoch, position: position)
            var result: (missing: Int, hasGap: Bool, kept: [EventRecord]) = (0, false, [])
            while true {
                switch buffer.next(behind: place, upTo: .max) {
                case .record(let record):
                    result.kept.append(record)
                    place = place.next
                case .forgotten(let hasGap, let last):
                    result = (result.missing + Int(last - place.position), result.hasGap || hasGap, result.kept)
                    place = FeedCursor(epoch: epoch, position: last)
                case .nothing: return result
                }
            }
        }
    }

    private func buffer(of events: Int) throws -> ReplayBuffer {
        try Made.replayBuffer(of: events)
    }

    @Test func oldestRecordsAreEvicted() throws {
        let inserter = Inserter(try buffer(of: 10), 1)
        let records = try inserter.insert(100)
        let (missing, hasGap, kept) = inserter.read()
        #expect(missing == 90 && !hasGap)
        #expect(kept.map(ObjectIdentifier.init) == records.suffix(10).map(ObjectIdentifier.init))
        #expect(!inserter.buffer.isComplete(behind: FeedCursor(epoch: 1, position: 89)))
        #expect(inserter.buffer.isComplete(behind: FeedCursor(epoch: 1, position: 90)))
        #expect(inserter.read(behind: 95).kept.count == 5)
        #expect(inserter.read(behind: 100).kept.isEmpty)
        #expect(Inserter(inserter.buffer, 2).read() == (0, false, []))
    }

    /// An oversized record is missing, with all earlier records of its feed, but no records of other feeds are.
    @Test func oversizedRecordEvictsNoOtherFeeds() throws {
        let buffer = try buffer(of: 20)
        let (inserter, other) = (Inserter(buffer, 1), Inserter(buffer, 2))
        try inserter.insert(5)
        try other.insert(5)
        try inserter.insert(padding: 3 * Made.recordSize())
        #expect(inserter.read() == (6, false, []))
        #expect(other.read().kept.count == 5)
        try inserter.insert(2)
        #expect(inserter.read().missing == 6 && inserter.read().kept.count == 2)
        #expect(inserter.read(behind: 6).missing == 0)
        // The bytes of its earlier records are free again.
        try other.insert(13)
        #expect(other.read().kept.count == 18 && inserter.read().kept.count == 2)
    }

    /// Records are evicted in their order, even if earlier records of the feed were evicted out of order.
    @Test func recordsBeforeOversizedRecordTakeNoTurn() throws {
        let buffer = try buffer(of: 20)
        let (inserter, other) = (Inserter(buffer, 1), Inserter(buffer, 2))
        try inserter.insert(5)
        try inserter.insert(padding: 3 * Made.recordSize())
        try other.insert(5)
        try inserter.insert(5)
        try other.insert(15)
        #expect(other.read().missing == 5)
        #expect(inserter.read(behind: 6).missing == 0)
    }

    @Test func gapIsKnownAfterItsRecordIsEvicted() throws {
        let inserter = Inserter(try buffer(of: 10), 1)
        try inserter.insert(3)
        inserter.insertGap()
        try inserter.insert(3)
        inserter.insertGap()
        try inserter.insert(30)
        #expect(inserter.read(behind: 3).hasGap)
        #expect(inserter.read(behind: 7).hasGap)
        #expect(!inserter.read(behind: 8).hasGap)
        #expect(inserter.read(behind: 8).missing == 20)
    }

    @Test func recordsOfClosedFeedAreEvictedInTurn() throws {
        let buffer = try buffer(of: 10)
        let (inserter, other) = (Inserter(buffer, 1), Inserter(buffer, 2))
        try inserter.insert(5)
        buffer.close(1)
        try other.insert(5)
        #expect(inserter.read().kept.count == 5)
        try other.insert(2)
        #expect(inserter.read().missing == 2 && inserter.read().kept.count == 3)
        try other.insert(20)
        #expect(inserter.read() == (0, false, []))
        #expect(other.read().kept.count == 10)
    }
}

private func == (
    _ left: (missing: Int, hasGap: Bool, kept: [EventRecord]),
    _ right: (Int, Bool, [EventRecord])
) -> Bool {
    left.missing == right.0 && left.hasGap == right.1 && left.kept.elementsEqual(right.2) { $0 === $1 }
}
