package import Coaty
import Synchronization

/// Reports changes of a context's associations to its watchers.
package final class RoutingFeed: Sendable {
    /// Receives `{"associations":{"added":[…],"removed":[…],"changed":[…]}}`, in several pieces if there are many.
    package typealias Handler = @Sendable ([Payload]) -> Void

    /// Maximum number of associations of each kind in a piece.
    static let associationsPerPiece = 1_000

    private struct State {
        var watchers: [CoatyUUID: [UInt64: Handler]] = [:]
        var lastId: UInt64 = 0
    }

    private let state = Mutex(State())

    package init() {}

    /// Passes the current associations to a handler, as if they were new, followed by each change. Call it while no
    /// change can occur.
    ///
    /// - Parameter handler: must not block or call this object.
    /// - Returns: a function that ends this.
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

    /// Reports a change. Call it for every change, even if there are no watchers.
    func report(_ contextId: CoatyUUID, _ changes: IoAssociationChanges) {
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
            // JSON can always represent ids and rates.
            return try? Payload(Array(#"{"associations":\#(try PayloadCoder.encode(piece))}"#.utf8))
        }
    }
}
