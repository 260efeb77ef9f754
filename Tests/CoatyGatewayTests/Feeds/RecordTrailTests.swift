import TestSupport
import Testing

@testable import Base
@testable import CoatyGateway
@testable import Feeds

/// The search for the place of another gateway's cursor, with random sequences that two gateways receive.
@Suite(.exclusive) struct RecordTrailTests {
    private static let windows = WindowHash(base: 0x1234_5678_9ABC_DEF0)

    /// One gateway: its trail, and what is true about it.
    private final class Gateway {
        struct Place {
            let event: Int
            let position: UInt64
            let time: Int64
            let window: (count: UInt16, hash: UInt64)
        }

        let trail = RecordTrail(windows)
        /// By event.
        var positions: [Int: UInt64] = [:]
        var places: [Place] = []
        /// The positions of the gaps in which events are missing.
        var gaps: [Int: UInt64] = [:]
        private var position: UInt64 = 0
        private var lost: [Int] = []

        func begin(at time: Int64?) { trail.begin(at: time) }

        func receive(_ event: Int, _ hash: UInt64, at time: Int64) {
            position += 1
            positions[event] = position
            guard let window = trail.append(hash, at: time) else { return }
            places.append(Place(event: event, position: position, time: time, window: window))
        }

        func removeMarks(_ count: Int) {
            _ = trail.removeMarks(before: position - UInt64(max(0, trail.count - count)) + 1, beyond: 0)
        }

        func lose(_ event: Int) { lost.append(event) }

        func noteGap(at time: Int64) {
            position += 1
            trail.appendGap(at: time)
            for event in lost { gaps[event] = position }
            lost = []
        }

        func find(_ place: Place, at time: Int64) -> UInt64? {
            var search = RecordTrail.Search(time: time, count: place.window.count, hash: place.window.hash)
            while true {
                switch trail.advance(&search) {
                case .found(let position): return position
                case .nothing: return nil
                case nil: continue
                }
            }
        }
    }

    enum Order: CaseIterable {
        /// Each gateway receives the events in the order of their times, with a delay of less than half a second.
        case equal
        /// Each event has a delay of its own, of up to 1.9 s.
        case different
    }

    private struct Sequence {
        var events: [(time: Int64, hash: UInt64)] = []

        init(_ random: inout SeededGenerator) {
            // Some sequences repeat equal events, regularly or not.
            let contents = [1, 2, 5, Int.max].randomElement(using: &random) ?? 1
            let interval = [20, 300, 1500, 6000].randomElement(using: &random) ?? 20
            let isRegular = Bool.random(using: &random)
            var time: Int64 = 20_000
            for number in 0..<Int.random(in: 20...300, using: &random) {
                time += Int64(isRegular ? interval : Int.random(in: 0...2 * interval, using: &random))
                // A pause that separates windows.
                if Int.random(in: 0..<40, using: &random) == 0 { time += 15_000 }
                let content = contents == .max ? number : Int.random(in: 0..<contents, using: &random)
                events.append((time, (UInt64(content) + 1) &* 0x9E37_79B9_7F4A_7C15))
            }
        }
    }

    private static func gateway(
        _ sequence: Sequence,
        _ order: Order,
        isPerfect: Bool,
        _ random: inout SeededGenerator
    ) -> Gateway {
        let gateway = Gateway()
        let delay = Int64.random(in: 0...400, using: &random)
        let arrivals = sequence.events.enumerated().map { index, event in
            let own = order == .equal ? delay : Int64.random(in: 0...1900, using: &random)
            return (event: index, time: event.time + own, hash: event.hash)
        }.sorted { ($0.time, $0.event) < ($1.time, $1.event) }
        let start = isPerfect ? 0 : Int.random(in: 0..<arrivals.count, using: &random)
        let begin = isPerfect ? 0 : arrivals[start].time - Int64.random(in: 1...20_000, using: &random)
        gateway.begin(at: begin)
        var index = arrivals.firstIndex { $0.time >= begin } ?? 0
        while index < arrivals.count {
            let arrival = arrivals[index]
            index += 1
            gateway.receive(arrival.event, arrival.hash, at: arrival.time)
            guard !isPerfect else { continue }
            switch Int.random(in: 0..<60, using: &random) {
            case 0:
                // Events are missing before a gap.
                let end = min(arrivals.count, index + Int.random(in: 1...3, using: &random))
                for missing in arrivals[index..<end] { gateway.lose(missing.event) }
                gateway.noteGap(at: arrivals[end - 1].time)
                index = end
            case 1:
                // The session is offline.
                let end = min(arrivals.count, index + Int.random(in: 1...10, using: &random))
                for missing in arrivals[index..<end] { gateway.lose(missing.event) }
                gateway.noteGap(at: arrival.time)
                gateway.begin(at: nil)
                gateway.begin(at: arrivals[end - 1].time)
                index = end
            case 2...10: gateway.removeMarks(Int.random(in: 1...5, using: &random))
            case 11 where Bool.random(using: &random): gateway.removeMarks(.max)
            default: break
            }
        }
        return gateway
    }

    /// A cursor is found only after exactly the events that the client has received.
    @Test(arguments: Order.allCases, 0..<300 as Range<UInt64>)
    func cursorsAreNeverFoundAtAWrongPlace(_ order: Order, _ seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let sequence = Sequence(&random)
        let former = Self.gateway(sequence, order, isPerfect: false, &random)
        let next = Self.gateway(sequence, order, isPerfect: false, &random)
        let skew = Int64.random(in: -50...50, using: &random)
        for place in former.places {
            guard let found = next.find(place, at: place.time + skew) else { continue }
            // Equal events can't be told apart, so they are only counted.
            var counts: [UInt64: (missing: Int, repeated: Int)] = [:]
            for (event, (_, hash)) in sequence.events.enumerated() {
                var (missing, repeated) = counts[hash] ?? (0, 0)
                let isLater = former.positions[event] ?? former.gaps[event] ?? 0 > place.position
                // After a gap, a client may get missing events.
                let mayArrive = isLater || former.positions[event] == nil
                let arrives = next.positions[event] ?? 0 > found
                let isAnnounced = arrives || next.gaps[event] ?? 0 > found
                missing += (isLater ? 1 : 0) - (isAnnounced ? 1 : 0)
                repeated += (arrives ? 1 : 0) - (mayArrive ? 1 : 0)
                counts[hash] = (missing, repeated)
            }
            let wrong = counts.values.contains { $0.missing > 0 || $0.repeated > 0 }
            #expect(!wrong, "\(place) was found at \(found)")
        }
    }

    /// If the events differ, and nothing is missing at either gateway, each cursor is found.
    @Test(arguments: 0..<100 as Range<UInt64>)
    func cursorsAreFoundInEqualSequences(_ seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var sequence = Sequence(&random)
        for index in sequence.events.indices { sequence.events[index].hash = random.next() }
        let former = Self.gateway(sequence, .equal, isPerfect: true, &random)
        let next = Self.gateway(sequence, .equal, isPerfect: true, &random)
        #expect(former.places.count == sequence.events.count)
        for place in former.places { #expect(next.find(place, at: place.time) == place.position) }
    }

    /// The count of a window has 16 bits; the search compares them in several steps.
    @Test func windowsAreFoundAmongManyEvents() throws {
        let (former, next) = (Gateway(), Gateway())
        former.begin(at: 0)
        next.begin(at: 0)
        for event in 0..<80_000 {
            // 10,000 events a second.
            let (hash, time) = (UInt64(event) &* 0x9E37_79B9_7F4A_7C15, 20_000 + Int64(event / 10))
            former.receive(event, hash, at: time)
            next.receive(event, hash, at: time + 30)
        }
        for index in [0, 1, 49_999, 50_000, 60_000, 79_999] {
            let place = former.places[index]
            #expect(next.find(place, at: place.time) == place.position)
        }
        #expect(former.places[60_000].window.count == 50_001)
    }

    /// Many clients may send the same cursor.
    @Test func foundCursorsAreCached() throws {
        let (former, next) = (Gateway(), Gateway())
        former.begin(at: 0)
        next.begin(at: 0)
        func receive(_ events: Range<Int>) {
            for event in events {
                let (hash, time) = (UInt64(event + 1) &* 0x9E37_79B9_7F4A_7C15, 20_000 + Int64(2 * event))
                former.receive(event, hash, at: time)
                next.receive(event, hash, at: time)
            }
        }
        receive(0..<3000)
        let place = former.places[2900]
        func steps() -> Int {
            var search = RecordTrail.Search(time: place.time, count: place.window.count, hash: place.window.hash)
            var steps = 1
            while next.trail.advance(&search) == nil { steps += 1 }
            #expect(next.trail.advance(&search) == .found(place.position))
            return steps
        }
        #expect(steps() > 10)
        #expect(steps() == 1)
        receive(3000..<3400)
        #expect(steps() == 1)
        receive(3400..<3600)
        #expect(steps() > 10)
    }

    /// A step ends at any record.
    @Test func eachRecordIsComparedInSomeStep() {
        let (former, next) = (Gateway(), Gateway())
        former.begin(at: 0)
        next.begin(at: 0)
        for event in 0..<3000 {
            let hash = UInt64(event + 1) &* 0x9E37_79B9_7F4A_7C15
            former.receive(event, hash, at: 20_000 + Int64(2 * event))
            next.receive(event, hash, at: 20_010 + Int64(2 * event))
        }
        for place in former.places[..<600] { #expect(next.find(place, at: place.time) == place.position) }
    }

    /// The events of both gateways, by content and time. The client has received the last one of the first gateway.
    struct Reordering: Sendable {
        let former: [(String, Int64)]
        let next: [(String, Int64)]
    }

    static let reorderings = [
        // An equal event, long before: the other gateway has not received it in this order.
        Reordering(former: [("c", 43_794), ("e", 44_344)], next: [("c", 31_441), ("e", 43_862), ("c", 44_873)]),
        // The event before the window is in it at the other gateway, which has not received the last equal one.
        Reordering(
            former: [("c", 61_311), ("c", 63_796), ("e", 65_045)],
            next: [("c", 60_734), ("c", 62_666), ("c", 64_569), ("e", 65_874)]
        ),
        // The first event of the window is not in it at the other gateway, but an equal one that arrives later.
        Reordering(
            former: [("c", 39_500), ("c", 44_000), ("e", 45_000)],
            next: [("c", 41_000), ("e", 45_000), ("c", 45_900)]
        ),
        // An event that the other gateway had not received.
        Reordering(former: [("c", 44_000), ("e", 45_000)], next: [("d", 43_900), ("c", 44_000), ("e", 45_000)]),
    ]

    @Test(arguments: reorderings)
    func reorderedEventsAreNotFound(_ events: Reordering) throws {
        func gateway(_ events: [(String, Int64)]) -> Gateway {
            let gateway = Gateway()
            gateway.begin(at: 0)
            for (index, (content, time)) in events.enumerated() {
                gateway.receive(index, UInt64(content.utf8.first ?? 0) &* 0x9E37_79B9_7F4A_7C15, at: time)
            }
            return gateway
        }
        let place = try #require(gateway(events.former).places.last)
        #expect(gateway(events.next).find(place, at: place.time) == nil)
    }

    /// Without an event in the time of a window, only the time decides.
    @Test func silenceIsFoundIfNothingWasReceivedAround() {
        let next = Gateway()
        next.begin(at: 10_000)
        func find(at time: Int64) -> UInt64? {
            next.find(Gateway.Place(event: 0, position: 0, time: time, window: (0, 0)), at: time)
        }
        #expect(find(at: 16_999) == nil && find(at: 17_000) == 0)
        next.receive(0, 1, at: 30_000)
        next.receive(1, 1, at: 40_000)
        #expect(find(at: 27_999) == 0 && find(at: 28_001) == nil)
        #expect(find(at: 32_999) == nil && find(at: 33_001) == 1 && find(at: 37_999) == 1)
        #expect(find(at: 50_000) == 2)
        next.removeMarks(1)
        #expect(find(at: 34_001) == nil && find(at: 37_999) == 1)
        next.noteGap(at: 60_000)
        #expect(find(at: 50_000) == nil && find(at: 66_999) == nil && find(at: 67_000) == 3)
        next.begin(at: nil)
        #expect(find(at: 90_000) == nil)
    }

    @Test func windowHashesFollowFromPrefixes() {
        var random = SeededGenerator(seed: 7)
        let elements = (0..<1000).map { _ in random.next() }
        let prefixes = elements.reduce(into: [0]) { $0.append(Self.windows.appending($1, to: $0[$0.count - 1])) }
        for _ in 0..<200 {
            let begin = Int.random(in: 0..<1000, using: &random)
            let end = Int.random(in: begin...1000, using: &random)
            let expected = elements[begin..<end].reduce(0) { Self.windows.appending($1, to: $0) }
            #expect(Self.windows.last(end - begin, of: prefixes[end], behind: prefixes[begin]) == expected)
            #expect(expected < WindowHash.modulus)
        }
    }
}
