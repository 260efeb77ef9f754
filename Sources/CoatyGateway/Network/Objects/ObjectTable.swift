import Coaty
import DequeModule

/// The objects of a registry, bounded in number and bytes.
///
/// The table lists the objects that are in the network. It also remembers objects that it has removed only because their
/// owner left, as long as ``DepartedAgents`` remembers the owner: an agent that reconnects does not advertise them again.
/// The bounds apply to listed and remembered objects together. When the table is full, it first forgets the objects of the
/// agent that left first, then removes the listed object that was heard of longest ago, but never an Identity.
struct ObjectTable: Sendable {
    /// Maximum number of removed objects whose last version is kept, and their maximum size in bytes.
    static let maximumRemoved = 1_000
    static let maximumRemovedBytes = 4 << 20
    /// Maximum number of departed agents that are known to have forgotten objects.
    static let maximumIncompleteAgents = 100_000

    private let maximumObjects: Int
    private let maximumBytes: Int
    private var listed = Index()
    /// Objects of departed agents. None of them is listed.
    private var remembered = Index()
    private var lastSerial: UInt64 = 0
    /// Agents that have not shown themselves since the broker connection was lost.
    private var unconfirmed: Set<CoatyUUID> = []
    /// The last serial number before the broker connection was lost.
    private var doubted: UInt64 = 0

    /// The last versions of removed objects, and their ids in the order of removal: the events that report the removal are
    /// judged by them.
    private var removed: [CoatyUUID: AliveObject] = [:]
    private var removalOrder: Deque<CoatyUUID> = []
    private var removedBytes = 0

    private(set) var departed: DepartedAgents
    /// Hash values of agents with forgotten objects: the list becomes incomplete when one of them returns.
    private var incompleteAgents: Set<Int> = []
    /// Whether the list has every object that it should have. Once false, it stays false, because the table does not know
    /// which objects are missing.
    private(set) var isComplete = true
    /// The functions that are called with each change.
    var changeHandlers: [Int: @Sendable (ObjectChange) -> Void] = [:]
    private var lastHandler = 0

    init(
        maximumObjects: Int,
        maximumBytes: Int,
        maximumDeparted: Int = DepartedAgents.maximumDeparted
    ) {
        self.maximumObjects = maximumObjects
        self.maximumBytes = maximumBytes
        departed = DepartedAgents(maximumDeparted: maximumDeparted)
    }

    /// The listed objects, in no particular order.
    var objects: some Sequence<AliveObject> { listed.objects }

    func object(_ id: CoatyUUID) -> AliveObject? { listed[id]?.object }

    /// Returns the last known version of an object, also of one that has been removed lately.
    func known(_ id: CoatyUUID) -> AliveObject? { (listed[id] ?? remembered[id])?.object ?? removed[id] }

    /// Returns whether there are ``dependents(of:)``.
    func hasDependents(_ id: CoatyUUID) -> Bool {
        listed.hasChildren(of: id, besides: id) || listed.hasOwned(by: id, besides: id)
    }

    /// Returns the children of an id, and the objects that the agent with this id owns, without the object itself.
    func dependents(of id: CoatyUUID) -> [AliveObject] {
        listed.ids(withParent: id).union(listed.ids(ownedBy: id)).subtracting([id]).compactMap { listed[$0]?.object }
    }

    /// The objects of departed agents, in no particular order.
    var rememberedObjects: some Sequence<AliveObject> { remembered.objects }

    /// The number of bytes of all listed and remembered objects.
    var bytes: Int { listed.bytes + remembered.bytes }

    // MARK: - Advertise and Resolve

    /// Notes that an agent is in the network.
    mutating func hear(from agent: CoatyUUID) {
        if !unconfirmed.isEmpty { unconfirmed.remove(agent) }
    }

    /// Adds or updates an object of a validated event.
    ///
    /// - Returns: whether it is the identity of an agent that was only presumed to have left.
    mutating func take(_ json: JSONView, from agent: CoatyUUID, isAdvertised: Bool, now: Int) -> Bool {
        guard let text = json["objectId"]?.string else { return false }
        let id = CoatyUUID(wire: text)
        lastSerial += 1
        let position = listed.position(of: id)
        let known = position.map { listed[$0] }
        let isOwn = isAdvertised || agent == id
        let owner = isOwn ? agent : known?.object.owner ?? agent
        let witness = isOwn || agent == owner ? known?.witness : (agent, lastSerial)
        let isOwnerKept = known.map { $0.object.owner == owner } ?? false
        if let position, let known, isOwnerKept, known.object.bytes[...] == json.bytes {
            listed.replace(at: position, with: Entry(object: known.object, heard: lastSerial, witness: witness))
            return false
        }
        guard let coreType = json["coreType"]?.string.flatMap(CoreType.init(rawValue:)), coreType != .Log,
            let objectType = json["objectType"]?.string
        else { return false }
        // The remembered version is outdated.
        if known == nil { remembered.remove(id) }
        guard json.bytes.count <= ObjectRegistry.maximumObjectBytes else {
            isComplete = false
            // The listed version is outdated.
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
        if let position, let known, isOwnerKept, known.object.parentObjectId == object.parentObjectId,
            bytes - known.object.size + object.size <= maximumBytes
        {
            listed.replace(at: position, with: entry)
        } else {
            listed.remove(id)
            guard makeRoom(for: object, now) else {
                if let known { noteRemoved(known.object, now) }
                return false
            }
            listed.insert(entry)
        }
        report(ObjectChange(kind: known == nil ? .added : .changed, object: object, previous: known?.object))
        return coreType == .Identity && known?.object.coreType != .Identity && restoreObjects(of: id, now)
    }

    private mutating func makeRoom(for object: AliveObject, _ now: Int) -> Bool {
        while listed.count + remembered.count >= maximumObjects || bytes + object.size > maximumBytes {
            if let forgotten = remembered.removeOldest() {
                noteForgotten(of: forgotten.owner)
                continue
            }
            isComplete = false
            guard let removed = listed.removeOldest(exceptIdentities: true) else { return false }
            noteRemoved(removed, now)
        }
        return true
    }

    /// Lists the remembered objects of an agent again, now that its identity is listed.
    ///
    /// The total of listed and remembered objects stays the same, so that none of them needs room.
    ///
    /// - Returns: whether one of the agents that are back was only presumed to have left.
    private mutating func restoreObjects(of agent: CoatyUUID, _ now: Int) -> Bool {
        var isPresumed = false
        var returned = [agent]
        while let agent = returned.popLast() {
            if departed.remove(agent) { isPresumed = true }
            if incompleteAgents.remove(agent.hashValue) != nil { isComplete = false }
            for entry in remembered.removeAll(ownedBy: agent) {
                lastSerial += 1
                let object = AliveObject(entry.object, listedAgain: now, position: lastSerial)
                listed.insert(Entry(object: object, heard: lastSerial, witness: nil))
                report(ObjectChange(kind: .added, object: object, previous: nil))
                if object.coreType == .Identity { returned.append(object.objectId) }
            }
        }
        return isPresumed
    }

    // MARK: - Deadvertise

    /// Removes objects, their children, and all objects that they own. The owned objects that are not children are
    /// remembered.
    mutating func deadvertise(_ ids: some Sequence<CoatyUUID>, now: Int) {
        for id in ids {
            remove(id, now)
            remembered.remove(id)
            removeObjects(ownedBy: [id], now)
            for child in listed.ids(withParent: id) { remove(child, now) }
            for child in remembered.ids(withParent: id) { remembered.remove(child) }
            unconfirmed.remove(id)
        }
    }

    /// Notes that the broker connection is lost: agents that leave from now on do so unnoticed.
    mutating func doubt() {
        unconfirmed = listed.owners
        doubted = lastSerial
    }

    var isInDoubt: Bool { !unconfirmed.isEmpty }

    /// Removes the agents that have not shown themselves since ``doubt()``, and the objects that they own. The objects that
    /// are not children are remembered. An object that another agent has resolved since then, except an Identity, stays and
    /// is owned by that agent.
    mutating func removeUnconfirmed(now: Int) {
        let gone = unconfirmed
        unconfirmed = []
        for id in gone.flatMap(listed.ids(ownedBy:)) {
            guard let entry = listed[id], entry.object.coreType != .Identity, let witness = entry.witness,
                witness.heard > doubted, listed[witness.agent] != nil
            else { continue }
            let object = AliveObject(entry.object, owner: witness.agent, changed: now)
            listed.remove(id)
            listed.insert(Entry(object: object, heard: entry.heard, witness: witness))
            report(ObjectChange(kind: .changed, object: object, previous: entry.object))
        }
        removeObjects(ownedBy: gone, now, isPresumed: true)
    }

    private mutating func removeObjects(ownedBy agents: Set<CoatyUUID>, _ now: Int, isPresumed: Bool = false) {
        let owned = agents.flatMap { listed.removeAll(ownedBy: $0) }.map(\.object)
            .sorted { $0.position < $1.position }
        let leaving = Set(owned.lazy.filter { $0.coreType == .Identity }.map(\.objectId))
        for object in owned where object.owner != object.objectId && object.owner != object.parentObjectId {
            guard leaving.contains(object.owner) || departed.contains(object.owner) else { continue }
            lastSerial += 1
            remembered.insert(Entry(object: object, heard: lastSerial, witness: nil))
        }
        // Last, because a departure can make the table forget another agent with its remembered objects.
        for object in owned { noteRemoved(object, now, isPresumed: isPresumed) }
    }

    // MARK: - Removed and forgotten objects

    private mutating func remove(_ id: CoatyUUID, _ now: Int) {
        if let object = listed.remove(id)?.object { noteRemoved(object, now) }
    }

    private mutating func noteRemoved(_ object: AliveObject, _ now: Int, isPresumed: Bool = false) {
        if object.coreType == .Identity {
            for agent in departed.add(object, since: now, isPresumed: isPresumed)
            where !remembered.removeAll(ownedBy: agent).isEmpty {
                noteForgotten(of: agent)
            }
        }
        keepRemoved(object)
        report(ObjectChange(kind: .removed, object: object, previous: nil))
    }

    private mutating func keepRemoved(_ object: AliveObject) {
        if let former = removed.updateValue(object, forKey: object.objectId) {
            removedBytes -= former.size
        } else {
            removalOrder.append(object.objectId)
        }
        removedBytes += object.size
        while removed.count > Self.maximumRemoved || removedBytes > Self.maximumRemovedBytes,
            let oldest = removalOrder.popFirst(), let former = removed.removeValue(forKey: oldest)
        {
            removedBytes -= former.size
        }
    }

    private mutating func noteForgotten(of agent: CoatyUUID) {
        guard isComplete else { return }
        incompleteAgents.insert(agent.hashValue)
        if incompleteAgents.count > Self.maximumIncompleteAgents { isComplete = false }
    }

    // MARK: - Changes

    /// Adds a function that is called with each change from now on, in order.
    ///
    /// - Returns: its key in ``changeHandlers``.
    mutating func addChangeHandler(_ handler: @escaping @Sendable (ObjectChange) -> Void) -> Int {
        lastHandler += 1
        changeHandlers[lastHandler] = handler
        return lastHandler
    }

    private func report(_ change: ObjectChange) {
        for handler in changeHandlers.values { handler(change) }
    }
}
