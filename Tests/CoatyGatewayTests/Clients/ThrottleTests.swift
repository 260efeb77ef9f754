import Coaty
import TestSupport
import Testing

@testable import Base
@testable import Feeds

/// At most one event per object and interval, at instants that the test chooses.
@Suite(.exclusive) struct ThrottleTests {
    private let start = ContinuousClock.now
    private let memory = ClientAccount.single().connection()
    private var throttle = Throttle(interval: .seconds(1))

    private func at(_ milliseconds: Int) -> ContinuousClock.Instant { start + .milliseconds(milliseconds) }

    private func number(_ item: QueuedItem?) -> UInt64? {
        guard case .event(let event)? = item else { return nil }
        // The cursor may belong to an earlier event.
        guard let frame = try? Payload(OutboundFrame(event, id: nil).text), let object = frame.json["data"]?["object"]
        else { return event.cursor?.position }
        return object["n"]?.number.map { UInt64($0) }
    }

    private mutating func take(_ key: Int, _ number: Int, at time: Int, padding: Int = 0) throws -> UInt64? {
        let item = Made.item(try Made.event(key, number, padding: padding), at: UInt64(number))
        return self.number(throttle.take(item, at: at(time), charging: memory))
    }

    private mutating func released(at now: Throttle.Instant) -> [QueuedItem] {
        var items: [QueuedItem] = []
        while let item = throttle.release(at: now) { items.append(item) }
        return items
    }

    @Test mutating func firstEventPassesAndLastFollowsAfterInterval() throws {
        #expect(throttle.next == nil)
        #expect(try take(1, 1, at: 0) == 1)
        #expect(try take(1, 2, at: 1) == nil)
        #expect(try take(2, 3, at: 2) == 3)
        #expect(try take(1, 4, at: 999) == nil)
        #expect(throttle.next == at(1000))
        #expect(released(at: at(999)).isEmpty)
        #expect(released(at: at(1000)).map(number) == [4])
        // The released event starts a new interval.
        #expect(try take(1, 5, at: 1001) == nil)
        #expect(released(at: at(1999)).isEmpty)
        #expect(released(at: at(2000)).map(number) == [5])
    }

    @Test mutating func heldEventsAreReleasedInOrderOfIntervals() throws {
        for key in 1...5 { #expect(try take(key, key, at: key) != nil) }
        for key in (1...5).reversed() { #expect(try take(key, 10 + key, at: 500) == nil) }
        #expect(released(at: at(1003)).map(number) == [11, 12, 13])
        #expect(released(at: at(1005)).map(number) == [14, 15])
    }

    /// The cursor of an event that passes precedes all events that are still held.
    @Test mutating func cursorOfPassingEventPrecedesHeldEvents() throws {
        func position(_ item: QueuedItem?) -> UInt64? { item?.cursor?.position }
        func item(_ key: Int, _ number: Int) throws -> QueuedItem {
            Made.item(try Made.event(key, number), at: UInt64(number))
        }
        #expect(position(throttle.take(try item(1, 1), at: at(0), charging: memory)) == 1)
        #expect(position(throttle.take(try item(2, 2), at: at(1), charging: memory)) == 2)
        #expect(position(throttle.take(try item(2, 3), at: at(2), charging: memory)) == nil)
        #expect(position(throttle.take(try item(3, 4), at: at(3), charging: memory)) == 1)
        #expect(position(throttle.take(try item(3, 5), at: at(4), charging: memory)) == nil)
        #expect(released(at: at(1000)).isEmpty)
        #expect(released(at: at(1001)).map(position) == [2])
        #expect(released(at: at(1003)).map(position) == [5])
    }

    @Test mutating func gapsAndEventsWithoutObjectAreNotThrottled() throws {
        let item = Made.item(try Made.channel(#"{"objects":[]}"#), at: 7)
        for _ in 0..<3 { #expect(number(throttle.take(item, at: at(0), charging: memory)) == 7) }
        guard case .gap(nil, nil)? = throttle.take(.gap(nil, nil), at: at(0), charging: memory) else {
            Issue.record("a gap was held back")
            return
        }
        #expect(throttle.next == nil)
    }

    @Test mutating func nothingIsKeptAfterLastInterval() throws {
        for number in 1...4 { _ = try take(number % 2, number, at: 0) }
        #expect(released(at: at(1000)).count == 2)
        #expect(released(at: at(2000)).isEmpty)
        #expect(throttle.next == nil)
        let (held, bytes) = Self.kept(throttle)
        #expect(held == 0 && bytes == 0)
    }

    @Test mutating func releaseAllReturnsNewestEventOfEachObject() throws {
        for number in 1...6 { _ = try take(number % 3, number, at: 0) }
        #expect(throttle.releaseAll().map(number) == [4, 5, 6])
        #expect(throttle.next == nil)
        #expect(Self.kept(throttle) == (0, 0))
    }

    @Test mutating func objectsBeyondTheBoundAreNotThrottled() throws {
        for key in 0..<Limits().throttledObjects {
            _ = throttle.take(Made.item(try Made.event(key, 1)), at: at(0), charging: memory)
        }
        let other = Limits().throttledObjects
        #expect(try take(other, 1, at: 0) == 1)
        #expect(try take(other, 2, at: 0) == 2)
        #expect(try take(0, 3, at: 0) == nil)
        #expect(Self.kept(throttle).held == Limits().throttledObjects)
    }

    @Test mutating func eventsBeyondByteBoundAreNotThrottled() throws {
        let half = Limits().queuedBytes / 2
        for key in 1...3 { _ = try take(key, key, at: 0) }
        #expect(try take(1, 11, at: 1, padding: half) == nil)
        #expect(try take(2, 12, at: 1, padding: half - 2000) == nil)
        #expect(try take(3, 13, at: 1, padding: half) == 13)
        // A larger event replaces the held one and passes immediately.
        #expect(try take(2, 14, at: 1, padding: half) == 14)
        #expect(Self.kept(throttle).bytes <= Limits().queuedBytes)
        #expect(released(at: at(1000)).map(number) == [11])
        #expect(Self.kept(throttle).bytes == 0)
    }

    @Test mutating func additionAndRemovalCancelOut() throws {
        #expect(throttle.take(Made.item(try Made.change(.removed, 1)), at: at(0), charging: memory) != nil)
        #expect(throttle.take(Made.item(try Made.change(.added, 1)), at: at(1), charging: memory) == nil)
        #expect(throttle.take(Made.item(try Made.change(.removed, 1)), at: at(2), charging: memory) == nil)
        #expect(released(at: at(1000)).isEmpty)
        #expect(throttle.next == nil)
    }

    /// Returns the number of objects that the throttle keeps, and the bytes of their held events.
    private static func kept(_ throttle: Throttle) -> (held: Int, bytes: Int) {
        var result = (held: -1, bytes: -1)
        for (label, value) in Mirror(reflecting: throttle).children {
            if label == "held", let held = value as? [KeyedDigest: QueuedItem?] { result.held = held.count }
            if label == "bytes", let bytes = value as? Int { result.bytes = bytes }
        }
        return result
    }
}
