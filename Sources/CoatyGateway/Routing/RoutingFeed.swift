import Coaty
import Synchronization
import WebSocketServer

/// Tells those who watch a context which associations change, in frames that are made once for all.
final class RoutingFeed: Sendable {
    typealias Handler = @Sendable ([WebSocketFrame]) -> Void

    /// How many associations a context may have where watching begins: they are queued at once, and a connection's queue of
    /// 1 MiB must hold them. With two UUIDs and a rate each takes about 140 bytes.
    static let maximumAssociations = 7_000

    private struct State {
        var watchers: [CoatyUUID: [UInt64: Handler]] = [:]
        var lastId: UInt64 = 0
        /// How many associations each context has, as far as they were told.
        var counts: [CoatyUUID: Int] = [:]
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

    /// Whether the associations of a context are few enough that watching may begin.
    func hasRoom(for contextId: CoatyUUID) -> Bool {
        state.withLock { $0.counts[contextId] ?? 0 } <= Self.maximumAssociations
    }

    /// Every change is to be told, watched or not.
    func tell(_ contextId: CoatyUUID, _ changes: IoAssociationChanges) {
        let watchers = state.withLock { state in
            let count = state.counts[contextId, default: 0] + changes.added.count - changes.removed.count
            state.counts[contextId] = count == 0 ? nil : count
            return state.watchers[contextId]
        }
        guard let watchers else { return }
        let frames = EventFrame.texts(changes, context: contextId)
        for watcher in watchers.values { watcher(frames) }
    }
}
