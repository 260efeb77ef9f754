import DequeModule

/// Associations that an IO router has yet to publish. What goes out is how a pair is then, so a pair is in it once, and a
/// network of any size needs no more of the outbox than its share.
struct AssociateQueue {
    /// How many publications may wait for the link while this adds to them; the rest of the outbox is for others.
    static let maximumWaiting = 1_000

    struct Pair: Hashable {
        let sourceId: CoatyUUID
        let actorId: CoatyUUID
    }

    private var pairs: Deque<Pair> = []
    private var queued: Set<Pair> = []

    var isEmpty: Bool { pairs.isEmpty }

    mutating func append(_ association: IoAssociation) {
        let pair = Pair(sourceId: association.ioSourceId, actorId: association.ioActorId)
        if queued.insert(pair).inserted { pairs.append(pair) }
    }

    /// Hands the pairs over, oldest first, until one is refused; that stays.
    mutating func drain(_ publish: (Pair) -> Bool) {
        while let pair = pairs.first, publish(pair) {
            pairs.removeFirst()
            queued.remove(pair)
        }
    }

    mutating func removeAll() { self = AssociateQueue() }
}
