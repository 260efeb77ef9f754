import Base

/// The last events, the snapshot and the replay that a subscription starts with.
struct SubscriptionSource: Sendable {
    private var latest: LatestSnapshot?
    private var snapshot: ObjectSnapshot?
    private var replay: Replay?

    /// Creates a source; nil if there is none of them.
    init?(latest: LatestSnapshot?, snapshot: ObjectSnapshot?, replay: Replay?) {
        guard latest?.isEmpty == false || snapshot != nil || replay != nil else { return nil }
        self.latest = latest
        self.snapshot = snapshot
        self.replay = replay
    }

    /// Whether all items are read.
    var isEmpty: Bool { latest?.isEmpty ?? true && snapshot?.isEmpty ?? true && replay?.isEmpty ?? true }

    /// Returns an upper bound of the number of events left, with the replay up to a position.
    func count(upTo end: UInt64?) -> Int {
        var replay = replay
        if let end { replay?.extend(upTo: end) }
        return (latest?.count ?? 0) + (snapshot?.count ?? 0) + (replay?.count ?? 0)
    }

    mutating func extend(upTo end: UInt64?) {
        if let end { replay?.extend(upTo: end) }
    }

    /// Returns the next item; nil after the last one, or when the turn is over.
    mutating func next(for subscription: ClientSubscription, until limit: TurnLimit) -> QueuedItem? {
        if let item = latest?.next(for: subscription, until: limit) { return item }
        guard latest?.isEmpty ?? true else { return nil }
        latest = nil
        if let item = snapshot?.next(for: subscription, until: limit) { return item }
        guard snapshot?.isEmpty ?? true else { return nil }
        snapshot = nil
        return replay?.next(for: subscription, until: limit)
    }

    /// Returns the number of events dropped since the last call.
    mutating func takeDropped() -> Int { replay?.takeDropped() ?? 0 }
}

/// A source that is being read, outside the lock of its queue.
struct SubscriptionReading: Sendable {
    let subscription: ClientSubscription
    let generation: Int
    /// The account of the connection, to which the items are charged.
    private let memory: MemoryAccount
    var source: SubscriptionSource
    /// Number of items that may be read, and of their bytes. The last item may exceed them.
    let room: Int
    let roomBytes: Int
    var items: [QueuedItem] = []
    var dropped = 0

    init(
        subscription: ClientSubscription,
        generation: Int,
        source: SubscriptionSource,
        room: Int,
        roomBytes: Int,
        charging memory: MemoryAccount
    ) {
        self.memory = memory
        self.subscription = subscription
        self.generation = generation
        self.source = source
        self.room = room
        self.roomBytes = roomBytes
    }

    /// Reads items until the client has enough of them, or the turn is over.
    mutating func read(until limit: TurnLimit) {
        var bytes = 0
        repeat {
            guard var item = source.next(for: subscription, until: limit) else { break }
            guard item.charge(to: memory) else {
                drop(item)
                continue
            }
            items.append(item)
            bytes += item.size
        } while items.count < room && bytes < roomBytes && !limit.isOver
        dropped += source.takeDropped()
    }

    /// Replaces events for which there is no memory by a gap. Consecutive gaps become one.
    private mutating func drop(_ item: QueuedItem) {
        dropped += item.events
        guard case .gap(let count?, _)? = items.last else { return items.append(.gap(item.events, item.cursor)) }
        items[items.count - 1] = .gap(count + item.events, item.cursor)
    }
}
