import Coaty

extension ObjectTable {
    /// An object and what the table knows about it.
    struct Entry: Sendable {
        var object: AliveObject
        /// The serial number of the last event that showed the object. No two entries have the same.
        var heard: UInt64
        /// The agent other than the owner that resolved the object last.
        var witness: (agent: CoatyUUID, heard: UInt64)?
    }

    /// Objects by id, by owner and by parent, and the number of their bytes.
    struct Index: Sendable {
        typealias Position = Dictionary<CoatyUUID, Entry>.Index

        private var entries: [CoatyUUID: Entry] = [:]
        private var byOwner: [CoatyUUID: Set<CoatyUUID>] = [:]
        private var byParent: [CoatyUUID: Set<CoatyUUID>] = [:]
        private(set) var bytes = 0
        /// Entries in descending order of `heard`. Entries that have changed since they were sorted are skipped.
        private var oldest: [(id: CoatyUUID, heard: UInt64)] = []

        var count: Int { entries.count }

        var isEmpty: Bool { entries.isEmpty }

        /// The objects, in no particular order.
        var objects: some Sequence<AliveObject> { entries.values.lazy.map(\.object) }

        var owners: Set<CoatyUUID> { Set(byOwner.keys) }

        subscript(id: CoatyUUID) -> Entry? { entries[id] }

        /// The position of an object, valid until the next insertion or removal.
        func position(of id: CoatyUUID) -> Position? { entries.index(forKey: id) }

        subscript(position: Position) -> Entry { entries.values[position] }

        /// Whether an agent owns other objects than one.
        func hasOwned(by agent: CoatyUUID, besides id: CoatyUUID) -> Bool {
            byOwner[agent].map { $0.count > 1 || !$0.contains(id) } ?? false
        }

        /// Whether a parent has other children than one.
        func hasChildren(of parent: CoatyUUID, besides id: CoatyUUID) -> Bool {
            byParent[parent].map { $0.count > 1 || !$0.contains(id) } ?? false
        }

        func ids(ownedBy agent: CoatyUUID) -> Set<CoatyUUID> { byOwner[agent] ?? [] }

        func ids(withParent parent: CoatyUUID) -> Set<CoatyUUID> { byParent[parent] ?? [] }

        /// Inserts an object that is not there yet.
        mutating func insert(_ entry: Entry) {
            let object = entry.object
            entries[object.objectId] = entry
            byOwner[object.owner, default: []].insert(object.objectId)
            if let parent = object.parentObjectId { byParent[parent, default: []].insert(object.objectId) }
            bytes += object.size
        }

        /// Replaces an entry by one with the same id, owner and parent.
        mutating func replace(at position: Position, with entry: Entry) {
            bytes += entry.object.size - entries.values[position].object.size
            entries.values[position] = entry
        }

        @discardableResult
        mutating func remove(_ id: CoatyUUID) -> Entry? {
            guard let entry = entries.removeValue(forKey: id) else { return nil }
            Self.remove(id, of: entry.object.owner, in: &byOwner)
            if let parent = entry.object.parentObjectId { Self.remove(id, of: parent, in: &byParent) }
            bytes -= entry.object.size
            return entry
        }

        /// Removes the objects of an agent and returns them in the order in which they were listed.
        mutating func removeAll(ownedBy agent: CoatyUUID) -> [Entry] {
            ids(ownedBy: agent).compactMap { remove($0) }.sorted { $0.object.position < $1.object.position }
        }

        /// Removes the object that was heard of longest ago and returns it.
        ///
        /// All entries are sorted once for as many of them as are removed.
        mutating func removeOldest(exceptIdentities: Bool = false) -> AliveObject? {
            for isSorted in [false, true] {
                while let (id, heard) = oldest.popLast() {
                    if entries[id]?.heard == heard { return remove(id)?.object }
                }
                if isSorted { break }
                oldest = entries.values.lazy
                    .filter { !exceptIdentities || $0.object.coreType != .Identity }
                    .map { ($0.object.objectId, $0.heard) }
                oldest.sort { $0.heard > $1.heard }
            }
            return nil
        }

        private static func remove(
            _ id: CoatyUUID,
            of key: CoatyUUID,
            in index: inout [CoatyUUID: Set<CoatyUUID>]
        ) {
            index[key]?.remove(id)
            if index[key]?.isEmpty ?? false { index[key] = nil }
        }
    }
}
