import Access
import Coaty
import HashTreeCollections

/// Objects by id, and their ids by owner, parent and type.
///
/// Copies share their storage: copying takes constant time, and the cost of changing a copy depends only on the changed
/// entries.
package struct ObjectIndex: Sendable {
    /// An object with the registry's information about it.
    struct Entry: Sendable {
        var object: AliveObject
        /// The serial number of the last event that contained the object. No two entries have the same number.
        var lastEvent: UInt64
        /// The last agent, other than the owner, that resolved the object.
        var witness: (agent: CoatyUUID, lastEvent: UInt64)?
    }

    typealias IDs = TreeSet<CoatyUUID>

    private var entries: TreeDictionary<CoatyUUID, Entry> = [:]
    /// All objects. A list that is kept sorted begins a snapshot at once: sorting 100,000 objects takes 80 ms.
    private var list = ObjectList()
    private var byOwner: TreeDictionary<CoatyUUID, IDs> = [:]
    private var byParent: TreeDictionary<CoatyUUID, IDs> = [:]
    private var byCoreType: TreeDictionary<CoreType, IDs> = [:]
    private var byObjectType: TreeDictionary<WireName, IDs> = [:]
    /// The objects that are ``AliveObject/isPresence``, and their size in bytes.
    private(set) var presences: IDs = []
    private(set) var presenceBytes = 0
    /// The size of all objects in bytes.
    package private(set) var bytes = 0

    package var count: Int { entries.count }

    /// The objects, in no particular order.
    var objects: some Sequence<AliveObject> { entries.values.lazy.map(\.object) }

    var all: some Sequence<Entry> { entries.values }

    var owners: Set<CoatyUUID> { Set(byOwner.keys) }

    subscript(id: CoatyUUID) -> Entry? { entries[id] }

    /// Returns whether there is an object with an id, or an object whose parent or owner has it.
    func isKnown(_ id: CoatyUUID) -> Bool { entries[id] != nil || byParent[id] != nil || byOwner[id] != nil }

    /// The ids for which ``isKnown(_:)`` is true, some of them several times.
    var knownIds: some Sequence<CoatyUUID> {
        [Array(entries.keys), Array(byParent.keys), Array(byOwner.keys)].joined()
    }

    /// Returns whether an agent owns other objects than the given one.
    func hasOwned(by agent: CoatyUUID, besides id: CoatyUUID) -> Bool { Self.has(byOwner[agent], besides: id) }

    /// Returns whether a parent has other children than the given one.
    func hasChildren(of parent: CoatyUUID, besides id: CoatyUUID) -> Bool { Self.has(byParent[parent], besides: id) }

    private static func has(_ ids: IDs?, besides id: CoatyUUID) -> Bool {
        ids.map { $0.count > 1 || !$0.contains(id) } ?? false
    }

    func ids(ownedBy agent: CoatyUUID) -> IDs { byOwner[agent] ?? [] }

    func ids(withParent parent: CoatyUUID) -> IDs { byParent[parent] ?? [] }

    func ids(of coreType: CoreType) -> IDs { byCoreType[coreType] ?? [] }

    func ids(of objectType: WireName) -> IDs { byObjectType[objectType] ?? [] }

    // MARK: - In order

    /// The objects, in the order in which they were listed.
    var inOrder: [AliveObject] { Array(list) }

    /// Returns the objects of a kind, in the order in which they were listed, and possibly objects of other kinds in
    /// between.
    package func unread(_ kind: ObjectKind?) -> UnreadObjects {
        let ids: IDs? =
            switch kind {
            case .core(let coreType): ids(of: coreType)
            case .object(let objectType): ids(of: objectType)
            case nil: nil
            }
        // Finding and sorting an object takes about 30 times as long as skipping one.
        if let ids, 32 * ids.count < count { return UnreadObjects(objects(ids)) }
        return UnreadObjects(list, count: count)
    }

    /// Returns the objects with some ids, in the order in which they were listed.
    func objects(_ ids: IDs) -> [AliveObject] {
        ids.compactMap { entries[$0]?.object }.sorted { $0.position < $1.position }
    }

    // MARK: - Changes

    /// Inserts an object that is not listed yet.
    mutating func insert(_ entry: Entry) {
        let object = entry.object
        let id = object.objectId
        entries[id] = entry
        list.insert(object)
        byOwner[object.owner, default: []].insert(id)
        if let parent = object.parentObjectId { byParent[parent, default: []].insert(id) }
        byCoreType[object.coreType, default: []].insert(id)
        byObjectType[object.objectType, default: []].insert(id)
        bytes += object.size
        if object.isPresence {
            presences.insert(id)
            presenceBytes += object.size
        }
    }

    /// Replaces the entry of a listed object.
    mutating func replace(_ known: Entry, with entry: Entry) {
        guard known.object.isIndexed(like: entry.object), known.object.position == entry.object.position else {
            remove(known.object.objectId)
            return insert(entry)
        }
        entries[entry.object.objectId] = entry
        if entry.object !== known.object { list.replace(with: entry.object) }
        let growth = entry.object.size - known.object.size
        bytes += growth
        if entry.object.isPresence { presenceBytes += growth }
    }

    @discardableResult
    mutating func remove(_ id: CoatyUUID) -> Entry? {
        guard let entry = entries.removeValue(forKey: id) else { return nil }
        let object = entry.object
        list.remove(object)
        Self.remove(id, of: object.owner, in: &byOwner)
        if let parent = object.parentObjectId { Self.remove(id, of: parent, in: &byParent) }
        Self.remove(id, of: object.coreType, in: &byCoreType)
        Self.remove(id, of: object.objectType, in: &byObjectType)
        bytes -= object.size
        if object.isPresence {
            presences.remove(id)
            presenceBytes -= object.size
        }
        return entry
    }

    /// Removes the objects of an agent and returns them in the order in which they were listed.
    mutating func removeAll(ownedBy agent: CoatyUUID) -> [Entry] {
        ids(ownedBy: agent).compactMap { remove($0) }.sorted { $0.object.position < $1.object.position }
    }

    private static func remove<Key>(_ id: CoatyUUID, of key: Key, in index: inout TreeDictionary<Key, IDs>) {
        index[key]?.remove(id)
        if index[key]?.isEmpty ?? false { index[key] = nil }
    }
}

extension AliveObject {
    /// Returns whether two versions of an object have the same keys.
    fileprivate func isIndexed(like other: AliveObject) -> Bool {
        owner == other.owner && parentObjectId == other.parentObjectId && coreType == other.coreType
            && objectType == other.objectType
    }
}

/// Finds the objects of an index whose last event is the oldest.
struct EvictionOrder: Sendable {
    /// In descending order of `lastEvent`. Entries that have changed since the sorting are skipped.
    private var oldest: [(id: CoatyUUID, lastEvent: UInt64)] = []

    /// Removes and returns the object whose last event is the oldest, among those that may be removed.
    ///
    /// The entries are sorted only once for several removals.
    mutating func removeOldest(
        from index: inout ObjectIndex,
        where mayBeRemoved: (AliveObject) -> Bool = { _ in true }
    ) -> AliveObject? {
        for isSorted in [false, true] {
            while let (id, lastEvent) = oldest.popLast() {
                guard let entry = index[id], entry.lastEvent == lastEvent, mayBeRemoved(entry.object) else { continue }
                return index.remove(id)?.object
            }
            if isSorted { break }
            for entry in index.all where mayBeRemoved(entry.object) {
                oldest.append((entry.object.objectId, entry.lastEvent))
            }
            oldest.sort { $0.lastEvent > $1.lastEvent }
        }
        return nil
    }
}
