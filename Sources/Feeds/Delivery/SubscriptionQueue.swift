import Base
import Coaty
import DequeModule

/// The available space for a subscription's queue.
struct QueueRoom {
    /// Bytes queued for the connection's other subscriptions.
    let others: Int
    /// Maximum bytes queued for all subscriptions of the connection; a single item may exceed it if nothing else is
    /// queued.
    let limit: Int
    /// The account of the connection, to which queued items are charged.
    let memory: MemoryAccount
}

/// Events queued for one subscription while its client is slow, and the count of dropped ones.
struct SubscriptionQueue: Sendable {
    let subscription: ClientSubscription
    private let overflow: SubscriptionOptions.Overflow
    private let limit: Int
    var throttle: Throttle?
    /// Deadline after which throttled events are released. It ends with the queue.
    var deadline: Deadline?
    /// Whether the outbound queue has scheduled this queue for writing.
    var isReady = false
    /// Reason for the end; nil while the queue accepts items.
    var end: ServerFrame.EndReason?
    /// Whether the end of a request reports that responses were withheld.
    private(set) var isFiltered = false
    /// Whether delivery is held until ``begin(_:)``.
    private(set) var isHeld: Bool
    /// Whether the queue holds the responses to a request instead of events.
    private(set) var holdsResponses = false
    /// Item to deliver before all others.
    private var next: QueuedItem?
    /// The snapshot or replay to deliver before the buffer. The turns of the outbound queue read it; nil once all of it
    /// is delivered, or while it is being read.
    private var source: SubscriptionSource?
    private var isReading = false
    /// The last position of the source's replay; nil if there is no replay.
    private var replayEnd: UInt64?
    /// Upper bound of the number of events left in a source that is being read.
    private var unread = 0
    /// Changes when all queued items are discarded: the items that are being read then are discarded, too.
    private var generation = 0
    /// Items that were read from the source, and their events and bytes.
    private var fetched: Deque<QueuedItem> = []
    private var fetchedEvents = 0
    private var fetchedBytes = 0
    /// Whether the outbound queue has scheduled the reading of the source.
    var isAwaitingTurn = false
    /// A slot is nil if a newer item of the same key has replaced its item.
    private var buffer: Deque<QueuedItem?> = []
    /// Number of the buffer's first slot since the subscription began.
    private var firstSlot = 0
    /// Number of items in the buffer, and number of events among them.
    private var count = 0
    private var events = 0
    /// Whether the buffer keeps at most one item per key: from the first overflow with `latest` until the buffer is
    /// empty.
    private var holdsLatest = false
    /// Slot number of each key, while `holdsLatest` is set.
    private var slots: [KeyedDigest: Int] = [:]
    /// Number of events dropped before the first item of the buffer, not yet reported as a gap.
    private var dropped = 0
    private var isDropCountUnknown = false
    /// Number of events dropped since the subscription began, as far as it is known.
    private(set) var droppedInAll = 0
    /// Bytes in the buffer.
    private var bufferBytes = 0

    init(_ subscription: ClientSubscription, isHeld: Bool) {
        self.subscription = subscription
        self.isHeld = isHeld
        overflow = subscription.options.overflow
        limit = subscription.options.buffer
        throttle = subscription.options.throttle
    }

    /// Bytes queued, including events that the throttle holds back.
    var bytes: Int { queuedBytes + (throttle?.footprint ?? 0) }

    /// Upper bound of the number of events and objects queued for the client: its filter may exclude some of the
    /// snapshot and the replay. Events that the throttle holds back are not counted.
    var queued: Int {
        (next?.events ?? 0) + fetchedEvents + (isReading ? unread : source?.count(upTo: replayEnd) ?? 0) + events
    }

    /// Bytes queued for the client, without events that the throttle holds back.
    var queuedBytes: Int { bufferBytes + fetchedBytes + (next?.size ?? 0) }

    var isEmpty: Bool { next == nil && !isBehind && count == 0 && !hasDropped }

    /// Whether ``pop()`` returns an item, or the end is due.
    var isWritable: Bool { next != nil || !fetched.isEmpty || !isBehind && (count > 0 || hasDropped || end != nil) }

    /// Whether a snapshot or a replay is still to be delivered.
    var isBehind: Bool { hasUnread || !fetched.isEmpty }

    private var hasUnread: Bool { isReading || source.map { !$0.isEmpty } ?? false }

    /// Whether the source should be read now.
    var needsReading: Bool {
        !isReading && hasUnread && fetched.count <= Self.minimumFetched && fetchedBytes < Self.maximumFetchedBytes
    }

    /// The source is read again when at most this many items are left.
    private static let minimumFetched = 4
    /// Maximum number of items that are read ahead, and of their bytes. A single item may be larger.
    static let maximumFetched = 16
    static let maximumFetchedBytes = 64 << 10

    private var hasDropped: Bool { dropped > 0 || isDropCountUnknown }

    /// Starts delivery with the initial gap, snapshot and replay.
    mutating func begin(_ start: SubscriptionStart) {
        isHeld = false
        next = start.gap
        replayEnd = start.replay?.end
        source = SubscriptionSource(latest: start.latest, snapshot: start.snapshot, replay: start.replay)
        endSourceIfDelivered()
    }

    // MARK: - Source

    /// Takes the source out, to read it without a lock; nil if it is not to be read.
    mutating func takeSource(charging memory: MemoryAccount) -> SubscriptionReading? {
        isAwaitingTurn = false
        guard needsReading, var source else { return nil }
        self.source = nil
        source.extend(upTo: replayEnd)
        unread = source.count(upTo: replayEnd)
        isReading = true
        return SubscriptionReading(
            subscription: subscription,
            generation: generation,
            source: source,
            room: Self.maximumFetched - fetched.count,
            roomBytes: Self.maximumFetchedBytes - fetchedBytes,
            charging: memory
        )
    }

    /// Puts the source back with the items that were read.
    mutating func putBack(_ reading: SubscriptionReading) {
        guard reading.generation == generation, isReading else { return }
        isReading = false
        droppedInAll += reading.dropped
        for item in reading.items {
            fetched.append(item)
            fetchedEvents += item.events
            fetchedBytes += item.size
        }
        source = reading.source
        source?.extend(upTo: replayEnd)
        endSourceIfDelivered()
    }

    /// Removes the source once all its items are delivered. Until then, its replay may be extended. Call it when the
    /// item that ``pop()`` returned last is delivered.
    mutating func endSourceIfDelivered() {
        if !hasUnread, fetched.isEmpty, next == nil { (source, replayEnd) = (nil, nil) }
    }

    // MARK: - Buffer

    /// Appends an item. If there is no space, the overflow policy of the subscription applies.
    mutating func append(_ item: QueuedItem, _ room: QueueRoom) {
        guard end == nil else { return }
        var item = item
        if !admits(&item, room), extendReplay(to: item) { return }
        if overflow == .latest, !holdsLatest, count > 0, !admits(&item, room) { keepLatest() }
        guard var item = replacingEarlier(item) else { return }
        while !admits(&item, room) {
            if overflow == .close {
                for case let queued? in buffer { drop(queued) }
                drop(item)
                for held in throttle?.releaseAll() ?? [] { drop(held) }
                clearBuffer()
                // The end reason reports the overflow, so no gap is needed.
                (dropped, isDropCountUnknown) = (0, false)
                throttle = nil
                end = .overflow
                return
            }
            guard let oldest = popBuffer() else { return drop(item) }
            drop(oldest)
        }
        insert(item)
    }

    /// Extends a replay that is still being delivered up to an item, instead of queueing the item. The buffer is
    /// cleared, because the replay buffer also contains its events.
    ///
    /// - Returns: false if there is no such replay, or the item must be queued.
    private mutating func extendReplay(to item: QueuedItem) -> Bool {
        guard replayEnd != nil, overflow == .dropOldest, throttle == nil, let cursor = item.cursor else { return false }
        clearBuffer()
        replayEnd = cursor.position
        source?.extend(upTo: replayEnd)
        return true
    }

    /// Counts that the connection has closed. Subscriptions that have begun end in no other way on many connections.
    func abandon(_ outcome: OperationCounts.Outcome? = nil) {
        subscription.outcome?.set(outcome ?? (isHeld || subscription.wanted == nil ? .abandoned : .done))
    }

    /// Appends a response. The bounds of the request apply, not those of the buffer.
    mutating func append(response frame: ServerFrame, _ charge: Charge) {
        holdsResponses = true
        insert(.response(frame, charge))
    }

    /// Ends the queue after the queued items and the events that the throttle holds back.
    mutating func finish(_ reason: ServerFrame.EndReason, isFiltered: Bool = false) {
        guard end == nil else { return }
        self.isFiltered = isFiltered
        // The throttle bounds their number.
        for item in throttle?.releaseAll() ?? [] { insert(item) }
        end = reason
    }

    /// Discards all queued items, and reports a gap of unknown length instead.
    mutating func discardQueued() {
        guard end == nil, !isHeld, !holdsResponses else { return }
        clearBuffer()
        (next, source, replayEnd, isReading) = (nil, nil, nil, false)
        (fetched, fetchedEvents, fetchedBytes) = ([], 0, 0)
        generation += 1
        throttle = subscription.options.throttle
        (dropped, isDropCountUnknown) = (0, true)
    }

    /// Removes and returns the next item; nil if nothing is queued, or the source must be read first.
    mutating func pop() -> QueuedItem? {
        if let next {
            self.next = nil
            return next
        }
        if let item = fetched.popFirst() {
            fetchedEvents -= item.events
            fetchedBytes -= item.size
            return item
        }
        guard !hasUnread else { return nil }
        if hasDropped {
            defer { (dropped, isDropCountUnknown) = (0, false) }
            return .gap(isDropCountUnknown ? nil : dropped, nil)
        }
        return popBuffer()
    }

    /// Puts back the item that ``pop()`` returned last, or the part of it that is not delivered.
    mutating func putBack(_ item: QueuedItem) { next = item }

    /// Returns whether there is space for an item, and charges it if there is.
    private func admits(_ item: inout QueuedItem, _ room: QueueRoom) -> Bool {
        guard count < limit else { return false }
        let queued = room.others + bytes
        return (queued == 0 || queued + item.size <= room.limit) && item.charge(to: room.memory)
    }

    private mutating func insert(_ item: QueuedItem) {
        if holdsLatest, let key = item.key { slots[key] = firstSlot + buffer.count }
        buffer.append(item)
        count += 1
        events += item.events
        bufferBytes += item.size
    }

    /// Subtracts an item from the counts of the buffer.
    private mutating func discount(_ item: QueuedItem) {
        count -= 1
        events -= item.events
        bufferBytes -= item.size
    }

    private mutating func popBuffer() -> QueuedItem? {
        while let slot = buffer.popFirst() {
            firstSlot += 1
            guard let item = slot else { continue }
            discount(item)
            if count == 0 {
                clearBuffer()
            } else if holdsLatest, let key = item.key {
                slots[key] = nil
            }
            return item
        }
        return nil
    }

    private mutating func drop(_ item: QueuedItem) {
        switch item {
        case .gap(let count?, _), .invalid(let count, _): dropped += count
        case .gap(nil, _), .leftOut: isDropCountUnknown = true
        case .event, .response:
            dropped += 1
            droppedInAll += 1
        case .objects(let batch):
            dropped += batch.frames.count
            droppedInAll += batch.frames.count
        }
    }

    /// Reduces the buffer to the newest item of each object.
    private mutating func keepLatest() {
        let items = buffer
        clearBuffer()
        holdsLatest = true
        for case let item? in items {
            if let item = replacingEarlier(item) { insert(item) }
        }
    }

    /// Removes the queued item of the same object, if the buffer keeps only the newest.
    ///
    /// - Returns: the item to queue in its place; nil if the two cancel each other out.
    private mutating func replacingEarlier(_ item: QueuedItem) -> QueuedItem? {
        guard holdsLatest, let key = item.key, let slot = slots.removeValue(forKey: key),
            let earlier = buffer[slot - firstSlot]
        else { return item }
        buffer[slot - firstSlot] = nil
        discount(earlier)
        drop(earlier)
        // Otherwise the empty slots would grow without bound.
        if buffer.count >= 2 * limit { keepLatest() }
        let remaining = item.replacing(earlier)
        if remaining == nil { drop(item) }
        return remaining
    }

    private mutating func clearBuffer() {
        buffer = []
        firstSlot = 0
        count = 0
        events = 0
        bufferBytes = 0
        holdsLatest = false
        slots = [:]
    }
}
