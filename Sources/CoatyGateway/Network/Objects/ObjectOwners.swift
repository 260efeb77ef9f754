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

    /// By the digest of the object's id, which may be long.
    private let owners = Mutex<[TextDigest: Owner]>([:])
    private let key = TextDigest.Key()

    /// Notes who advertises an object. The first owner stays, also if another principal may touch its objects.
    ///
    /// - Throws: `Problem` if the principal has too many objects, until it deadvertises some: otherwise one principal could fill
    ///   the object registry, and others' objects would be forgotten.
    func insert(_ id: CoatyUUID, _ subject: Principal.Subject, _ account: ClientAccount) throws(Problem) {
        let digest = key.digest(of: id.string)
        guard owners.withLock({ $0[digest] == nil }) else { return }
        let owner = Owner(subject: subject, place: try account.take(.objects))
        owners.withLock { owners in
            if owners[digest] == nil { owners[digest] = owner }
        }
    }

    /// Forgets objects that were deadvertised.
    func remove(_ ids: [CoatyUUID]) {
        let digests = ids.map { key.digest(of: $0.string) }
        owners.withLock { owners in
            for digest in digests { owners[digest] = nil }
        }
    }

    /// The principal that advertised an object; nil if nobody did.
    func owner(_ id: CoatyUUID) -> Principal.Subject? {
        let digest = key.digest(of: id.string)
        return owners.withLock { $0[digest]?.subject }
    }

    /// Returns whether another principal owns an object, or has registered it as an IO node.
    func isForeign(_ id: CoatyUUID, to subject: Principal.Subject, _ ioNodes: IoNodeRegistry) -> Bool {
        guard let owner = owner(id) ?? ioNodes.owner(ofId: id) else { return false }
        return owner != subject && owner != .anonymous
    }
}
