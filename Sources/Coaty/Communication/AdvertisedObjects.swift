/// What a publication does to the objects that an agent shares.
enum Sharing: Sendable {
    /// Advertises an object that belongs to the agent: its parent is the agent's identity or one of its IO nodes.
    ///
    /// An Advertise event goes to the core type first and then, where that differs, to the object type.
    case advertises(CoatyUUID, isObjectType: Bool)
    /// Deadvertises objects.
    case deadvertises([CoatyUUID])
}

/// The objects that an agent advertises again after a reconnect: exactly those that its farewell has withdrawn.
///
/// When a connection is lost, the broker publishes the farewell, a Deadvertise of the agent's identity and IO nodes. With these go
/// all objects whose parent they are (Coaty communication events specification, Deadvertise). So after each connect the agent
/// advertises, behind its identity and its IO nodes, the latest version of each object that it has advertised with one of
/// these as parent and has not deadvertised. Objects with another parent or none were not withdrawn.
///
/// An object is in here from the moment at which its advertisement was written: until then the outbox keeps it.
struct AdvertisedObjects: Sendable {
    /// Maximum number of objects. Those beyond are not advertised again.
    static let maximumObjects = 10_000
    /// Maximum size of all objects, in bytes.
    static let maximumBytes = 16 << 20

    private var objects: [CoatyUUID: (publications: [Publication], ordinal: Int)] = [:]
    private var bytes = 0
    private var lastOrdinal = 0
    /// Number of advertisements that were not kept because of the limits.
    private(set) var refused = 0

    /// The advertisements, in the order in which the objects came.
    var joinEvents: [Publication] {
        objects.values.sorted { $0.ordinal < $1.ordinal }.flatMap { $0.publications.map { $0.asJoinEvent() } }
    }

    /// Notes what a publication that is queued will do: what is deadvertised is not advertised again meanwhile.
    mutating func queued(_ publication: Publication) {
        if case .deadvertises(let ids) = publication.sharing { remove(ids) }
    }

    /// Notes what a publication that was written has done.
    mutating func written(_ publication: Publication) {
        switch publication.sharing {
        case .deadvertises(let ids): remove(ids)
        case .advertises(let id, let isObjectType): insert(publication, id, isObjectType)
        case nil: break
        }
    }

    private mutating func insert(_ publication: Publication, _ id: CoatyUUID, _ isObjectType: Bool) {
        let known = objects[id]
        // The one for the object type belongs to the one for the core type that went out before it.
        if isObjectType, known == nil { return }
        remove([id])
        let publications = isObjectType ? [known?.publications.first, publication].compactMap(\.self) : [publication]
        let size = publications.reduce(0) { $0 + $1.size }
        guard objects.count < Self.maximumObjects, bytes + size <= Self.maximumBytes else {
            refused += 1
            return
        }
        if known == nil { lastOrdinal += 1 }
        objects[id] = (publications, known?.ordinal ?? lastOrdinal)
        bytes += size
    }

    private mutating func remove(_ ids: [CoatyUUID]) {
        for id in ids {
            guard let object = objects.removeValue(forKey: id) else { continue }
            bytes -= object.publications.reduce(0) { $0 + $1.size }
        }
    }
}
