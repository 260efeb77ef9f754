import Coaty
import DequeModule

/// The objects in the object registry when a subscription began. They are sorted when the first one is needed, and filtered only
/// as the client reads.
struct ObjectSnapshot: Sendable {
    /// What the registry held; nil once ``objects`` are taken from it.
    private var content: RegisteredObjects?
    private var objects: Deque<AliveObject>
    private static let objectsPerStep = 256
    private let cursor: FeedCursor
    /// The event to return next, held back until it is known whether it is the last one.
    private var held: ObservedEvent?

    /// Takes constant time.
    init(_ content: RegisteredObjects, cursor: FeedCursor) {
        self.content = content
        objects = []
        self.cursor = cursor
    }

    /// - Parameter objects: in the order in which they were listed.
    init(_ objects: [AliveObject], cursor: FeedCursor) {
        self.objects = Deque(objects)
        self.cursor = cursor
    }

    /// Returns the next object that the subscription's filter matches; nil after the last one, or when the budget is used up.
    ///
    /// - Parameter budget: the remaining work. An object costs 1, plus 1 per ``OutboundQueue/bytesPerStep`` bytes. Sorting costs 1
    ///   per ``objectsPerStep``.
    mutating func next(for subscription: ClientSubscription, _ budget: inout Int) -> QueuedItem? {
        if let content {
            objects = Deque(content.objects(of: subscription.kind))
            self.content = nil
            budget -= objects.count / Self.objectsPerStep
        }
        while budget > 0, let object = objects.popFirst() {
            budget -= 1 + object.bytes.count / OutboundQueue.bytesPerStep
            guard subscription.maySee(object),
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

    /// The number of objects left, including those that the subscription does not want.
    var count: Int { (content?.listed.count ?? objects.count) + (held == nil ? 0 : 1) }

    /// Whether all objects were returned.
    var isEmpty: Bool { content == nil && objects.isEmpty && held == nil }

    private func item(_ event: ObservedEvent, _ cursor: FeedCursor?) -> QueuedItem {
        .event(EventRecord(.event(event), cursor: cursor), event, .added)
    }
}

extension RegisteredObjects {
    /// Returns the objects of a kind, or all, in the order in which they were listed.
    fileprivate func objects(of kind: Observation.ObjectKind?) -> [AliveObject] {
        switch kind {
        case .core(let coreType): objects(coreType: coreType, objectType: nil)
        case .object(let objectType): objects(coreType: nil, objectType: objectType)
        case nil: objects
        }
    }
}
