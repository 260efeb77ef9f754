import OrderedCollections
import Synchronization

/// The queue of received changes that an IO router has not yet handled. It keeps only the latest change of each node,
/// so its size is bounded by the number of nodes.
final class IoRouterInbox: Sendable {
    /// Maximum number of queued updates; further ones are not answered.
    static let maximumUpdates = 1_000

    /// The latest change of a node.
    struct NodeChange: Sendable {
        /// Whether the node was gone in between: the agent that offers it now may not know its associations.
        var wasGone = false
        /// Whether its agent has advertised it, as agents do when they join, rather than resolved it.
        var isAdvertised = false
        /// Whether the offer may be older than the online period. It does not show that its agent is online.
        var isFormer = false
        /// The current node; nil if it is gone.
        var offer: Payload?
    }

    struct Content: Sendable {
        /// The online period that has begun; nil if none has.
        var onlinePeriod: Int?
        var nodes: OrderedDictionary<CoatyUUID, NodeChange> = [:]
        var updates: [UpdateEvent] = []
    }

    private struct State {
        var content = Content()
        /// The nodes that were offered and are not gone.
        var known: Set<CoatyUUID> = []
    }

    /// Yields whenever the inbox has content.
    let signals: AsyncStream<Void>
    private let signal: AsyncStream<Void>.Continuation
    private let ioContextName: WireName
    private let state = Mutex(State())

    init(ioContextName: String) {
        self.ioContextName = WireName(ioContextName)
        (signals, signal) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Removes and returns the whole content.
    func take() -> Content {
        state.withLock { state in
            defer { state.content = Content() }
            return state.content
        }
    }

    func online(_ period: Int) {
        put { state in
            state.content.onlinePeriod = period
            for id in state.content.nodes.keys { state.content.nodes[id]?.isFormer = true }
        }
    }

    /// - Returns: whether there was space.
    func update(_ event: UpdateEvent) -> Bool {
        put { state in
            guard state.content.updates.count < Self.maximumUpdates else { return false }
            state.content.updates.append(event)
            return true
        }
    }

    /// Adds an IO node that was advertised or discovered.
    ///
    /// - Returns: whether there was space.
    func offer(_ payload: Payload, isAdvertised: Bool) -> Bool {
        guard let object = payload.json["object"], let name = object["name"]?.string,
            let id = object["objectId"]?.string.map(CoatyUUID.init(wire:))
        else { return true }
        // A node of another context, or without sources and actors, does not concern the router.
        guard WireName(name) == ioContextName, object.hasElements("ioSources") || object.hasElements("ioActors")
        else {
            deadvertise([id])
            return true
        }
        return put { state in
            guard state.content.nodes[id] != nil || state.content.nodes.count < IoRouter.maximumNodes,
                state.known.contains(id) || state.known.count < IoRouter.maximumNodes
            else { return false }
            state.known.insert(id)
            var change = state.content.nodes[id] ?? NodeChange()
            change.offer = payload
            change.isFormer = false
            if isAdvertised { change.isAdvertised = true }
            state.content.nodes[id] = change
            return true
        }
    }

    /// Removes the objects of a Deadvertise event.
    func deadvertise(_ data: DeadvertiseEventData) {
        let ids = data.objectIds(among: state.withLock(\.known.count)) {
            NameFilter(state.withLock(\.known).lazy.map(\.string))
        }
        deadvertise(ids)
    }

    /// Removes objects.
    func deadvertise(_ ids: [CoatyUUID]) {
        let isRelevant = state.withLock { state in
            for id in ids where state.known.remove(id) != nil {
                state.content.nodes[id] = NodeChange(wasGone: true)
            }
            return !state.content.nodes.isEmpty
        }
        if isRelevant { signal.yield() }
    }

    private func put<Result>(_ change: (inout sending State) -> sending Result) -> Result {
        defer { signal.yield() }
        return state.withLock(change)
    }
}

extension JSONView {
    fileprivate func hasElements(_ name: StaticString) -> Bool {
        var elements = self[name]?.elements
        return elements?.next() != nil
    }
}
