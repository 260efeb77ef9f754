import Base
import Coaty
import Network

/// The objects in the object registry when a subscription began. They are filtered only as the client reads.
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

    /// Returns the next objects that the subscription's filter matches; nil after the last one, or when the turn is
    /// over. Reads at least one object.
    mutating func next(for subscription: ClientSubscription, until limit: TurnLimit) -> QueuedItem? {
        if let listed {
            objects = listed.unread(subscription.kind)
            self.listed = nil
        }
        while !objects.isEmpty {
            if let item = nextItem(for: subscription) {
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

    /// Reads the next object or, if the subscription wants objects unfiltered and whole, the objects of a batch.
    private mutating func nextItem(for subscription: ClientSubscription) -> QueuedItem? {
        guard subscription.wantsWholeObjects else {
            return objects.popFirst().flatMap { object in
                let change = ObjectChange(kind: .added, object: object, previous: nil)
                return subscription.item(EventRecord(PendingEvent(change), cursor: nil))
            }
        }
        var batch = ObjectBatch(id: subscription.id)
        var visited = 0
        while !batch.isFull, visited < Self.visitedPerBatch, let object = objects.popFirst() {
            visited += 1
            if subscription.kind?.includes(object) ?? true { batch.append(object) }
        }
        subscription.work?.spend(visited + WorkRate.steps(toPass: batch.count, events: batch.frames.count))
        return batch.frames.isEmpty ? nil : .objects(batch)
    }

    /// Maximum number of objects that are visited for a batch.
    private static let visitedPerBatch = 256

    /// The number of objects left, including those that the subscription does not want.
    var count: Int { (listed?.count ?? objects.count) + (held?.events ?? 0) }

    /// Whether all objects were returned.
    var isEmpty: Bool { listed == nil && objects.isEmpty && held == nil }
}
