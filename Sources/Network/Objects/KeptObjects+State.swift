import Access
import Base
import Coaty
import ProblemDetails

extension KeptObjects {
    /// The room of an object. The agent's session holds it as long as it keeps the object.
    final class Room: PublicationHolder {
        let account: ClientAccount
        var client: (any PublicationClient)? { account }
        let place: Place

        init(_ bytes: Int, of account: ClientAccount) throws(Problem) {
            self.account = account
            place = try account.take(.keptObjects, bytes)
        }
    }

    enum End {
        case timer(Deadline)
        case connection(ConnectionLifetime)
    }

    struct Entry {
        /// Nil when the session no longer keeps the object.
        weak var room: Room?
        weak var manager: CommunicationManager?
        let owner: Principal
        /// Distinguishes versions of an object.
        let number: UInt64
        var end: End?

        var isKept: Bool { room != nil && manager != nil }
    }

    struct WeakManager {
        weak var manager: CommunicationManager?
    }

    struct State {
        static let minimumSweep = 256

        var entries: [CoatyUUID: Entry] = [:]
        /// The agents that keep objects, by their identities.
        var managers: [CoatyUUID: WeakManager] = [:]
        var lastNumber: UInt64 = 0
        /// The number of entries at which those that are no longer kept are removed.
        var sweep = minimumSweep
        var observations: [Subscription] = []
        var isStopped = false
        /// Announces the objects to the other gateways; nil if the gateway is in no cluster.
        var peers: PeerObjects?
    }
}

extension KeptObjects.State {
    mutating func remove(_ id: CoatyUUID) {
        guard let entry = entries.removeValue(forKey: id) else { return }
        entry.ignoreConnection(id)
        peers?.update(id) { record in (record.keeper, record.end) = (nil, nil) }
    }

    /// Forgets deadvertised objects and their children.
    ///
    /// - Parameter source: the agent that has deadvertised them, whose session forgets them itself.
    mutating func forget(deadvertised ids: [CoatyUUID], by source: CoatyUUID) {
        guard !entries.isEmpty else { return }
        for id in ids { remove(id) }
        for (identityId, entry) in managers where identityId != source { entry.manager?.forget(deadvertised: ids) }
    }

    mutating func removeUnkept() {
        for (id, entry) in entries where !entry.isKept { remove(id) }
        managers = managers.filter { $0.value.manager != nil }
        sweep = max(Self.minimumSweep, 2 * entries.count)
    }
}

extension KeptObjects.Entry {
    func ignoreConnection(_ id: CoatyUUID) { end?.openConnection?.remove(id) }

    /// Handles that a client has advertised a newer version of the object.
    func replaced(_ id: CoatyUUID, by newer: CommunicationManager) {
        ignoreConnection(id)
        if let manager, manager !== newer { manager.forget(replaced: id) }
    }
}

extension KeptObjects.End {
    var openConnection: ConnectionLifetime? {
        if case .connection(let connection) = self { connection } else { nil }
    }
}
