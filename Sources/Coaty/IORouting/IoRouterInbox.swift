import OrderedCollections
import Synchronization

/// What has come for an IO router and was not yet acted on. Of a node the latest counts, so this is bounded by the nodes.
final class IoRouterInbox: Sendable {
    /// How many updates may wait; further ones are not answered.
    static let maximumUpdates = 1_000

    /// What has become of a node.
    struct NodeChange: Sendable {
        /// Whether the node was gone in between: who offers it now may know nothing of its associations.
        var wasGone = false
        /// The node as it is now; nil where it is gone.
        var offer: Payload?
    }

    struct Content: Sendable {
        /// The online period that has begun, if one has.
        var onlinePeriod: Int?
        var nodes: OrderedDictionary<CoatyUUID, NodeChange> = [:]
        var updates: [UpdateEvent] = []
    }

    private struct State {
        var content = Content()
        /// The nodes that were offered and are not gone.
        var known: Set<CoatyUUID> = []
    }

    /// One whenever there is something.
    let signals: AsyncStream<Void>
    private let signal: AsyncStream<Void>.Continuation
    private let ioContextName: WireName
    private let state = Mutex(State())

    init(ioContextName: String) {
        self.ioContextName = WireName(ioContextName)
        (signals, signal) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Takes everything out.
    func take() -> Content {
        state.withLock { state in
            defer { state.content = Content() }
            return state.content
        }
    }

    func online(_ period: Int) { put { $0.content.onlinePeriod = period } }

    /// - Returns: whether there was room.
    func update(_ event: UpdateEvent) -> Bool {
        put { state in
            guard state.content.updates.count < Self.maximumUpdates else { return false }
            state.content.updates.append(event)
            return true
        }
    }

    /// Notes an IO node that was advertised or found.
    ///
    /// - Returns: whether there was room.
    func offer(_ payload: Payload) -> Bool {
        guard let object = payload.json["object"], let name = object["name"]?.string,
            let id = object["objectId"]?.string.map(CoatyUUID.init(wire:))
        else { return true }
        // In another context, or with neither sources nor actors, it is none of the router's.
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
            state.content.nodes[id, default: NodeChange()].offer = payload
            return true
        }
    }

    /// Notes what an event ends.
    func deadvertise(_ data: DeadvertiseEventData) {
        let ids = data.objectIds(among: state.withLock(\.known.count)) {
            NameFilter(state.withLock(\.known).lazy.map(\.string))
        }
        deadvertise(ids)
    }

    /// Notes what is gone.
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
