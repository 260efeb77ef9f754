/// The effect of a publication on the objects that an agent shares.
enum Sharing: Sendable {
    /// Advertises an object that belongs to the agent: its parent is the agent's identity or one of its IO nodes.
    ///
    /// An Advertise event goes to the core type first and then, if it differs, to the object type.
    case advertises(CoatyUUID, parentId: CoatyUUID, isObjectType: Bool)
    /// Deadvertises objects and their children, or advertises an object with another parent.
    case ends([CoatyUUID])
}

/// The objects that an agent advertises again after a reconnect: exactly those that its farewell has withdrawn.
///
/// When a connection is lost, the broker publishes the farewell, a Deadvertise event of the agent's identity and IO
/// nodes. It also withdraws all objects that have one of these as parent (Coaty communication events specification,
/// Deadvertise). Therefore, after each connect, the agent advertises its identity and its IO nodes, and then the latest
/// version of each object that it has advertised with one of these as parent and has not deadvertised. Objects with
/// another parent or none were not withdrawn.
///
/// An object is added as soon as its advertisement is written. Until then, the outbox keeps it.
struct AdvertisedObjects: Sendable {
    /// Maximum number of objects. Those beyond are not advertised again.
    static let maximumObjects = 10_000
    /// Maximum size of all objects, in bytes.
    static let maximumBytes = 16 << 20

    private struct Shared {
        var publications: [Publication]
        let parentId: CoatyUUID
        let ordinal: Int

        var size: Int { publications.reduce(0) { $0 + $1.size } }
    }

    private var objects: [CoatyUUID: Shared] = [:]
    /// Number of objects of each parent.
    private var parents: [CoatyUUID: Int] = [:]
    private var bytes = 0
    private var lastOrdinal = 0
    /// Number of advertisements that were not kept because of the limits.
    private(set) var refused = 0

    /// The advertisements, in the order in which the objects were added.
    var joinEvents: [Publication] {
        objects.values.sorted { $0.ordinal < $1.ordinal }.flatMap { $0.publications.map { $0.asJoinEvent() } }
    }

    /// Registers a queued publication: an object that it deadvertises is not advertised again meanwhile.
    mutating func queued(_ publication: Publication) {
        if case .ends(let ids) = publication.sharing { end(ids) }
    }

    /// Registers the effect of a written publication.
    ///
    /// - Returns: false if the object should be advertised again but the limits are reached.
    mutating func written(_ publication: Publication) -> Bool {
        switch publication.sharing {
        case .ends(let ids):
            end(ids)
            return true
        case .advertises(let id, let parentId, let isObjectType):
            return insert(publication, id, parentId, isObjectType)
        case nil: return true
        }
    }

    private mutating func insert(
        _ publication: Publication,
        _ id: CoatyUUID,
        _ parentId: CoatyUUID,
        _ isObjectType: Bool
    ) -> Bool {
        // The advertisement to the object type belongs to the one to the core type that was sent before it.
        if isObjectType, objects[id] == nil { return true }
        let known = remove(id)
        var publication = publication
        publication.holding = nil
        let shared = Shared(
            publications: isObjectType ? [known?.publications.first, publication].compactMap(\.self) : [publication],
            parentId: parentId,
            ordinal: known?.ordinal ?? lastOrdinal + 1
        )
        guard objects.count < Self.maximumObjects, bytes + shared.size <= Self.maximumBytes else {
            refused += 1
            return false
        }
        lastOrdinal = max(lastOrdinal, shared.ordinal)
        objects[id] = shared
        parents[parentId, default: 0] += 1
        bytes += shared.size
        return true
    }

    private mutating func end(_ ids: [CoatyUUID]) {
        for id in ids {
            remove(id)
            guard parents[id] != nil else { continue }
            for child in objects.filter({ $0.value.parentId == id }).keys { remove(child) }
        }
    }

    @discardableResult
    private mutating func remove(_ id: CoatyUUID) -> Shared? {
        guard let shared = objects.removeValue(forKey: id) else { return nil }
        bytes -= shared.size
        parents[shared.parentId, default: 1] -= 1
        if parents[shared.parentId] == 0 { parents[shared.parentId] = nil }
        return shared
    }
}
