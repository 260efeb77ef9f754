/// What a source has said and a client has not been told: read from the memory as the client reads, so that nothing is kept
/// for it alone.
struct Backlog: Sendable {
    private let memory: ResumeMemory
    /// Behind what was told last.
    private var place: StreamCursor
    /// The position of what the source has said last.
    private var end: UInt64
    /// The position of what had been said when the client came: what is missing up to there was not lost here.
    private let beginning: UInt64
    /// How many events were forgotten while the client did not read.
    private var lost = 0

    init(behind place: StreamCursor, upTo end: UInt64, in memory: ResumeMemory) {
        self.memory = memory
        self.place = place
        self.end = end
        beginning = end
    }

    /// The source has said more.
    mutating func extend(upTo end: UInt64) { self.end = end }

    /// The next item that the client wants; nil behind the last, or when the budget is used up.
    ///
    /// - Parameter budget: how many records may be looked at.
    mutating func next(for lane: Lane, _ budget: inout Int) -> LaneItem? {
        while !isEmpty, budget > 0 {
            switch memory.next(behind: place, upTo: end) {
            case .record(let record):
                budget -= 1 + record.size / Outlet.bytesPerStep
                place = place.next
                if let item = lane.item(record) { return item }
            case .forgotten(let hasGap, let last):
                let count = Int(last - place.position)
                // Of what was forgotten nobody knows what a filter would have passed, nor what a gap in it has lost.
                let isCounted = lane.wantsAll && !hasGap
                if isCounted, last > beginning { lost += Int(last - max(place.position, beginning)) }
                place = StreamCursor(epoch: place.epoch, position: last)
                return .gap(isCounted ? count : nil, place)
            case .nothing:
                place = StreamCursor(epoch: place.epoch, position: end)
                return .gap(nil, place)
            }
        }
        return nil
    }

    /// How many events the client has lost since this was asked last.
    mutating func takeLoss() -> Int {
        defer { lost = 0 }
        return lost
    }

    /// How many events there are, of which the client may want less.
    var count: Int { isEmpty ? 0 : Int(end - place.position) }

    /// Whether the client has got all.
    var isEmpty: Bool { place.position >= end }
}
