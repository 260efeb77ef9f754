import Coaty

/// The agents that have gone, the one that went last at the end. When there are too many, the oldest is forgotten.
struct DepartedAgents: Sendable {
    /// How many are known at most.
    static let maximumDeparted = 1_000
    /// How many bytes their identities have at most.
    static let maximumBytes = 4 << 20

    private struct Departure: Sendable {
        let identity: AliveObject
        let since: Int
        /// Whether nobody told that it went.
        let isPresumed: Bool
    }

    private var departures: [Departure] = []
    private var bytes = 0

    var agents: [AgentPresence] {
        departures.map { AgentPresence(identity: $0.identity.bytes, isOnline: false, since: $0.since) }
    }

    mutating func add(_ identity: AliveObject, since: Int, isPresumed: Bool) {
        departures.append(Departure(identity: identity, since: since, isPresumed: isPresumed))
        bytes += identity.size
        while departures.count > Self.maximumDeparted || bytes > Self.maximumBytes {
            bytes -= departures.removeFirst().identity.size
        }
    }

    /// Takes out an agent that comes back.
    ///
    /// - Returns: whether it was only presumed to have gone.
    mutating func remove(_ id: CoatyUUID) -> Bool {
        guard let index = departures.firstIndex(where: { $0.identity.objectId == id }) else { return false }
        let departure = departures.remove(at: index)
        bytes -= departure.identity.size
        return departure.isPresumed
    }
}
