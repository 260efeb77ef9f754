import DequeModule

/// Associations that an IO router has yet to publish. What goes out is how a pair is then, so a pair is in it once, and a
/// network of any size needs no more of the outbox than its share.
struct AssociateQueue {
    /// How many publications may wait for the link while this adds to them. It is at most half of what the outbox takes:
    /// the rest is for others.
    static let maximumWaiting = 1_000
    /// How many actions may wait; further ones are refused.
    static let maximumActions = 1_000

    struct Pair: Hashable {
        let sourceId: CoatyUUID
        let actorId: CoatyUUID
    }

    private enum Entry {
        case pair(Pair)
        case action(() -> Void)
    }

    private var entries: Deque<Entry> = []
    /// The pairs that are in it, and whether others know them as associated.
    private var isKnown: [Pair: Bool] = [:]

    var isEmpty: Bool { entries.isEmpty }
    var hasRoomForAction: Bool { entries.count - isKnown.count < Self.maximumActions }

    mutating func append(_ association: IoAssociation, isNew: Bool) {
        let pair = Pair(sourceId: association.ioSourceId, actorId: association.ioActorId)
        guard isKnown[pair] == nil else { return }
        isKnown[pair] = !isNew
        entries.append(.pair(pair))
    }

    /// Has something done when all that is in it now has gone out.
    mutating func append(_ action: @escaping () -> Void) {
        entries.append(.action(action))
    }

    /// Hands the pairs over, oldest first, until one is refused; that stays.
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

    mutating func removeAll() { self = AssociateQueue() }
}
