import OrderedCollections
import Synchronization

/// The associations that the IO routers have made for the agent's own IO sources and IO actors.
final class IoAssociations: Sendable {
    /// Maximum number of associations of a source or an actor; further ones are dropped.
    static let maximumAssociations = 10_000

    /// An observer's callbacks.
    struct Observer<Event: Sendable>: Sendable {
        let handler: @Sendable (Event) -> Void
        let onEnd: (@Sendable () -> Void)?
        /// Called when events may have been missed although the connection is up.
        var onGap: (@Sendable (GapReason) -> Void)?
        /// Whether it stays when the communication manager stops.
        let isPermanent: Bool
    }

    fileprivate struct Source {
        var route: String?
        var actors: Set<CoatyUUID> = []
        var updateRate: Int?

        var state: IoStateEvent { IoStateEvent(hasAssociations: !actors.isEmpty, updateRate: updateRate) }
    }

    fileprivate struct Actor {
        let isRaw: Bool
        /// The route of each associated source.
        var routes: [CoatyUUID: WireName] = [:]
        /// One subscription for each route, and the number of sources that use it.
        var subscriptions: [WireName: (subscription: Subscription, uses: Int)] = [:]

        var state: IoStateEvent { IoStateEvent(hasAssociations: !routes.isEmpty) }
    }

    private struct State {
        var sources: [CoatyUUID: Source] = [:]
        var actors: [CoatyUUID: Actor] = [:]
        // In the order in which they were added: the publisher that was created first is the first to be notified that
        // its source is associated.
        var stateObservers: [CoatyUUID: OrderedDictionary<UInt64, Observer<IoStateEvent>>] = [:]
        var valueObservers: [CoatyUUID: OrderedDictionary<UInt64, Observer<IoValueEvent>>] = [:]
        var lastId: UInt64 = 0
    }

    private let state: Mutex<State>

    /// - Throws: ``CommunicationError/invalidName(_:)`` if a node's name is not valid.
    init(ioNodes: [IoNode]) throws(CommunicationError) {
        var state = State()
        for node in ioNodes {
            guard WireName.isPublishable(node.name) else { throw .invalidName(node.name) }
            for source in node.ioSources { state.sources[source.objectId] = Source() }
            for actor in node.ioActors {
                state.actors[actor.objectId] = Actor(isRaw: actor.useRawIoValues ?? false)
            }
        }
        self.state = Mutex(state)
    }

    /// Returns the route of an associated source.
    func route(ofSource id: CoatyUUID) -> String? {
        state.withLock { $0.sources[id]?.route }
    }

    /// Handles an association of a router.
    ///
    /// - Parameters:
    ///   - isRoute: returns whether values may be sent on a route.
    ///   - subscribe: observes a route for an actor.
    ///   - refuse: called with a route on which values must not be sent.
    func take(
        _ association: AssociateEventData,
        isRoute: (String) -> Bool,
        subscribe: (_ route: String, _ actorId: CoatyUUID, _ isRaw: Bool) -> Subscription,
        refuse: (_ route: String) -> Void
    ) {
        let (sourceId, actorId) = (association.ioSourceId, association.ioActorId)
        var route = association.associatingRoute
        if let named = route, !isRoute(named) {
            refuse(named)
            route = nil
        }
        // Subscribing and unsubscribing only queue operations, so both may happen under the lock, in the order of the
        // associations.
        let notifications = state.withLock { state in
            var notifications: [(observers: [Observer<IoStateEvent>], state: IoStateEvent)] = []
            if state.sources[sourceId]?.take(actorId, route, association.updateRate) ?? false,
                let current = state.sources[sourceId]?.state
            {
                notifications.append((Array(state.stateObservers[sourceId, default: [:]].values), current))
            }
            let isTaken = state.actors[actorId]?.take(sourceId, route.map(WireName.init)) { route, isRaw in
                subscribe(route.text, actorId, isRaw)
            }
            if isTaken ?? false, let current = state.actors[actorId]?.state {
                notifications.append((Array(state.stateObservers[actorId, default: [:]].values), current))
            }
            return notifications
        }
        for (observers, state) in notifications {
            for observer in observers { observer.handler(state) }
        }
    }

    /// Delivers a value to the observers of an actor.
    func deliver(_ event: IoValueEvent, to actorId: CoatyUUID) {
        let observers = state.withLock { $0.valueObservers[actorId] }
        for observer in observers?.values.elements ?? [] { observer.handler(event) }
    }

    /// Sends a gap to the observers of an actor.
    func noteGap(ofActor actorId: CoatyUUID, _ reason: GapReason) {
        let observers = state.withLock { $0.valueObservers[actorId] }
        for observer in observers?.values.elements ?? [] { observer.onGap?(reason) }
    }

    func hasObservers(ofActor actorId: CoatyUUID) -> Bool {
        state.withLock { $0.valueObservers[actorId] != nil }
    }

    /// Observes the state of a point: the current state immediately, then each change.
    func observeState(of id: CoatyUUID, _ observer: Observer<IoStateEvent>) -> Subscription {
        let observerId = state.withLock { state in
            state.lastId += 1
            state.stateObservers[id, default: [:]][state.lastId] = observer
            return state.lastId
        }
        // Another thread may report a change in between. Repeat until the last reported state is the current one.
        var reported: IoStateEvent?
        while true {
            let current = state.withLock { $0.sources[id]?.state ?? $0.actors[id]?.state }
            let now = current ?? IoStateEvent(hasAssociations: false)
            guard now != reported else { break }
            observer.handler(now)
            reported = now
        }
        return Subscription { [weak self] in
            let removed = self?.state.withLock { $0.stateObservers.removeObserver(observerId, of: id) }
            withExtendedLifetime(removed) {}
        }
    }

    /// Observes the values that are received for an actor.
    func observeValues(of id: CoatyUUID, _ observer: Observer<IoValueEvent>) -> Subscription {
        let observerId = state.withLock { state in
            state.lastId += 1
            state.valueObservers[id, default: [:]][state.lastId] = observer
            return state.lastId
        }
        return Subscription { [weak self] in
            let removed = self?.state.withLock { $0.valueObservers.removeObserver(observerId, of: id) }
            withExtendedLifetime(removed) {}
        }
    }

    /// Removes all associations and ends all observations except the permanent ones.
    func endAll() {
        let ended = state.withLock { state in
            let ended = (state.actors, state.stateObservers, state.valueObservers)
            state.sources = state.sources.mapValues { _ in Source() }
            state.actors = state.actors.mapValues { Actor(isRaw: $0.isRaw) }
            state.stateObservers.keepPermanentObservers()
            state.valueObservers.keepPermanentObservers()
            return ended
        }
        for observer in ended.1.values.flatMap(\.values) {
            observer.handler(IoStateEvent(hasAssociations: false))
            observer.onEnd?()
        }
        for observer in ended.2.values.flatMap(\.values) { observer.onEnd?() }
        withExtendedLifetime(ended) {}
    }
}

extension IoAssociations.Source {
    /// - Returns: whether anything may have changed.
    fileprivate mutating func take(_ actorId: CoatyUUID, _ route: String?, _ updateRate: Int?) -> Bool {
        if let route {
            guard actors.contains(actorId) || actors.count < IoAssociations.maximumAssociations else { return false }
            actors.insert(actorId)
            self.route = route
            self.updateRate = updateRate
        } else {
            actors.remove(actorId)
            if actors.isEmpty { self = Self() }
        }
        return true
    }
}

extension IoAssociations.Actor {
    /// Subscribes to exactly the routes in use. The cost does not grow with the number of existing associations.
    ///
    /// - Returns: whether anything may have changed.
    fileprivate mutating func take(
        _ sourceId: CoatyUUID,
        _ route: WireName?,
        subscribe: (WireName, _ isRaw: Bool) -> Subscription
    ) -> Bool {
        let former = routes[sourceId]
        guard route == nil || former != nil || routes.count < IoAssociations.maximumAssociations else { return false }
        guard route != former else { return true }
        routes[sourceId] = route
        if let former {
            subscriptions[former]?.uses -= 1
            if subscriptions[former]?.uses == 0 { subscriptions[former] = nil }
        }
        if let route {
            if subscriptions[route] == nil { subscriptions[route] = (subscribe(route, isRaw), 0) }
            subscriptions[route]?.uses += 1
        }
        return true
    }
}

extension Dictionary where Key == CoatyUUID {
    fileprivate mutating func removeObserver<Event>(
        _ observerId: UInt64,
        of id: CoatyUUID
    ) -> IoAssociations.Observer<Event>? where Value == OrderedDictionary<UInt64, IoAssociations.Observer<Event>> {
        defer { if self[id]?.isEmpty ?? false { self[id] = nil } }
        return self[id]?.removeValue(forKey: observerId)
    }

    fileprivate mutating func keepPermanentObservers<Event>()
    where Value == OrderedDictionary<UInt64, IoAssociations.Observer<Event>> {
        self = mapValues { $0.filter(\.value.isPermanent) }.filter { !$0.value.isEmpty }
    }
}
