import DequeModule

/// The queue of associations that an IO router has not yet published.
///
/// The state of a pair is read when it is published. Therefore a pair is in the queue only once, however often it
/// changes, and a network of any size needs no more than a share of the outbox.
struct AssociateQueue {
    /// Maximum number of actions in the queue; further ones are refused.
    static let maximumActions = 1_000

    struct Pair: Hashable {
        let sourceId: CoatyUUID
        let actorId: CoatyUUID
    }

    private enum Entry {
        case pair(Pair)
        case action(@Sendable () -> Void)
    }

    private var entries: Deque<Entry> = []
    /// The pairs in the queue, and whether they were published as associated.
    private var isKnown: [Pair: Bool] = [:]

    var isEmpty: Bool { entries.isEmpty }
    var hasRoomForAction: Bool { entries.count - isKnown.count < Self.maximumActions }

    /// Appends the pairs that changed: dissolved ones first.
    mutating func append(_ changes: IoAssociationChanges) {
        for association in changes.removed { append(association, isNew: false) }
        for association in changes.added { append(association, isNew: true) }
        for association in changes.changed { append(association, isNew: false) }
    }

    /// Appends a pair that an agent may have missed the dissolution of.
    mutating func append(dissolved pair: Pair) {
        if isKnown.updateValue(true, forKey: pair) == nil { entries.append(.pair(pair)) }
    }

    private mutating func append(_ association: IoAssociation, isNew: Bool) {
        let pair = Pair(sourceId: association.ioSourceId, actorId: association.ioActorId)
        guard isKnown[pair] == nil else { return }
        isKnown[pair] = !isNew
        entries.append(.pair(pair))
    }

    /// Appends an action, which runs after everything queued before it was published.
    mutating func append(_ action: @escaping @Sendable () -> Void) {
        entries.append(.action(action))
    }

    /// Publishes pairs and runs actions, oldest first, until a pair is refused. The refused pair stays in the queue.
    mutating func drain(_ publish: (_ pair: Pair, _ isKnown: Bool) -> Bool) {
        while let entry = entries.first {
            switch entry {
            case .pair(let pair):
                guard publish(pair, isKnown[pair] ?? false) else { return }
                isKnown[pair] = nil
            case .action(let action): action()
            }
            entries.removeFirst()
        }
    }
}
