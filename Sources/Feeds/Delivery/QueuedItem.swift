import Base
import Coaty
import Network

/// An item in the queue of a subscription or request.
enum QueuedItem: Sendable {
    case event(QueuedEvent)
    /// Objects of a snapshot. Only such items can be delivered in part.
    case objects(ObjectBatch)
    /// A gap: the number of dropped events, nil if unknown, and the cursor after which the client can resume, if any.
    case gap(Int?, FeedCursor?)
    /// Events that could not be read, with their number.
    case invalid(Int, FeedCursor?)
    /// An event is left out, because the client's filter is too expensive for it.
    case leftOut(FeedCursor?)
    /// A response to a request, with its charge.
    case response(ServerFrame, Charge)

    /// Creates the item for a record without an event; nil if the client must not see it.
    ///
    /// - Parameter isEntire: whether the client may see all events of the feed. Otherwise, events that could not be read
    ///   are hidden, because it is not known whether the client may see them.
    init?(gap record: EventRecord, isEntire: Bool) {
        switch record.content {
        case .gap: self = .gap(nil, record.cursor)
        case .invalid(let count) where isEntire: self = .invalid(count, record.cursor)
        case .invalid, .event, .nothing: return nil
        }
    }

    /// Identifies the object of an event: throttling and the overflow policy `latest` keep the newest event of each
    /// key. Nil if no other event replaces this item.
    var key: KeyedDigest? { event?.key }

    /// The request that the client may answer once the item has been delivered.
    var request: DeliveredRequest? { if case .event(let event) = self { event.request } else { nil } }

    /// The number of events in the item.
    var events: Int {
        switch self {
        case .event: 1
        case .objects(let batch): batch.frames.count
        case .gap, .invalid, .leftOut, .response: 0
        }
    }

    private var event: QueuedEvent? { if case .event(let event) = self { event } else { nil } }

    var cursor: FeedCursor? {
        switch self {
        case .event(let event): event.cursor
        case .objects(let batch): batch.cursor
        case .gap(_, let cursor), .invalid(_, let cursor), .leftOut(let cursor): cursor
        case .response: nil
        }
    }

    /// Returns the item with another cursor; objects must have none yet.
    func resumable(behind cursor: FeedCursor?) -> QueuedItem {
        switch self {
        case .event(var event):
            event.cursor = cursor
            return .event(event)
        case .objects(let batch): return .objects(batch.resumable(behind: cursor))
        case .gap(let count, _): return .gap(count, cursor)
        case .invalid(let count, _): return .invalid(count, cursor)
        case .leftOut: return .leftOut(cursor)
        case .response: return self
        }
    }

    /// The item as one that was delivered before. It has no cursor: after it, a client would receive later events again.
    var asLatest: QueuedItem {
        guard case .event(var event) = self else { return resumable(behind: nil) }
        (event.isLatest, event.cursor) = (true, nil)
        return .event(event)
    }

    /// The number of bytes that the item counts against the bounds of a queue.
    var size: Int {
        switch self {
        case .event(let event): event.size
        case .objects(let batch): batch.size
        case .gap, .invalid, .leftOut: 0
        case .response(let frame, _): frame.members.count
        }
    }

    /// The charge of the item until it is sent; nil if there is none yet, or if none is needed.
    var charge: Charge? {
        switch self {
        case .event(let event): event.charge
        case .objects(let batch): batch.charge
        case .response(_, let charge): charge
        case .gap, .invalid, .leftOut: nil
        }
    }

    /// Charges the item to an account unless it is charged already.
    ///
    /// - Returns: false if there is no memory for it.
    mutating func charge(to memory: MemoryAccount) -> Bool {
        switch self {
        case .event(var event) where event.charge == nil:
            event.charge = memory.charge(QueuedEvent.overhead, with: event.body.shared)
            guard event.charge != nil else { return false }
            self = .event(event)
            return true
        case .objects(var batch):
            guard batch.charge(to: memory) else { return false }
            self = .objects(batch)
            return true
        case .event, .gap, .invalid, .leftOut, .response: return true
        }
    }

    /// Merges this item with an earlier item of the same object that was not delivered.
    ///
    /// - Returns: the item to deliver; nil if the object was added and removed in between, so that there is nothing to
    ///   deliver.
    func replacing(_ earlier: QueuedItem) -> QueuedItem? {
        guard case .event(var event) = self, let kind = event.change, let earlierKind = earlier.event?.change else {
            return self
        }
        switch (earlierKind, kind) {
        case (.added, .removed): return nil
        case (.added, _): event.change = .added
        case (.removed, .added): event.change = .changed
        default: break
        }
        return .event(event)
    }
}

/// An event for one client. Its text is already built, except for the part that differs between clients.
struct QueuedEvent: Sendable {
    /// The cursor after which the client can resume; nil if it can't.
    var cursor: FeedCursor?
    /// The kind of the change; nil unless the event is a change in the object registry.
    var change: ObjectChange.Kind?
    /// Whether the event is from before the subscription, and the last one of its object or IO source.
    var isLatest = false
    /// Identifies the object; nil if no other event replaces this one.
    let key: KeyedDigest?
    /// The request that the client may answer once the event has been delivered.
    let request: DeliveredRequest?
    let body: EventBody
    /// The charge to the client until the event is sent.
    var charge: Charge?

    /// The number of bytes that the event counts against the bounds of a queue.
    var size: Int { body.count + Self.overhead }

    /// The overhead of each client, in bytes.
    static let overhead = 200
}
