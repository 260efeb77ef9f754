import DequeModule
import Foundation
let brk = ProcessInfo.processInfo.environment["BRK"] ?? ""

/// The times and hashes of a feed's records in the replay buffer, with which a cursor of another gateway is found.
///
/// A section is a part of the feed in which no event is missing: from the broker's acknowledgement, or a gap, to the
/// next gap. The hash of a record covers its section up to it. All times are in milliseconds since the start of this
/// gateway. Only the replay buffer uses a trail, under its lock.
final class RecordTrail {
    /// The duration of a window before its last event.
    static let window: Int64 = 5_000
    /// The maximum difference between the times at which two gateways receive an event.
    static let tolerance: Int64 = 2_000
    /// How long before its last event a window must be preceded by no event. Otherwise this gateway may have received
    /// an event that the other one had not.
    static let quiet: Int64 = window - 1_000

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

    init(_ windows: WindowHash) { self.windows = windows }

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
        guard let begin = section.time,
            brk == "short"
                || (before == section.start
                    ? begin <= time - Self.window : mark(before).time < time - Self.window),
            let count = UInt16(exactly: position - before)
        else { return nil }
        return (count, windows.last(Int(count), of: sequence, behind: prefix(before, in: section)))
    }

    /// Removes the oldest mark.
    func removeFirst() {
        guard let mark = marks.popFirst() else { return }
        removed = mark
        first += 1
        while sections.count > 1, sections[1].start < first { sections.removeFirst() }
    }

    func removeAll() {
        while !marks.isEmpty { removeFirst() }
    }

    /// Whether an event can be told apart from all earlier ones only by its time: there was none for the time of a
    /// window.
    func isQuiet(at time: Int64) -> Bool {
        guard let section = sections.last, section.time != nil else { return false }
        return position == section.start || mark(position).time < time - Self.window
    }

    // MARK: - Search

    /// A search for the record of another gateway's cursor.
    struct Search {
        enum Result: Equatable {
            /// Resume after this position.
            case found(UInt64)
            /// No record matches, or not certainly.
            case nothing
        }

        /// The number of records that one step compares.
        fileprivate static let stride: UInt64 = 1024

        /// The time of the cursor, translated to that of this gateway.
        let time: Int64
        let count: Int
        let hash: UInt64
        /// The next position to compare; nil before the first step.
        fileprivate var next: UInt64?
        /// The only position whose window has the hash, and the hash of the event there.
        fileprivate var place: (position: UInt64, event: UInt64)?
        /// Whether windows are compared; afterwards, events are compared with the one at the place.
        fileprivate var comparesWindows = true

        init(time: Int64, count: Int, hash: UInt64) { (self.time, self.count, self.hash) = (time, count, hash) }

        fileprivate var range: Int64 { comparesWindows ? tolerance : window }
    }

    /// Continues a search.
    ///
    /// - Returns: the result; nil if the search must be continued.
    func advance(_ search: inout Search) -> Search.Result? {
        guard brk == "removed" || removed.time < search.time - Self.window - Self.tolerance else { return .nothing }
        guard search.count > 0 else { return findSilence(at: search.time) }
        let begin = search.next ?? firstPosition(at: search.time - search.range)
        guard begin >= first, var index = sections.lastIndex(where: { $0.start < begin }) else { return .nothing }
        let last = search.time + search.range
        var position = begin
        while position <= self.position, mark(position).time <= last {
            guard brk == "stride" || position < begin + Search.stride else {
                search.next = brk == "next" ? position + 1 : position
                return nil
            }
            while index + 1 < sections.count, sections[index + 1].start < position { index += 1 }
            guard compare(position, in: sections[index], &search) else { return .nothing }
            position += 1
        }
        guard let place = search.place else { return .nothing }
        guard search.comparesWindows, brk != "repeat" else { return .found(place.position) }
        search.comparesWindows = false
        search.next = nil
        return nil
    }

    /// - Returns: false if events are alike, so that it is not certain which one the client has received last. The
    ///   brokers may have delivered them to the other gateway in another order.
    private func compare(_ position: UInt64, in section: Section, _ search: inout Search) -> Bool {
        let sequence = mark(position).prefix
        func event() -> UInt64 { windows.last(1, of: sequence, behind: prefix(position - 1, in: section)) }
        guard search.comparesWindows else {
            return position == search.place?.position || event() != search.place?.event
        }
        let count = UInt64(search.count)
        guard position >= section.start + count, position + 1 >= first + count,
            windows.last(search.count, of: sequence, behind: prefix(position - count, in: section)) == search.hash
        else { return true }
        guard search.place == nil || brk == "two" else { return false }
        let before = position - count
        guard let begin = section.time, brk == "section" || begin <= search.time - Self.window - Self.tolerance,
            brk == "quiet" || (before == section.start ? begin : mark(before).time) < mark(position).time - Self.quiet
        else { return true }
        search.place = (position, event())
        return true
    }

    /// Returns the last position before a silence, in which other gateways have received nothing either.
    private func findSilence(at time: Int64) -> Search.Result {
        guard let section = sections.last, let begin = section.time, begin <= time - Self.window - Self.tolerance
        else { return .nothing }
        let next = firstPosition(at: time - Self.quiet)
        let isSilent = brk == "silence" || next > position || mark(next).time > time + Self.tolerance
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
