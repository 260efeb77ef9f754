import Coaty

/// What waits to be written to a client.
enum LaneItem: Sendable {
    case event(EventRecord, ObservedEvent, ObjectChange.Kind?)
    /// Events are missing at this place; nil where nobody knows how many. And where a client can resume behind it.
    case gap(Int?, StreamCursor?)
    /// A response to a request.
    case response(StreamFrame)

    /// What throttling and `latest` take for the same thing.
    var key: WireName? {
        if case .event(_, let event, _) = self { event.key } else { nil }
    }

    var isEvent: Bool { if case .event = self { true } else { false } }

    var cursor: StreamCursor? {
        switch self {
        case .event(let record, _, _): record.cursor
        case .gap(_, let cursor): cursor
        case .response: nil
        }
    }

    /// The item with another cursor.
    func resumable(behind cursor: StreamCursor?) -> LaneItem {
        switch self {
        case .event(let record, let event, let change):
            .event(EventRecord(record.content, cursor: cursor), event, change)
        case .gap(let count, _): .gap(count, cursor)
        case .response: self
        }
    }

    var size: Int {
        switch self {
        case .event(let record, _, _): record.size
        case .gap: 0
        case .response(let frame): frame.members.count
        }
    }

    /// This item in the place of an earlier one of the same object that is not told; nil where nothing is left to tell.
    func replacing(_ earlier: LaneItem) -> LaneItem? {
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
