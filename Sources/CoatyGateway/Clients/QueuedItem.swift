import Coaty

/// An item in the queue of a subscription or request.
enum QueuedItem: Sendable {
    case event(EventRecord, ObservedEvent, ObjectChange.Kind?)
    /// A gap: the number of dropped events, nil if unknown, and the cursor after which the client can resume, if any.
    case gap(Int?, FeedCursor?)
    /// A response to a request.
    case response(ServerFrame)

    /// Identifies the object of an event: throttling and the overflow policy `latest` keep the newest event of each key. Nil if
    /// no other event replaces this item.
    var key: WireName? {
        if case .event(_, let event, _) = self { event.key } else { nil }
    }

    /// The request that the client may answer once the item has been delivered.
    var request: DeliveredRequest? {
        if case .event(_, let event, _) = self { event.request } else { nil }
    }

    /// Whether the item is a record itself, not one made from it.
    func isOf(_ record: EventRecord) -> Bool {
        if case .event(let own, _, _) = self { own === record } else { true }
    }

    var isEvent: Bool { if case .event = self { true } else { false } }

    var cursor: FeedCursor? {
        switch self {
        case .event(let record, _, _): record.cursor
        case .gap(_, let cursor): cursor
        case .response: nil
        }
    }

    /// Returns the item with another cursor.
    func resumable(behind cursor: FeedCursor?) -> QueuedItem {
        switch self {
        case .event(let record, let event, let change):
            .event(EventRecord(record.content, cursor: cursor), event, change)
        case .gap(let count, _): .gap(count, cursor)
        case .response: self
        }
    }

    /// The bytes that the item counts in the bounds of a queue.
    var size: Int {
        switch self {
        case .event(let record, _, _): record.size
        case .gap: 0
        case .response(let frame): frame.members.count
        }
    }

    /// Merges this item with an earlier item of the same object that was not delivered.
    ///
    /// - Returns: the item to deliver; nil if the object was added and removed in between, so that there is nothing to deliver.
    func replacing(_ earlier: QueuedItem) -> QueuedItem? {
        guard case .event(let record, let event, let kind?) = self, case .event(_, _, let earlierKind?) = earlier else {
            return self
        }
        return switch (earlierKind, kind) {
        case (.added, .removed): nil
        case (.added, _): .event(record, event, .added)
        case (.removed, .added): .event(record, event, .changed)
        default: self
        }
    }
}
