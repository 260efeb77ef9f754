import DequeModule

/// The times and hashes of a feed's records, with which a cursor of another gateway is found. A record is found only with
/// those of the last seconds before it, so their marks may stay when their records have been evicted from the replay
/// buffer.
///
/// A section is a part of the feed in which no event is missing: from the broker's acknowledgement, or a gap, to the
/// next gap. The hash of a record covers its section up to it. All times are in milliseconds since the start of this
/// gateway. Only the replay buffer uses a trail, under its lock.
final class RecordTrail {
    /// The duration of a window before its last event.
    static let window: Int64 = 5_000
    /// The maximum difference between the times at which two gateways receive an event.
    static let tolerance: Int64 = 2_000
    /// Maximum age of the marks that are needed to find the cursor of a record, relative to the record.
    static let reach = window + 2 * tolerance
    /// The size of a mark, in bytes.
    static let markSize = MemoryLayout<Mark>.stride

    private struct Mark {
        let time: Int64
        let prefix: UInt64
    }

    private struct Section {
        /// The position after which the section begins.
        let start: UInt64
        /// When it began; nil while the broker has not acknowledged the subscription.
        var time: Int64?
    }

    private let windows: WindowHash
    private var marks: Deque<Mark> = []
    /// The position of the first mark.
    private var first: UInt64 = 1
    /// The mark before the first one.
    private var removed = Mark(time: .min, prefix: 0)
    private var sections: Deque<Section> = [Section(start: 0)]
    /// The first position of the last window.
    private var windowStart: UInt64 = 1
    /// The records that were found last, with the time of the last event at that moment. When a gateway fails, many
    /// clients send the same cursors.
    private var cache: Deque<(cursor: Search.Cursor, position: UInt64, time: Int64)> = []
    /// Maximum number of these records, and how long one is valid if events follow, in milliseconds.
    private static let cacheLimit = (count: 64, duration: Int64(1_000))

    init(_ windows: WindowHash) { self.windows = windows }

    /// The number of marks.
    var count: Int { marks.count }

    /// The position of the last record.
    private var position: UInt64 { first + UInt64(marks.count) - 1 }

    private func mark(_ position: UInt64) -> Mark {
        position < first ? removed : marks[Int(position - first)]
    }

    private func prefix(_ position: UInt64, in section: Section) -> UInt64 {
        position == section.start ? 0 : mark(position).prefix
    }

    // MARK: - Records

    /// Begins a section after the last record.
    ///
    /// - Parameter time: nil if the broker must still acknowledge the subscription.
    func begin(at time: Int64?) {
        if sections.last?.start == position { sections.removeLast() }
        sections.append(Section(start: position, time: time))
    }

    /// Appends a gap, and begins a section after it.
    func appendGap(at time: Int64) {
        let isStanding = sections.last?.time != nil
        marks.append(Mark(time: time, prefix: 0))
        begin(at: isStanding ? time : nil)
    }

    /// Appends an event.
    ///
    /// - Returns: the length and the hash of its window; nil if the section is shorter than a window, or the window has
    ///   too many events.
    func append(_ hash: UInt64, at time: Int64) -> (count: UInt16, hash: UInt64)? {
        guard let section = sections.last else { return nil }
        let sequence = windows.appending(hash, to: prefix(position, in: section))
        marks.append(Mark(time: time, prefix: sequence))
        windowStart = max(windowStart, section.start + 1, first)
        while mark(windowStart).time < time - Self.window { windowStart += 1 }
        // A part of a window could be found where it does not belong.
        let before = windowStart - 1
        guard let begin = section.time, let count = UInt16(exactly: position - before),
            before == section.start ? begin <= time - Self.window : mark(before).time < time - Self.window
        else { return nil }
        return (count, windows.last(Int(count), of: sequence, behind: prefix(before, in: section)))
    }

    /// Removes marks before a position.
    ///
    /// - Parameter reach: maximum age of the marks that stay, relative to the mark at the position, in milliseconds.
    /// - Returns: the number of removed marks.
    func removeMarks(before position: UInt64, beyond reach: Int64) -> Int {
        let end = min(position, first + UInt64(marks.count))
        guard end > first else { return 0 }
        let limit = mark(min(end, self.position)).time - reach
        let before = first
        while first < end, let oldest = marks.first, reach == 0 || oldest.time < limit {
            removed = oldest
            marks.removeFirst()
            first += 1
        }
        while sections.count > 1, sections[1].start < first { sections.removeFirst() }
        return Int(first - before)
    }

    /// Whether an event can be told apart from all earlier ones only by its time: there was none for the time of a
    /// window.
    func isQuiet(at time: Int64) -> Bool {
        guard let section = sections.last, section.time != nil else { return false }
        return position == section.start || mark(position).time < time - Self.window
    }

    // MARK: - Search

    /// A search for the record of another gateway's cursor, in steps.
    ///
    /// The record is found by its window: the events in it are the same, in the same order, and both gateways have
    /// received each within ``tolerance``. Brokers may deliver events to the gateways in different orders, and events may
    /// be equal. So the record is certain only if no event that may be in the window of one gateway alone equals another
    /// one that may be: then the windows, and all events up to the record, contain the same.
    struct Search {
        enum Result: Equatable {
            /// Resume after this position.
            case found(UInt64)
            /// No record matches, or not certainly.
            case nothing
        }

        fileprivate enum Phase {
            /// Compare windows.
            case windows
            /// Look for events that equal the one that was found.
            case repetitions
            /// Collect the last events of the window: the other gateway may have received them after the record.
            case last
            /// Look for equal events before the window: they may be in the other window.
            case before
            /// Collect the first events of the window: the other gateway may have received them before its window.
            case first
            /// Look for equal events after the record: they may be in the other window.
            case after
        }

        /// The number of records that one step compares.
        fileprivate static let stride: UInt64 = 256

        /// What is looked for.
        fileprivate struct Cursor: Equatable {
            let time: Int64
            let count: UInt64
            let hash: UInt64
        }

        fileprivate let cursor: Cursor
        /// The time of the cursor, translated to that of this gateway.
        fileprivate var time: Int64 { cursor.time }
        fileprivate var count: UInt64 { cursor.count }
        fileprivate var hash: UInt64 { cursor.hash }
        fileprivate var phase = Phase.windows
        /// The next position to compare; nil at the begin of a phase.
        fileprivate var next: UInt64?
        /// A position whose window has the hash, and the hash of the event there.
        fileprivate var place: (position: UInt64, event: UInt64)?
        /// Hashes of collected events.
        fileprivate var events: Set<UInt64> = []

        init(time: Int64, count: UInt16, hash: UInt64) {
            cursor = Cursor(time: time, count: UInt64(count), hash: hash)
        }

        /// The earliest time of a record that the other gateway may have in its window.
        fileprivate var begin: Int64 { time - window - tolerance }

        /// The times of the records that the phase compares.
        fileprivate var times: ClosedRange<Int64> {
            switch phase {
            case .windows, .last, .after: time - tolerance...time + tolerance
            case .repetitions: time - window...time + window
            case .before: begin...time
            case .first: begin...time - window + tolerance
            }
        }

        /// The positions of the records that the phase compares.
        fileprivate var positions: ClosedRange<UInt64> {
            guard let position = place?.position else { return 0...(.max) }
            return switch phase {
            case .windows, .repetitions: 0...(.max)
            case .last, .first: position - count + 1...position
            case .before: 0...position - count
            case .after: position + 1...(.max)
            }
        }

        /// Ends a phase.
        ///
        /// - Returns: whether this was the last one.
        fileprivate mutating func endPhase() -> Bool {
            next = nil
            switch phase {
            case .windows: phase = .repetitions
            case .repetitions: phase = .last
            case .last: phase = .before
            case .before: (phase, events) = (.first, [])
            case .first: phase = .after
            case .after: return true
            }
            return false
        }
    }

    /// Continues a search.
    ///
    /// - Returns: the result; nil if the search must be continued.
    func advance(_ search: inout Search) -> Search.Result? {
        let time = mark(position).time
        if let known = cache.first(where: { $0.cursor == search.cursor }), time - known.time <= Self.cacheLimit.duration
        {
            return .found(known.position)
        }
        let result = step(&search)
        if case .found(let position) = result, search.count > 0 {
            cache.removeAll { $0.cursor == search.cursor }
            if cache.count == Self.cacheLimit.count { cache.removeFirst() }
            cache.append((search.cursor, position, time))
        }
        return result
    }

    private func step(_ search: inout Search) -> Search.Result? {
        guard removed.time < search.begin else { return .nothing }
        guard search.count > 0 else { return findSilence(at: search.time) }
        let (times, positions) = (search.times, search.positions)
        var position = search.next ?? max(firstPosition(at: times.lowerBound), positions.lowerBound)
        guard position >= first, var index = sections.lastIndex(where: { $0.start < position }) else { return .nothing }
        let limit = position + Search.stride
        let end = min(self.position, positions.upperBound)
        while position <= end, mark(position).time <= times.upperBound {
            guard position < limit else {
                search.next = position
                return nil
            }
            while index + 1 < sections.count, sections[index + 1].start < position { index += 1 }
            guard compare(position, in: sections[index], &search) else { return .nothing }
            position += 1
        }
        guard let place = search.place else { return .nothing }
        return search.endPhase() ? .found(place.position) : nil
    }

    /// - Returns: false if it is not certain which events the client has received.
    private func compare(_ position: UInt64, in section: Section, _ search: inout Search) -> Bool {
        let sequence = mark(position).prefix
        func event() -> UInt64 { windows.last(1, of: sequence, behind: prefix(position - 1, in: section)) }
        switch search.phase {
        case .windows:
            // If there are several, their last events are alike, which the next phase finds.
            if hasWindow(position, in: section, search) { search.place = (position, event()) }
            return true
        case .repetitions: return position == search.place?.position || event() != search.place?.event
        case .last, .first:
            search.events.insert(event())
            return true
        case .before: return !search.events.contains(event())
        case .after: return !search.events.contains(event())
        }
    }

    /// Returns whether the window up to a position may be that of the cursor.
    private func hasWindow(_ position: UInt64, in section: Section, _ search: Search) -> Bool {
        guard position >= section.start + search.count, position + 1 >= first + search.count,
            let begin = section.time, begin <= search.begin
        else { return false }
        let before = position - search.count
        // The other gateway has received nothing more between the window's events, and the window at that time.
        guard before == section.start || mark(before).time < search.time - Self.tolerance,
            mark(before + 1).time >= search.begin
        else { return false }
        let beginning = prefix(before, in: section)
        return windows.last(Int(search.count), of: mark(position).prefix, behind: beginning) == search.hash
    }

    /// Returns the last position before a silence, in which other gateways have received nothing either.
    private func findSilence(at time: Int64) -> Search.Result {
        guard let section = sections.last, let begin = section.time, begin <= time - Self.window - Self.tolerance
        else { return .nothing }
        let next = firstPosition(at: time - Self.window + Self.tolerance)
        let isSilent = next > position || mark(next).time > time + Self.tolerance
        return isSilent ? .found(next - 1) : .nothing
    }

    /// Returns the first position whose record is not older than a time.
    private func firstPosition(at time: Int64) -> UInt64 {
        var range = 0..<marks.count
        while !range.isEmpty {
            let middle = (range.lowerBound + range.upperBound) / 2
            range = marks[middle].time < time ? middle + 1..<range.upperBound : range.lowerBound..<middle
        }
        return first + UInt64(range.lowerBound)
    }
}
