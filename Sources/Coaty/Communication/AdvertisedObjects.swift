/// The effect of a publication on the objects that an agent advertises again after a reconnect.
enum Sharing: Sendable {
    /// Advertises an object that is advertised again.
    ///
    /// An Advertise event goes to the core type first and then, if it differs, to the object type.
    case advertises(CoatyUUID, parentId: CoatyUUID?, isObjectType: Bool)
    /// Advertises an object that is not advertised again, even if an earlier version was.
    case replaces(CoatyUUID)
    /// Deadvertises objects and their children.
    case ends([CoatyUUID])

    /// The objects whose advertisements it changes.
    var objectIds: [CoatyUUID] {
        switch self {
        case .advertises(let id, _, _), .replaces(let id): [id]
        case .ends(let ids): ids
        }
    }
}

/// The objects that an agent advertises again after a reconnect.
///
/// When a connection is lost, the broker publishes the farewell, a Deadvertise event of the agent's identity and IO
/// nodes. It also withdraws all objects that have one of these as parent (Coaty communication events specification,
/// Deadvertise). Therefore, after each connect, the agent advertises its identity and its IO nodes, and then the latest
/// version of each object that it has advertised with one of these as parent and has not deadvertised. Objects with
/// another parent or none were not withdrawn. They are only kept if the publisher asks for it, as the gateway does for
/// its clients.
///
/// An object is added as soon as its advertisement is written. Until then, the outbox keeps it.
struct AdvertisedObjects: Sendable {
    /// Maximum number of objects. Those beyond are not advertised again. Publications with
    /// ``Publication/keeping`` have a bound elsewhere.
    static let maximumObjects = 10_000
    /// Maximum size of all objects, in bytes.
    static let maximumBytes = 16 << 20

    private struct Shared {
        var publications: [Publication]
        let parentId: CoatyUUID?
        let ordinal: Int

        var size: Int { publications.reduce(0) { $0 + $1.size } }
    }

    private var objects: [CoatyUUID: Shared] = [:]
    /// The ids of the objects of each parent.
    private var children: [CoatyUUID: Set<CoatyUUID>] = [:]
    private var bytes = 0
    private var lastOrdinal = 0
    /// Number of advertisements that were not kept because of the limits.
    private(set) var refused = 0

    /// The advertisements, in the order in which the objects were added, but each parent before its children.
    var inOrder: [Publication] {
        var events: [Publication] = []
        events.reserveCapacity(2 * objects.count)
        var placed: Set<CoatyUUID> = []
        placed.reserveCapacity(objects.count)
        for id in objects.sorted(by: { $0.value.ordinal < $1.value.ordinal }).map(\.key) {
            var line: [Shared] = []
            var next: CoatyUUID? = id
            // Ends at an object that is already placed, so also if objects are parents of each other.
            while let id = next, let shared = objects[id], placed.insert(id).inserted {
                line.append(shared)
                next = shared.parentId
            }
            for shared in line.reversed() { events += shared.publications }
        }
        return events
    }

    /// Returns the advertisements of an object.
    func advertisements(of id: CoatyUUID) -> [Publication] { objects[id]?.publications ?? [] }

    /// Registers a queued publication: an object that it deadvertises is not advertised again meanwhile.
    mutating func queued(_ publication: Publication) {
        switch publication.sharing {
        case .ends(let ids): end(ids)
        case .replaces(let id): remove(id)
        case .advertises, nil: break
        }
    }

    /// Registers the effect of a written publication.
    ///
    /// - Returns: false if the object should be advertised again but the limits are reached.
    mutating func written(_ publication: Publication) -> Bool {
        switch publication.sharing {
        case .ends(let ids): end(ids)
        case .replaces(let id): remove(id)
        case .advertises(let id, let parentId, let isObjectType):
            return insert(publication, id, parentId, isObjectType)
        case nil: break
        }
        return true
    }

    /// Removes an object that another agent has advertised since.
    @discardableResult
    mutating func remove(_ id: CoatyUUID) -> Bool { removed(id) != nil }

    /// Removes objects and their children.
    mutating func end(_ ids: [CoatyUUID]) {
        for id in ids {
            remove(id)
            for child in children[id] ?? [] { remove(child) }
        }
    }

    private mutating func insert(
        _ publication: Publication,
        _ id: CoatyUUID,
        _ parentId: CoatyUUID?,
        _ isObjectType: Bool
    ) -> Bool {
        // The advertisement to the object type belongs to the one to the core type that was sent before it.
        let known = objects[id]
        if isObjectType, known == nil { return true }
        var publication = publication
        (publication.holding, publication.attempts) = (nil, 0)
        let shared = Shared(
            publications: isObjectType ? [known?.publications.first, publication].compactMap(\.self) : [publication],
            parentId: parentId,
            ordinal: known?.ordinal ?? lastOrdinal + 1
        )
        let others = (count: objects.count - (known == nil ? 0 : 1), bytes: bytes - (known?.size ?? 0))
        let isBounded = publication.keeping != nil
        guard isBounded || others.count < Self.maximumObjects && others.bytes + shared.size <= Self.maximumBytes else {
            refused += 1
            remove(id)
            return false
        }
        lastOrdinal = max(lastOrdinal, shared.ordinal)
        // Most advertisements replace a version with the same parent.
        if known == nil || known?.parentId != parentId {
            remove(id)
            if let parentId { children[parentId, default: []].insert(id) }
        }
        objects[id] = shared
        bytes = others.bytes + shared.size
        return true
    }

    private mutating func removed(_ id: CoatyUUID) -> Shared? {
        guard let shared = objects.removeValue(forKey: id) else { return nil }
        bytes -= shared.size
        if let parentId = shared.parentId {
            children[parentId]?.remove(id)
            if children[parentId]?.isEmpty ?? false { children[parentId] = nil }
        }
        return shared
    }
}
