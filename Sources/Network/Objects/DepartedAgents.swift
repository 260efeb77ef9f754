import Coaty

/// The agents that have left, in the order in which they left, bounded in number and bytes.
///
/// If there are too many, the agent that left first is removed.
struct DepartedAgents: Sendable {
    /// Maximum number of identity bytes for each agent that may be listed.
    static let bytesPerAgent = 4 << 10

    private struct Departure: Sendable {
        let identity: AliveObject
        let since: Int
        /// Whether the agent left without a Deadvertise event.
        let isPresumed: Bool
    }

    private let maximumDeparted: Int
    private var departures: [Departure] = []
    private var ids: Set<CoatyUUID> = []
    private var bytes = 0

    /// - Parameter maximumDeparted: the maximum number of agents.
    init(maximumDeparted: Int) { self.maximumDeparted = maximumDeparted }

    var agents: [AgentPresence] {
        departures.map { AgentPresence(identity: $0.identity.bytes, isOnline: false, since: $0.since) }
    }

    func contains(_ id: CoatyUUID) -> Bool { ids.contains(id) }

    /// Adds an agent that is not listed yet.
    ///
    /// - Returns: the agents that are removed to make room.
    mutating func add(_ identity: AliveObject, since: Int, isPresumed: Bool) -> [CoatyUUID] {
        departures.append(Departure(identity: identity, since: since, isPresumed: isPresumed))
        ids.insert(identity.objectId)
        bytes += identity.size
        var forgotten: [CoatyUUID] = []
        while departures.count > maximumDeparted || bytes > Self.bytesPerAgent * maximumDeparted {
            let identity = departures.removeFirst().identity
            ids.remove(identity.objectId)
            bytes -= identity.size
            forgotten.append(identity.objectId)
        }
        return forgotten
    }

    /// Removes an agent that has returned.
    ///
    /// - Returns: whether it was only presumed to have left.
    mutating func remove(_ id: CoatyUUID) -> Bool {
        guard ids.remove(id) != nil, let index = departures.firstIndex(where: { $0.identity.objectId == id }) else {
            return false
        }
        let departure = departures.remove(at: index)
        bytes -= departure.identity.size
        return departure.isPresumed
    }
}
