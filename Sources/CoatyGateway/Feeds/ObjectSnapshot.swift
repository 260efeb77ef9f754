import Coaty

/// The objects in the object registry when a subscription began. They are filtered only as the client
/// reads.
struct ObjectSnapshot: Sendable {
    /// The listed objects; nil once ``objects`` are taken from them.
    private var listed: ObjectIndex?
    private var objects: UnreadObjects
    /// The cursor of the feed of their changes at that moment.
    let cursor: FeedCursor
    /// Charges the client for the replaced versions that the snapshot keeps in memory; nil once all objects are read.
    private var pin: SnapshotPin?
    /// The item to return next, held back until it is known whether it is the last one.
    private var held: QueuedItem?

    /// Creates a snapshot in constant time.
    init(_ content: RegisteredObjects, cursor: FeedCursor, pin: SnapshotPin? = nil) {
        listed = content.listed
        objects = UnreadObjects([])
        self.cursor = cursor
        self.pin = pin
    }

    /// - Parameter objects: in the order in which they were listed.
    init(_ objects: [AliveObject], cursor: FeedCursor) {
        self.objects = UnreadObjects(objects)
        self.cursor = cursor
    }

    /// Returns the next object that the subscription's filter matches; nil after the last one, or when the turn is over.
    /// Reads at least one object.
    mutating func next(for subscription: ClientSubscription, until limit: TurnLimit) -> QueuedItem? {
        if let listed {
            objects = listed.unread(subscription.kind)
            self.listed = nil
        }
        while let object = objects.popFirst() {
            if let item = item(object, subscription) {
                defer { held = item }
                if let held { return held }
            }
            if limit.isOver, !objects.isEmpty { return nil }
        }
        pin = nil
        guard let last = held else { return nil }
        held = nil
        // Only the last object has the cursor: a client that did not receive the whole snapshot can't resume.
        return last.resumable(behind: cursor)
    }

    private func item(_ object: AliveObject, _ subscription: ClientSubscription) -> QueuedItem? {
        let change = ObjectChange(kind: .added, object: object, previous: nil)
        return subscription.item(EventRecord(PendingEvent(change), cursor: nil))
    }

    /// The number of objects left, including those that the subscription does not want.
    var count: Int { (listed?.count ?? objects.count) + (held == nil ? 0 : 1) }

    /// Whether all objects were returned.
    var isEmpty: Bool { listed == nil && objects.isEmpty && held == nil }
}
