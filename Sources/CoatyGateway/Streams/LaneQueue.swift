import Coaty
import DequeModule

/// What waits in a lane while its client is behind, and what was lost there.
struct LaneQueue: Sendable {
    let lane: Lane
    private let overflow: StreamOptions.Overflow
    private let limit: Int
    var throttle: Throttle?
    /// Waits for the end of a throttling interval; to be cancelled when the lane is gone.
    var timer: Task<Void, Never>?
    /// Whether the outlet knows that something waits here.
    var isReady = false
    /// Why nothing more comes, once that is so.
    var end: StreamFrame.EndReason?
    /// What comes before the buffer, and is not bounded here.
    private var prelude: Deque<LaneItem> = []
    /// What comes between both.
    private var snapshot: ObjectSnapshot?
    /// Nil where a newer item of the same key has taken the place of one.
    private var buffer: Deque<LaneItem?> = []
    /// The number of the buffer's first place.
    private var first = 0
    /// How many items wait in the buffer.
    private var count = 0
    /// Whether of each key at most one item waits in the buffer: from the first overflow with `latest` until it is empty.
    private var holdsLatest = false
    /// The number of the place of each key, while that is so.
    private var places: [TopicLevel: Int] = [:]
    /// What was lost between prelude and buffer.
    private var lost = 0
    private var isLossUnknown = false
    /// The bytes of the buffer.
    private(set) var bytes = 0

    init(_ lane: Lane) {
        self.lane = lane
        overflow = lane.options.overflow
        limit = lane.options.buffer
        throttle = lane.options.throttle.map(Throttle.init)
    }

    var isEmpty: Bool { prelude.isEmpty && snapshot == nil && count == 0 && !hasLoss }

    private var hasLoss: Bool { lost > 0 || isLossUnknown }

    /// Appends what comes before all that ``append(_:others:room:)`` brings.
    mutating func prepend(_ items: some Sequence<LaneItem>) { prelude.append(contentsOf: items) }

    mutating func prepend(_ objects: ObjectSnapshot) { snapshot = objects }

    /// Appends an item; where there is no room, the client's overflow policy says what goes.
    ///
    /// - Parameters:
    ///   - others: the bytes that wait in other lanes of the connection.
    ///   - room: how many may wait in all its lanes; one item alone may be larger.
    mutating func append(_ item: LaneItem, others: Int, room: Int) {
        guard end == nil else { return }
        if overflow == .latest, !holdsLatest, count > 0, !hasRoom(for: item, others, room) { keepLatest() }
        guard let item = replacingEarlier(item) else { return }
        while !hasRoom(for: item, others, room) {
            if overflow == .close {
                clearBuffer()
                end = .overflow
                return
            }
            guard let oldest = popBuffer() else { return lose(item) }
            lose(oldest)
        }
        insert(item)
    }

    /// Appends a response, whose bounds are those of its request.
    mutating func append(response frame: StreamFrame) { insert(.response(frame)) }

    /// Ends behind what waits, and what throttling holds back.
    mutating func finish(_ reason: StreamFrame.EndReason, others: Int, room: Int) {
        for item in throttle?.releaseAll() ?? [] { append(item, others: others, room: room) }
        end = end ?? reason
    }

    /// Takes the next item out.
    mutating func pop() -> LaneItem? {
        if let item = prelude.popFirst() { return item }
        if let item = snapshot?.next(for: lane) { return item }
        snapshot = nil
        if hasLoss {
            defer { (lost, isLossUnknown) = (0, false) }
            return .gap(isLossUnknown ? nil : lost)
        }
        return popBuffer()
    }

    /// Puts back what was taken last.
    mutating func putBack(_ item: LaneItem) { prelude.prepend(item) }

    private func hasRoom(for item: LaneItem, _ others: Int, _ room: Int) -> Bool {
        guard count < limit else { return false }
        let waiting = others + bytes
        return waiting == 0 || waiting + item.size <= room
    }

    private mutating func insert(_ item: LaneItem) {
        if holdsLatest, let key = item.key { places[key] = first + buffer.count }
        buffer.append(item)
        count += 1
        bytes += item.size
    }

    private mutating func popBuffer() -> LaneItem? {
        while let place = buffer.popFirst() {
            first += 1
            guard let item = place else { continue }
            count -= 1
            bytes -= item.size
            if count == 0 {
                clearBuffer()
            } else if holdsLatest, let key = item.key {
                places[key] = nil
            }
            return item
        }
        return nil
    }

    private mutating func lose(_ item: LaneItem) {
        switch item {
        case .gap(let count?): lost += count
        case .gap(nil): isLossUnknown = true
        case .event, .response: lost += 1
        }
    }

    /// Keeps of each object the newest alone.
    private mutating func keepLatest() {
        let items = buffer
        clearBuffer()
        holdsLatest = true
        for case let item? in items {
            if let item = replacingEarlier(item) { insert(item) }
        }
    }

    /// Takes what waits of the same object out, where only the newest is to wait.
    ///
    /// - Returns: what is left to tell.
    private mutating func replacingEarlier(_ item: LaneItem) -> LaneItem? {
        guard holdsLatest, let key = item.key, let place = places.removeValue(forKey: key),
            let earlier = buffer[place - first]
        else { return item }
        buffer[place - first] = nil
        count -= 1
        bytes -= earlier.size
        lose(earlier)
        // Else the places of what was taken out grow without bound.
        if buffer.count >= 2 * limit { keepLatest() }
        let remaining = item.replacing(earlier)
        if remaining == nil { lose(item) }
        return remaining
    }

    private mutating func clearBuffer() {
        buffer = []
        first = 0
        count = 0
        bytes = 0
        holdsLatest = false
        places = [:]
    }
}
