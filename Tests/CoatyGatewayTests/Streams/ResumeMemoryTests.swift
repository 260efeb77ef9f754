import Coaty
import Testing

@testable import CoatyGateway

/// What is kept of what was said, and what of it goes.
@Suite struct ResumeMemoryTests {
    /// Says into a memory as a source of an epoch does.
    private final class Speaker {
        let memory: ResumeMemory
        let epoch: UInt64
        var position: UInt64 = 0

        init(_ memory: ResumeMemory, _ epoch: UInt64) { (self.memory, self.epoch) = (memory, epoch) }

        @discardableResult
        func say(_ count: Int = 1, padding: Int = 0) throws -> [EventRecord] {
            try (0..<count).map { _ in
                let record = EventRecord(.event(try Made.event(1, 10, padding: padding)), cursor: nil)
                position += 1
                memory.insert(record, at: StreamCursor(epoch: epoch, position: position))
                return record
            }
        }

        func sayGap() {
            position += 1
            memory.insert(EventRecord(.gap, cursor: nil), at: StreamCursor(epoch: epoch, position: position))
        }

        /// How many are missing behind a place, and how many are there then.
        func reads(behind position: UInt64 = 0) -> (missing: Int, hasGap: Bool, kept: [EventRecord]) {
            var place = StreamCursor(epoch: epoch, position: position)
            var result: (missing: Int, hasGap: Bool, kept: [EventRecord]) = (0, false, [])
            while true {
                switch memory.next(behind: place, upTo: .max) {
                case .record(let record):
                    result.kept.append(record)
                    place = place.next
                case .forgotten(let hasGap, let last):
                    result = (result.missing + Int(last - place.position), result.hasGap || hasGap, result.kept)
                    place = StreamCursor(epoch: epoch, position: last)
                case .nothing: return result
                }
            }
        }
    }

    private func memory(of events: Int) throws -> ResumeMemory {
        ResumeMemory(limit: try Made.recordSize() * events)
    }

    @Test func theOldestGoes() throws {
        let speaker = Speaker(try memory(of: 10), 1)
        let records = try speaker.say(100)
        let (missing, hasGap, kept) = speaker.reads()
        #expect(missing == 90 && !hasGap)
        #expect(kept.map(ObjectIdentifier.init) == records.suffix(10).map(ObjectIdentifier.init))
        #expect(!speaker.memory.isComplete(behind: StreamCursor(epoch: 1, position: 89)))
        #expect(speaker.memory.isComplete(behind: StreamCursor(epoch: 1, position: 90)))
        #expect(speaker.reads(behind: 95).kept.count == 5)
        #expect(speaker.reads(behind: 100).kept.isEmpty)
        #expect(Speaker(speaker.memory, 2).reads() == (0, false, []))
    }

    /// It is missing with what stands before it, of its own source alone.
    @Test func whatIsTooLargeDrivesOutNobody() throws {
        let memory = try memory(of: 20)
        let (speaker, other) = (Speaker(memory, 1), Speaker(memory, 2))
        try speaker.say(5)
        try other.say(5)
        try speaker.say(padding: 3 * Made.recordSize())
        #expect(speaker.reads() == (6, false, []))
        #expect(other.reads().kept.count == 5)
        try speaker.say(2)
        #expect(speaker.reads().missing == 6 && speaker.reads().kept.count == 2)
        #expect(speaker.reads(behind: 6).missing == 0)
        // All that it had kept is free again.
        try other.say(13)
        #expect(other.reads().kept.count == 18 && speaker.reads().kept.count == 2)
    }

    /// Each goes in its own turn, also where its source has lost others before theirs.
    @Test func whatCameBeforeSomethingTooLargeTakesNoTurn() throws {
        let memory = try memory(of: 20)
        let (speaker, other) = (Speaker(memory, 1), Speaker(memory, 2))
        try speaker.say(5)
        try speaker.say(padding: 3 * Made.recordSize())
        try other.say(5)
        try speaker.say(5)
        try other.say(15)
        #expect(other.reads().missing == 5)
        #expect(speaker.reads(behind: 6).missing == 0)
    }

    @Test func aGapIsRememberedWhereItsRecordIsNot() throws {
        let speaker = Speaker(try memory(of: 10), 1)
        try speaker.say(3)
        speaker.sayGap()
        try speaker.say(3)
        speaker.sayGap()
        try speaker.say(30)
        #expect(speaker.reads(behind: 3).hasGap)
        #expect(speaker.reads(behind: 7).hasGap)
        #expect(!speaker.reads(behind: 8).hasGap)
        #expect(speaker.reads(behind: 8).missing == 20)
    }

    @Test func whatAClosedSourceHasSaidGoesInItsTurn() throws {
        let memory = try memory(of: 10)
        let (speaker, other) = (Speaker(memory, 1), Speaker(memory, 2))
        try speaker.say(5)
        memory.close(1)
        try other.say(5)
        #expect(speaker.reads().kept.count == 5)
        try other.say(2)
        #expect(speaker.reads().missing == 2 && speaker.reads().kept.count == 3)
        try other.say(20)
        #expect(speaker.reads() == (0, false, []))
        #expect(other.reads().kept.count == 10)
    }
}

private func == (
    _ left: (missing: Int, hasGap: Bool, kept: [EventRecord]),
    _ right: (Int, Bool, [EventRecord])
) -> Bool {
    left.missing == right.0 && left.hasGap == right.1 && left.kept.elementsEqual(right.2) { $0 === $1 }
}
