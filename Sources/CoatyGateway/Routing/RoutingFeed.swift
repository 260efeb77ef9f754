import Coaty
import Synchronization
import WebSocketServer

/// Tells those who watch a context which associations change, in frames that are made once for all.
final class RoutingFeed: Sendable {
    typealias Handler = @Sendable ([WebSocketFrame]) -> Void

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
        handler(EventFrame.texts(changes, context: contextId))
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

    func tell(_ contextId: CoatyUUID, _ changes: IoAssociationChanges) {
        guard let watchers = state.withLock({ $0.watchers[contextId] }) else { return }
        let frames = EventFrame.texts(changes, context: contextId)
        for watcher in watchers.values { watcher(frames) }
    }
}
