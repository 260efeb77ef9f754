import Coaty
import DequeModule

/// The objects in the object registry when a subscription began. They are filtered only as the client reads.
struct ObjectSnapshot: Sendable {
    private var objects: Deque<AliveObject>
    private let cursor: FeedCursor
    /// The event to return next, held back until it is known whether it is the last one.
    private var held: ObservedEvent?

    init(_ objects: [AliveObject], cursor: FeedCursor) {
        self.objects = Deque(objects)
        self.cursor = cursor
    }

    /// Returns the next object that the subscription's filter matches; nil after the last one, or when the budget is used up.
    ///
    /// - Parameter budget: the remaining work. An object costs 1, plus 1 per ``OutboundQueue/bytesPerStep`` bytes.
    mutating func next(for subscription: ClientSubscription, _ budget: inout Int) -> QueuedItem? {
        while budget > 0, let object = objects.popFirst() {
            budget -= 1 + object.bytes.count / OutboundQueue.bytesPerStep
            guard subscription.kind?.includes(object) ?? true, subscription.maySee(object),
                let event = ObservedEvent(ObjectChange(kind: .added, object: object, previous: nil)),
                subscription.wants(event)
            else { continue }
            defer { held = event }
            if let held { return item(held, nil) }
        }
        guard objects.isEmpty, let last = held else { return nil }
        held = nil
        // Only the last object has the cursor: a client that did not receive the whole snapshot can't resume after it.
        return item(last, cursor)
    }

    /// The number of objects left, including those that the filter will not match.
    var count: Int { objects.count + (held == nil ? 0 : 1) }

    /// Whether all objects were returned.
    var isEmpty: Bool { objects.isEmpty && held == nil }

    private func item(_ event: ObservedEvent, _ cursor: FeedCursor?) -> QueuedItem {
        .event(EventRecord(.event(event), cursor: cursor), event, .added)
    }
}
