import DequeModule

/// What waits in a lane while its client is behind, and what was lost there.
struct LaneQueue: Sendable {
    let lane: Lane
    private let overflow: StreamOptions.Overflow
    private let limit: Int
    var throttle: Throttle?
    /// Waits for the end of throttling intervals; nil while none is under way.
    var timer: Task<Void, Never>?
    /// Whether the outlet knows that something waits here.
    var isReady = false
    /// Why nothing more comes, once that is so.
    var end: StreamFrame.EndReason?
    /// What comes before the buffer, and is not bounded here.
    private var prelude: Deque<LaneItem> = []
    /// What comes between both.
    private var snapshot: ObjectSnapshot?
    private var buffer: Deque<LaneItem> = []
    /// How often each key waits in the buffer, for `latest`.
    private var keys: [String: Int] = [:]
    private var keyed = 0
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

    var isEmpty: Bool { prelude.isEmpty && snapshot == nil && buffer.isEmpty && !hasLoss }

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
        while !hasRoom(for: item, others, room) {
            guard !buffer.isEmpty else { return lose(item) }
            switch overflow {
            case .close:
                clearBuffer()
                end = .overflow
                return
            case .latest where keyed > keys.count: keepLatest()
            case .latest, .dropOldest: if let oldest = popBuffer() { lose(oldest) }
            }
        }
        insert(item)
    }

    /// Appends a response, whose bounds are those of its request.
    mutating func append(response frame: StreamFrame) { insert(.response(frame)) }

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
        guard buffer.count < limit else { return false }
        let waiting = others + bytes
        return waiting == 0 || waiting + item.size <= room
    }

    private mutating func insert(_ item: LaneItem) {
        buffer.append(item)
        bytes += item.size
        guard overflow == .latest, let key = item.key else { return }
        keys[key, default: 0] += 1
        keyed += 1
    }

    private mutating func popBuffer() -> LaneItem? {
        guard let item = buffer.popFirst() else { return nil }
        bytes -= item.size
        if overflow == .latest, let key = item.key {
            keyed -= 1
            keys[key] = keys[key].flatMap { $0 > 1 ? $0 - 1 : nil }
        }
        return item
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
        var kept: [LaneItem?] = []
        var places: [String: Int] = [:]
        for item in buffer {
            guard let key = item.key else {
                kept.append(item)
                continue
            }
            var remaining: LaneItem? = item
            if let place = places[key], let earlier = kept[place] {
                kept[place] = nil
                lose(earlier)
                remaining = item.replacing(earlier)
                if remaining == nil { lose(item) }
            }
            places[key] = remaining == nil ? nil : kept.count
            kept.append(remaining)
        }
        clearBuffer()
        for case let item? in kept { insert(item) }
    }

    private mutating func clearBuffer() {
        buffer = []
        keys = [:]
        keyed = 0
        bytes = 0
    }
}
