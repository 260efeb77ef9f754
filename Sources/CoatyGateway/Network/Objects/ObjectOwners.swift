import Coaty
import DequeModule
import Synchronization

/// Which principal advertised an object through the gateway.
///
/// Objects that anonymous clients or agents advertised, and all objects after a restart, are nobody's: then only the conditions of
/// grants protect them.
final class ObjectOwners: Sendable {
    /// Maximum number of objects of one principal, until it deadvertises some: otherwise one principal could fill the object registry,
    /// and others' objects would be forgotten.
    static let maximumObjects = 2_000

    private struct State {
        var owners: [CoatyUUID: Principal.Subject] = [:]
        var counts: [Principal.Subject: Int] = [:]
    }

    private let state = Mutex(State())

    /// Notes who advertises an object. The first owner stays, also if another principal may touch its objects.
    ///
    /// - Returns: false if the principal has too many objects.
    func insert(_ id: CoatyUUID, _ subject: Principal.Subject) -> Bool {
        state.withLock { state in
            guard state.owners[id] == nil else { return true }
            guard state.counts[subject, default: 0] < Self.maximumObjects else { return false }
            state.owners[id] = subject
            state.counts[subject, default: 0] += 1
            return true
        }
    }

    /// Forgets objects that were deadvertised.
    func remove(_ ids: [CoatyUUID]) {
        state.withLock { state in
            for id in ids {
                guard let owner = state.owners.removeValue(forKey: id) else { continue }
                state.counts[owner, default: 0] -= 1
                if state.counts[owner] == 0 { state.counts[owner] = nil }
            }
        }
    }

    /// The principal that advertised an object; nil if nobody did.
    func owner(_ id: CoatyUUID) -> Principal.Subject? { state.withLock { $0.owners[id] } }

    /// Returns whether another principal owns an object, or has registered it as an IO node.
    func isForeign(_ id: CoatyUUID, to subject: Principal.Subject, _ ioNodes: IoNodeRegistry) -> Bool {
        guard let owner = owner(id) ?? ioNodes.owner(ofId: id) else { return false }
        return owner != subject && owner != .anonymous
    }
}
