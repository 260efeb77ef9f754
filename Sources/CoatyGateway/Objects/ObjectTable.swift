import Coaty

/// The objects of a registry, found by their id, their owner and their parent, and bounded.
///
/// When it is full, the object that was heard of longest ago makes room, but no Identity: what an agent owns hangs on it.
struct ObjectTable: Sendable {
    private struct Entry: Sendable {
        var object: AliveObject
        /// Tells what was heard of longest ago.
        var heard: UInt64
        /// Who resolved it last without being its owner.
        var witness: (agent: CoatyUUID, heard: UInt64)?
    }

    private let maximumObjects: Int
    private let maximumBytes: Int
    private var entries: [CoatyUUID: Entry] = [:]
    private var byOwner: [CoatyUUID: Set<CoatyUUID>] = [:]
    private var byParent: [CoatyUUID: Set<CoatyUUID>] = [:]
    private var bytes = 0
    /// Counts what is heard.
    private var lastSerial: UInt64 = 0
    /// What may make room, what was heard of longest ago last. Who was heard of since it was sorted may not any more.
    private var oldest: [(id: CoatyUUID, heard: UInt64)] = []
    /// Who has not shown itself since the link was lost.
    private var unconfirmed: Set<CoatyUUID> = []
    /// What was the last thing heard then.
    private var doubted: UInt64 = 0

    private(set) var departed = DepartedAgents()
    /// Whether nothing was ever left out for want of room. Once it is false it stays so: what was left out nobody knows.
    private(set) var isComplete = true
    /// Are told each change, in their order.
    var changeHandlers: [Int: @Sendable (ObjectChange) -> Void] = [:]
    private var lastHandler = 0

    init(maximumObjects: Int, maximumBytes: Int) {
        self.maximumObjects = maximumObjects
        self.maximumBytes = maximumBytes
    }

    /// In no order.
    var objects: some Sequence<AliveObject> { entries.values.lazy.map(\.object) }

    func object(_ id: CoatyUUID) -> AliveObject? { entries[id]?.object }

    // MARK: - Hearing

    /// Notes that an agent is there.
    mutating func hear(from agent: CoatyUUID) {
        if !unconfirmed.isEmpty { unconfirmed.remove(agent) }
    }

    /// Takes an object of a checked event.
    ///
    /// - Returns: whether it is the identity of an agent that was only presumed to have gone.
    mutating func take(_ json: JSONView, from agent: CoatyUUID, isAdvertised: Bool, now: Int) -> Bool {
        guard let text = json["objectId"]?.string else { return false }
        let id = CoatyUUID(wire: text)
        lastSerial += 1
        let index = entries.index(forKey: id)
        let known = index.map { entries.values[$0] }
        let isOwn = isAdvertised || agent == id
        let owner = isOwn ? agent : known?.object.owner ?? agent
        let witness = isOwn || agent == owner ? known?.witness : (agent, lastSerial)
        let isOwnerKept = known.map { $0.object.owner == owner } ?? false
        if let index, let known, isOwnerKept, known.object.bytes[...] == json.bytes {
            entries.values[index] = Entry(object: known.object, heard: lastSerial, witness: witness)
            return false
        }
        guard let coreType = json["coreType"]?.string.flatMap(CoreType.init(rawValue:)), coreType != .Log,
            let objectType = json["objectType"]?.string
        else { return false }
        guard json.bytes.count <= ObjectRegistry.maximumObjectBytes else {
            isComplete = false
            // What is known of it is no longer true.
            if known != nil { remove(id, now) }
            return false
        }
        let object = AliveObject(
            objectId: id,
            coreType: coreType,
            objectType: WireName(objectType),
            parentObjectId: json["parentObjectId"]?.string.map(CoatyUUID.init(wire:)),
            owner: owner,
            since: known?.object.since ?? now,
            changed: now,
            position: known?.object.position ?? lastSerial,
            bytes: Array(json.bytes)
        )
        let entry = Entry(object: object, heard: lastSerial, witness: witness)
        if let index, let known, isOwnerKept, known.object.parentObjectId == object.parentObjectId,
            bytes - known.object.size + object.size <= maximumBytes
        {
            // The indexes stay as they are.
            bytes += object.size - known.object.size
            entries.values[index] = entry
        } else {
            detach(id)
            guard makeRoom(for: object, now) else {
                if let known { noteRemoved(known.object, now) }
                return false
            }
            attach(entry)
        }
        tell(ObjectChange(kind: known == nil ? .added : .changed, object: object, previous: known?.object))
        return coreType == .Identity && known?.object.coreType != .Identity && departed.remove(id)
    }

    private mutating func makeRoom(for object: AliveObject, _ now: Int) -> Bool {
        while entries.count >= maximumObjects || bytes + object.size > maximumBytes {
            isComplete = false
            guard let id = nextToMakeRoom() else { return false }
            remove(id, now)
        }
        return true
    }

    /// Sorts all objects once for as many of them as make room.
    private mutating func nextToMakeRoom() -> CoatyUUID? {
        for isSorted in [false, true] {
            while let (id, heard) = oldest.popLast() {
                if entries[id]?.heard == heard { return id }
            }
            if isSorted { break }
            oldest = entries.lazy.filter { $0.value.object.coreType != .Identity }.map { ($0.key, $0.value.heard) }
            oldest.sort { $0.heard > $1.heard }
        }
        return nil
    }

    // MARK: - Going

    /// Removes objects that are deadvertised, their children, and all that they own.
    mutating func deadvertise(_ ids: some Sequence<CoatyUUID>, now: Int) {
        for id in ids {
            remove(id, now)
            for child in byParent[id] ?? [] { remove(child, now) }
            for owned in byOwner[id] ?? [] { remove(owned, now) }
            unconfirmed.remove(id)
        }
    }

    /// The link is lost: nobody tells who goes from now on.
    mutating func doubt() {
        unconfirmed = Set(byOwner.keys)
        doubted = lastSerial
    }

    var isInDoubt: Bool { !unconfirmed.isEmpty }

    /// Removes what is owned by those who have not shown themselves. What another one has resolved in the meantime is that
    /// one's from now on, but for identities.
    mutating func removeUnconfirmed(now: Int) {
        let gone = unconfirmed
        unconfirmed = []
        for agent in gone {
            for id in byOwner[agent] ?? [] {
                guard var entry = entries[id], entry.object.coreType != .Identity, let witness = entry.witness,
                    witness.heard > doubted, entries[witness.agent] != nil
                else {
                    remove(id, now, isPresumed: true)
                    continue
                }
                let previous = entry.object
                entry.object = AliveObject(previous, owner: witness.agent, changed: now)
                detach(id)
                attach(entry)
                tell(ObjectChange(kind: .changed, object: entry.object, previous: previous))
            }
        }
    }

    // MARK: - Books

    private mutating func attach(_ entry: Entry) {
        let object = entry.object
        entries[object.objectId] = entry
        byOwner[object.owner, default: []].insert(object.objectId)
        if let parent = object.parentObjectId { byParent[parent, default: []].insert(object.objectId) }
        bytes += object.size
    }

    @discardableResult
    private mutating func detach(_ id: CoatyUUID) -> AliveObject? {
        guard let object = entries.removeValue(forKey: id)?.object else { return nil }
        Self.remove(id, of: object.owner, in: &byOwner)
        if let parent = object.parentObjectId { Self.remove(id, of: parent, in: &byParent) }
        bytes -= object.size
        return object
    }

    private static func remove(_ id: CoatyUUID, of key: CoatyUUID, in index: inout [CoatyUUID: Set<CoatyUUID>]) {
        index[key]?.remove(id)
        if index[key]?.isEmpty ?? false { index[key] = nil }
    }

    private mutating func remove(_ id: CoatyUUID, _ now: Int, isPresumed: Bool = false) {
        if let object = detach(id) { noteRemoved(object, now, isPresumed: isPresumed) }
    }

    private mutating func noteRemoved(_ object: AliveObject, _ now: Int, isPresumed: Bool = false) {
        if object.coreType == .Identity { departed.add(object, since: now, isPresumed: isPresumed) }
        tell(ObjectChange(kind: .removed, object: object, previous: nil))
    }

    mutating func addChangeHandler(_ handler: @escaping @Sendable (ObjectChange) -> Void) -> Int {
        lastHandler += 1
        changeHandlers[lastHandler] = handler
        return lastHandler
    }

    private func tell(_ change: ObjectChange) {
        for handler in changeHandlers.values { handler(change) }
    }
}
