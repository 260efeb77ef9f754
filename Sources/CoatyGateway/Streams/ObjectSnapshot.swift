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

    /// The next of them that the client wants; nil behind the last, or when the budget is used up.
    ///
    /// - Parameter budget: how much may be looked at, in steps of ``Outlet/bytesPerStep`` and of objects.
    mutating func next(for lane: Lane, _ budget: inout Int) -> LaneItem? {
        while budget > 0, let object = objects.popFirst() {
            budget -= 1 + object.bytes.count / Outlet.bytesPerStep
            guard lane.kind?.includes(object) ?? true,
                let event = ObservedEvent(ObjectChange(kind: .added, object: object, previous: nil)), lane.wants(event)
            else { continue }
            defer { held = event }
            if let held { return item(held, nil) }
        }
        guard objects.isEmpty, let last = held else { return nil }
        held = nil
        // Who has not got all of it can't resume behind it.
        return item(last, cursor)
    }

    /// How many objects there are, of which the client may want less.
    var count: Int { objects.count + (held == nil ? 0 : 1) }

    /// Whether the client has got all.
    var isEmpty: Bool { objects.isEmpty && held == nil }

    private func item(_ event: ObservedEvent, _ cursor: StreamCursor?) -> LaneItem {
        .event(EventRecord(.event(event), cursor: cursor), event, .added)
    }
}
