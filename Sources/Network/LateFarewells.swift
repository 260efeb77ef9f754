import Base
package import Coaty
package import Logging
import Synchronization

/// Deadvertises agents of clients that have left while their sessions were not connected to the broker.
///
/// The gateway's own session publishes these events when it is connected again; until then, they are deferred. The
/// client's place stays reserved until the event is written, so that a client can't have more of them than agents.
///
/// Its lock is a leaf.
package final class LateFarewells: Sendable {
    /// Time until another attempt if the outbox has no room.
    private static let retryInterval = Duration.seconds(1)

    /// An event that is not yet written. The outbox has the only strong reference.
    private final class Event: PublicationHolder {
        let place: Place?
        var client: (any PublicationClient)? { place?.client }

        init(_ place: Place?) { self.place = place }
    }

    private struct Queued {
        let ids: [CoatyUUID]
        weak var event: Event?
        let withdraw: @Sendable () -> Bool
    }

    private struct State {
        /// The events that may still be queued.
        var queued: [Queued] = []
        /// The ids for which the outbox has had no room.
        var refused: [(ids: [CoatyUUID], place: Place?)] = []
        var timer: Deadline?
    }

    private let manager: CommunicationManager
    private let logger: Logger
    private let state = Mutex(State())

    /// - Parameter manager: the gateway's own agent.
    package init(manager: CommunicationManager, logger: Logger) { (self.manager, self.logger) = (manager, logger) }

    /// Deadvertises what an agent could not deadvertise before it stopped.
    ///
    /// - Parameter place: the client's place.
    func publish(_ ids: [CoatyUUID], holding place: Place?) {
        guard !ids.isEmpty else { return }
        let event = Event(place)
        do {
            let withdraw = try manager.publishDeadvertise(departed: ids, holding: event)
            state.withLock { state in
                state.queued.removeAll { $0.event == nil }
                state.queued.append(Queued(ids: ids, event: event, withdraw: withdraw))
            }
        } catch {
            logger.debug("an agent that has left is deadvertised later", metadata: ["error": "\(error)"])
            state.withLock { state in
                state.refused.append((ids, place))
                if state.timer == nil {
                    state.timer = Deadline(after: Self.retryInterval) { [weak self] in self?.retry() }
                }
            }
        }
    }

    /// Removes an id from the queued events, because an agent with this id joins.
    ///
    /// - Returns: whether it was queued.
    func cancel(_ id: CoatyUUID) -> Bool {
        let (queued, refused) = state.withLock { state in
            let found = (
                state.queued.filter { $0.event != nil && $0.ids.contains(id) },
                state.refused.contains { $0.ids.contains(id) }
            )
            state.queued.removeAll { $0.event == nil || $0.ids.contains(id) }
            for index in state.refused.indices { state.refused[index].ids.removeAll { $0 == id } }
            return found
        }
        var isCancelled = refused
        for event in queued {
            let place = event.event?.place
            guard event.withdraw() else { continue }
            isCancelled = true
            publish(event.ids.filter { $0 != id }, holding: place)
        }
        return isCancelled
    }

    private func retry() {
        let refused = state.withLock { state in
            defer { (state.refused, state.timer) = ([], nil) }
            return state.refused
        }
        for (ids, place) in refused { publish(ids, holding: place) }
    }
}
