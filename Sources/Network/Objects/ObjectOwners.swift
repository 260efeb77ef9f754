package import Access
package import Base
package import Coaty
package import ProblemDetails
import Synchronization

/// The principals that advertised objects through the gateway.
///
/// Objects of anonymous clients and agents have no owner, and after a restart no object has one. Only the conditions of
/// grants protect objects without an owner. In a cluster, the owners at all gateways count.
package final class ObjectOwners: Sendable {
    private struct Owner {
        let subject: Principal.Subject
        let place: Place
    }

    /// By the id of the object, which may be long.
    private let owners = Mutex<[TextKey: Owner]>([:])
    private let others: PeerObjects?

    /// - Parameter others: the owners at the other gateways; nil if the gateway is in no cluster.
    package init(others: PeerObjects? = nil) { self.others = others }

    /// Records the principal that advertises an object. The first owner stays, even if other principals may change its
    /// objects.
    ///
    /// - Throws: `Problem` if the principal has too many objects, until it deadvertises some: otherwise one principal
    ///   could fill the object registry, and objects of others would be removed.
    package func insert(_ id: CoatyUUID, _ subject: Principal.Subject, _ account: ClientAccount) throws(Problem) {
        let key = TextKey(id.string)
        guard owners.withLock({ $0[key] == nil }) else { return }
        let owner = Owner(subject: subject, place: try account.take(.objects))
        owners.withLock { owners in
            if owners[key] == nil { owners[key] = owner }
        }
        others?.update(id) { $0.owner = subject }
    }

    /// Removes objects that were deadvertised.
    package func remove(_ ids: [CoatyUUID]) {
        let keys = ids.map { TextKey($0.string) }
        owners.withLock { owners in
            for key in keys { owners[key] = nil }
        }
        for id in ids { others?.update(id) { $0.owner = nil } }
    }

    /// Returns the principal that advertised an object; nil if there is none.
    package func owner(_ id: CoatyUUID) -> Principal.Subject? {
        let key = TextKey(id.string)
        return owners.withLock { $0[key]?.subject } ?? others?.owner(id)
    }

    /// Returns whether another principal owns an object, or has registered it as an IO node.
    package func isForeign(_ id: CoatyUUID, to subject: Principal.Subject, _ ioNodes: IoNodeRegistry) -> Bool {
        guard let owner = owner(id) ?? ioNodes.owner(ofId: id) else { return false }
        return owner != subject && owner != .anonymous
    }
}
