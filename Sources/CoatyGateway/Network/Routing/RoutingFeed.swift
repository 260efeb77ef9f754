import Coaty
import Synchronization

/// Tells those who watch a context which associations change.
final class RoutingFeed: Sendable {
    /// Takes `{"associations":{"added":[…],"removed":[…],"changed":[…]}}`, in several pieces where it is much.
    typealias Handler = @Sendable ([Payload]) -> Void

    /// How many associations a piece has at most of each kind.
    static let associationsPerPiece = 1_000

    private struct State {
        var watchers: [CoatyUUID: [UInt64: Handler]] = [:]
        var lastId: UInt64 = 0
    }

    private let state = Mutex(State())

    /// Hands over the associations as they are, as if they were new, then each change. To be called where no change can come
    /// in between.
    ///
    /// - Parameter handler: must not block, nor come back.
    /// - Returns: what ends the watching.
    func watch(
        _ contextId: CoatyUUID,
        from current: [IoAssociation],
        _ handler: @escaping Handler
    ) -> @Sendable () -> Void {
        var changes = IoAssociationChanges()
        changes.added = current
        handler(Self.pieces(changes))
        let id = state.withLock { state in
            state.lastId += 1
            state.watchers[contextId, default: [:]][state.lastId] = handler
            return state.lastId
        }
        return { [weak self] in
            self?.state.withLock { state in
                state.watchers[contextId]?[id] = nil
                if state.watchers[contextId]?.isEmpty ?? false { state.watchers[contextId] = nil }
            }
        }
    }

    /// Every change is to be told, watched or not.
    func tell(_ contextId: CoatyUUID, _ changes: IoAssociationChanges) {
        guard let watchers = state.withLock({ $0.watchers[contextId] }) else { return }
        let pieces = Self.pieces(changes)
        for watcher in watchers.values { watcher(pieces) }
    }

    static func pieces(_ changes: IoAssociationChanges) -> [Payload] {
        let count = max(changes.added.count, changes.removed.count, changes.changed.count, 1)
        return stride(from: 0, to: count, by: associationsPerPiece).compactMap { start in
            func part(_ list: [IoAssociation]) -> [IoAssociation] {
                Array(list.dropFirst(start).prefix(associationsPerPiece))
            }
            var piece = IoAssociationChanges()
            piece.added = part(changes.added)
            piece.removed = part(changes.removed)
            piece.changed = part(changes.changed)
            // Ids and rates can always be said in JSON.
            return try? Payload(Array(#"{"associations":\#(try PayloadCoder.encode(piece))}"#.utf8))
        }
    }
}
