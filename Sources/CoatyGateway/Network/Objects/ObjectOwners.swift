import Coaty
import HTTPServer
import Synchronization

/// Which principal advertised an object through the gateway.
///
/// Objects that anonymous clients or agents advertised, and all objects after a restart, are nobody's: then only the conditions of
/// grants protect them.
final class ObjectOwners: Sendable {
    private struct Owner {
        let subject: Principal.Subject
        let place: Place
    }

    /// By the id of the object, which may be long.
    private let owners = Mutex<[TextKey: Owner]>([:])

    /// Notes who advertises an object. The first owner stays, also if another principal may touch its objects.
    ///
    /// - Throws: `Problem` if the principal has too many objects, until it deadvertises some: otherwise one principal could fill
    ///   the object registry, and others' objects would be forgotten.
    func insert(_ id: CoatyUUID, _ subject: Principal.Subject, _ account: ClientAccount) throws(Problem) {
        let key = TextKey(id.string)
        guard owners.withLock({ $0[key] == nil }) else { return }
        let owner = Owner(subject: subject, place: try account.take(.objects))
        owners.withLock { owners in
            if owners[key] == nil { owners[key] = owner }
        }
    }

    /// Forgets objects that were deadvertised.
    func remove(_ ids: [CoatyUUID]) {
        let keys = ids.map { TextKey($0.string) }
        owners.withLock { owners in
            for key in keys { owners[key] = nil }
        }
    }

    /// The principal that advertised an object; nil if nobody did.
    func owner(_ id: CoatyUUID) -> Principal.Subject? {
        let key = TextKey(id.string)
        return owners.withLock { $0[key]?.subject }
    }

    /// Returns whether another principal owns an object, or has registered it as an IO node.
    func isForeign(_ id: CoatyUUID, to subject: Principal.Subject, _ ioNodes: IoNodeRegistry) -> Bool {
        guard let owner = owner(id) ?? ioNodes.owner(ofId: id) else { return false }
        return owner != subject && owner != .anonymous
    }
}
