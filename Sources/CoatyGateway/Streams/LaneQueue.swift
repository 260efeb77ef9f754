import Coaty
import DequeModule

/// What waits in a lane while its client is behind, and what was lost there.
struct LaneQueue: Sendable {
    let lane: Lane
    private let overflow: StreamOptions.Overflow
    private let limit: Int
    var throttle: Throttle?
    /// When what throttling holds back is looked at; it goes with the lane.
    var deadline: Deadline?
    /// Whether the outlet knows that something waits here.
    var isReady = false
    /// Why nothing more comes, once that is so.
    var end: StreamFrame.EndReason?
    /// Whether the client has not been told yet that it has begun.
    private(set) var isHeld: Bool
    /// Whether it is the lane of a request.
    private(set) var holdsResponses = false
    /// What is told next, before all else.
    private var next: LaneItem?
    private var snapshot: ObjectSnapshot?
    /// Nil where the client has got all that came before the buffer.
    private var backlog: Backlog?
    /// Nil where a newer item of the same key has taken the place of one.
    private var buffer: Deque<LaneItem?> = []
    /// The number of the buffer's first place.
    private var first = 0
    /// How many items wait in the buffer, and how many of these are events.
    private var count = 0
    private var events = 0
    /// Whether of each key at most one item waits in the buffer: from the first overflow with `latest` until it is empty.
    private var holdsLatest = false
    /// The number of the place of each key, while that is so.
    private var places: [WireName: Int] = [:]
    /// What was lost before the buffer.
    private var lost = 0
    private var isLossUnknown = false
    /// How many events were lost here since the lane began, as far as that is known.
    private(set) var lostInAll = 0
    /// The bytes of the buffer.
    private var bufferBytes = 0

    init(_ lane: Lane, isHeld: Bool) {
        self.lane = lane
        self.isHeld = isHeld
        overflow = lane.options.overflow
        limit = lane.options.buffer
        throttle = lane.options.throttle.map(Throttle.init)
    }

    /// The bytes that wait.
    var bytes: Int { bufferBytes + (next?.size ?? 0) + (throttle?.footprint ?? 0) }

    /// How many events and objects wait for the client to read, at most: of what was said before, it may want less. What
    /// throttling holds back does not wait for the client.
    var waiting: Int {
        let first = if case .event? = next { 1 } else { 0 }
        return first + (snapshot?.count ?? 0) + (backlog?.count ?? 0) + events
    }

    /// The bytes that wait for the client to read.
    var waitingBytes: Int { bufferBytes + (next?.size ?? 0) }

    var isEmpty: Bool { next == nil && !isBehind && count == 0 && !hasLoss }

    /// Whether there is something to be told that was said before.
    var isBehind: Bool { snapshot != nil || backlog != nil }

    private var hasLoss: Bool { lost > 0 || isLossUnknown }

    /// Lets the client be told what there is.
    mutating func begin(_ beginning: LaneBeginning) {
        isHeld = false
        next = beginning.gap
        snapshot = beginning.snapshot
        backlog = beginning.backlog
    }

    /// Appends an item; where there is no room, the client's overflow policy says what goes.
    ///
    /// - Parameters:
    ///   - others: the bytes that wait in other lanes of the connection.
    ///   - room: how many may wait in all its lanes; one item alone may be larger.
    mutating func append(_ item: LaneItem, others: Int, room: Int) {
        guard end == nil else { return }
        if !hasRoom(for: item, others, room), leaveToBacklog(item) { return }
        if overflow == .latest, !holdsLatest, count > 0, !hasRoom(for: item, others, room) { keepLatest() }
        guard let item = replacingEarlier(item) else { return }
        while !hasRoom(for: item, others, room) {
            if overflow == .close {
                for case let waiting? in buffer { lose(waiting) }
                lose(item)
                for held in throttle?.releaseAll() ?? [] { lose(held) }
                clearBuffer()
                // The end says that something is missing.
                (lost, isLossUnknown) = (0, false)
                throttle = nil
                end = .overflow
                return
            }
            guard let oldest = popBuffer() else { return lose(item) }
            lose(oldest)
        }
        insert(item)
    }

    /// Leaves what waits, and an item, to the backlog, where the client has not got all of that and it has these, too.
    ///
    /// - Returns: whether it did.
    private mutating func leaveToBacklog(_ item: LaneItem) -> Bool {
        guard backlog != nil, overflow == .dropOldest, throttle == nil, let cursor = item.cursor else { return false }
        clearBuffer()
        backlog?.extend(upTo: cursor.position)
        return true
    }

    /// Appends a response, whose bounds are those of its request.
    mutating func append(response frame: StreamFrame) {
        holdsResponses = true
        insert(.response(frame))
    }

    /// Ends behind what waits, and what throttling holds back.
    mutating func finish(_ reason: StreamFrame.EndReason) {
        guard end == nil else { return }
        // Their number is bounded there.
        for item in throttle?.releaseAll() ?? [] { insert(item) }
        end = reason
    }

    /// Takes the next item out; nil where nothing waits, or the budget is used up.
    ///
    /// - Parameter budget: how much of what was said before may be looked at.
    mutating func pop(_ budget: inout Int) -> LaneItem? {
        if let next {
            self.next = nil
            return next
        }
        if let item = snapshot?.next(for: lane, &budget) { return item }
        if snapshot?.isEmpty ?? false { snapshot = nil }
        guard snapshot == nil else { return nil }
        let item = backlog?.next(for: lane, &budget)
        lostInAll += backlog?.takeLoss() ?? 0
        if backlog?.isEmpty ?? false { backlog = nil }
        guard item == nil, backlog == nil else { return item }
        if hasLoss {
            defer { (lost, isLossUnknown) = (0, false) }
            return .gap(isLossUnknown ? nil : lost, nil)
        }
        return popBuffer()
    }

    /// Puts back what was taken last.
    mutating func putBack(_ item: LaneItem) { next = item }

    private func hasRoom(for item: LaneItem, _ others: Int, _ room: Int) -> Bool {
        guard count < limit else { return false }
        let waiting = others + bytes
        return waiting == 0 || waiting + item.size <= room
    }

    private mutating func insert(_ item: LaneItem) {
        if holdsLatest, let key = item.key { places[key] = first + buffer.count }
        buffer.append(item)
        count += 1
        events += item.isEvent ? 1 : 0
        bufferBytes += item.size
    }

    /// Counts an item as taken out of the buffer.
    private mutating func discount(_ item: LaneItem) {
        count -= 1
        events -= item.isEvent ? 1 : 0
        bufferBytes -= item.size
    }

    private mutating func popBuffer() -> LaneItem? {
        while let place = buffer.popFirst() {
            first += 1
            guard let item = place else { continue }
            discount(item)
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
        case .gap(let count?, _): lost += count
        case .gap(nil, _): isLossUnknown = true
        case .event, .response:
            lost += 1
            lostInAll += 1
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
        discount(earlier)
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
        events = 0
        bufferBytes = 0
        holdsLatest = false
        places = [:]
    }
}
