import Coaty
import DequeModule

/// The objects that were alive when a subscription began, which are looked at only as its client reads.
struct ObjectSnapshot: Sendable {
    private var objects: Deque<AliveObject>
    private let cursor: StreamCursor
    /// What is told next.
    private var held: ObservedEvent?

    init(_ objects: [AliveObject], cursor: StreamCursor) {
        self.objects = Deque(objects)
        self.cursor = cursor
    }

    /// The next of them that the client wants; nil behind the last.
    mutating func next(for lane: Lane) -> LaneItem? {
        while let object = objects.popFirst() {
            guard lane.kind?.includes(object) ?? true,
                let event = ObservedEvent(ObjectChange(kind: .added, object: object, previous: nil)), lane.wants(event)
            else { continue }
            defer { held = event }
            if let held { return item(held, nil) }
        }
        defer { held = nil }
        // Who has not got all of it can't resume behind it.
        return held.map { item($0, cursor) }
    }

    private func item(_ event: ObservedEvent, _ cursor: StreamCursor?) -> LaneItem {
        .event(EventRecord(.event(event), cursor: cursor), event, .added)
    }
}
