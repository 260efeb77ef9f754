import Access
import Base
import Coaty
import DequeModule

/// The objects of a registry, bounded in number and bytes.
///
/// The table lists the objects that are in the network. It also remembers objects that it has removed only because
/// their owner left, as long as ``DepartedAgents`` contains the owner: an agent that reconnects does not advertise them
/// again. The limits apply to listed and remembered objects together. When the table is full, it first removes the
/// remembered objects of the agent that left first, and then the listed object whose last event is the oldest. The
/// identities of agents stay as long as they take at most half of the limits; beyond that, the identity whose last
/// event is the oldest is removed.
struct ObjectTable: Sendable {
    /// Maximum number of removed objects whose last version is kept; ``Limits/maximumRemovedBytes`` limits their bytes.
    static let maximumRemoved = 1_000
    /// Maximum number of departed agents that are recorded as having discarded objects.
    static let maximumIncompleteAgents = 100_000

    private let maximumObjects: Int
    private let maximumBytes: Int
    /// The content for readers.
    private(set) var content: RegisteredObjects
    private var lastSerial: UInt64 = 0
    /// Agents that may have left, and from which no event was received since ``markUnconfirmed(_:)``.
    private(set) var unconfirmed: Set<CoatyUUID> = []
    /// The last serial number before ``markUnconfirmed(_:)``.
    private var lastConfirmed: UInt64 = 0

    private var rememberedByAge = EvictionOrder()
    private var listedByAge = EvictionOrder()
    private var presencesByAge = EvictionOrder()

    /// The ids of removed objects, in the order of removal. Access to the events that report the removal is decided by
    /// the last versions.
    private var removalOrder: Deque<CoatyUUID> = []
    private var removedBytes = 0

    /// Hash values of agents with discarded objects: the list becomes incomplete when one of them returns.
    private var incompleteAgents: Set<Int> = []
    /// The functions to call with each change.
    var changeHandlers: [Int: @Sendable (ObjectChange) -> Void] = [:]
    private var lastHandler = 0

    init(
        maximumObjects: Int,
        maximumBytes: Int,
        maximumDeparted: Int = Limits().departedAgents
    ) {
        self.maximumObjects = maximumObjects
        self.maximumBytes = maximumBytes
        content = RegisteredObjects(departed: DepartedAgents(maximumDeparted: maximumDeparted))
    }

    /// The number of bytes of all listed and remembered objects.
    var bytes: Int { content.listed.bytes + content.remembered.bytes }

    // MARK: - Advertise and Resolve

    /// Records that an agent is in the network.
    mutating func confirm(_ agent: CoatyUUID) {
        if !unconfirmed.isEmpty { unconfirmed.remove(agent) }
    }

    /// Adds or updates an object of a validated event.
    ///
    /// - Returns: whether it is the identity of an agent that was only presumed to have left.
    mutating func take(_ version: ObjectVersion, from agent: CoatyUUID, isAdvertised: Bool, now: Int) -> Bool {
        let id = version.objectId
        lastSerial += 1
        let known = content.listed[id]
        // An agent remains the owner of its identity, even if another agent advertises it.
        let isOwn = agent == id || isAdvertised && !(known?.object.isPresence ?? false)
        let owner = isOwn ? agent : known?.object.owner ?? agent
        let witness = isOwn || agent == owner ? known?.witness : (agent, lastSerial)
        if let known, known.object.owner == owner, version.hasSameText(as: known.object) {
            content.listed.replace(known, with: .init(object: known.object, lastEvent: lastSerial, witness: witness))
            return false
        }
        // The remembered version is out of date.
        if known == nil { content.remembered.remove(id) }
        guard let text = version.bytes else {
            content.isComplete = false
            // The listed version is out of date.
            if known != nil { remove(id, now) }
            return false
        }
        let object = AliveObject(
            objectId: id,
            coreType: version.coreType,
            objectType: version.objectType,
            parentObjectId: version.parentObjectId,
            owner: owner,
            since: known?.object.since ?? now,
            changed: now,
            position: known?.object.position ?? lastSerial,
            bytes: text
        )
        let entry = ObjectIndex.Entry(object: object, lastEvent: lastSerial, witness: witness)
        if let known, bytes - known.object.size + object.size <= maximumBytes {
            content.listed.replace(known, with: entry)
        } else {
            content.listed.remove(id)
            guard makeRoom(for: object, now) else {
                if let known { noteRemoved(known.object, now) }
                return false
            }
            content.listed.insert(entry)
        }
        report(ObjectChange(kind: known == nil ? .added : .changed, object: object, previous: known?.object))
        return object.isPresence && !(known?.object.isPresence ?? false) && restoreObjects(of: id, now)
    }

    private mutating func makeRoom(for object: AliveObject, _ now: Int) -> Bool {
        while content.listed.count + content.remembered.count >= maximumObjects || bytes + object.size > maximumBytes {
            if let forgotten = rememberedByAge.removeOldest(from: &content.remembered) {
                noteForgotten(of: forgotten.owner)
                continue
            }
            content.isComplete = false
            guard let removed = removeOldestListed() else { return false }
            // Not recorded as departed: an agent whose identity was removed for lack of room may still be in the
            // network.
            keepRemoved(removed)
            report(ObjectChange(kind: .removed, object: removed, previous: nil))
        }
        return true
    }

    private mutating func removeOldestListed() -> AliveObject? {
        let (count, bytes) = (content.listed.presences.count, content.listed.presenceBytes)
        if count > maximumObjects / 2 || bytes > maximumBytes / 2 {
            return presencesByAge.removeOldest(from: &content.listed) { $0.isPresence }
        }
        return listedByAge.removeOldest(from: &content.listed) { !$0.isPresence }
    }

    /// Lists the remembered objects of an agent again, now that its identity is listed.
    ///
    /// The total of listed and remembered objects stays the same, so no room is needed.
    ///
    /// - Returns: whether one of the returned agents was only presumed to have left.
    private mutating func restoreObjects(of agent: CoatyUUID, _ now: Int) -> Bool {
        let isPresumed = content.departed.remove(agent)
        if incompleteAgents.remove(agent.hashValue) != nil { content.isComplete = false }
        for entry in content.remembered.removeAll(ownedBy: agent) {
            lastSerial += 1
            let object = AliveObject(entry.object, listedAgain: now, position: lastSerial)
            content.listed.insert(.init(object: object, lastEvent: lastSerial, witness: nil))
            report(ObjectChange(kind: .added, object: object, previous: nil))
        }
        return isPresumed
    }

    // MARK: - Deadvertise

    /// Removes objects, their children, and all objects that they own. Owned objects that are not children are
    /// remembered.
    mutating func deadvertise(_ ids: some Sequence<CoatyUUID>, now: Int) {
        for id in ids {
            guard content.isKnown(id) || unconfirmed.contains(id) else { continue }
            remove(id, now)
            content.remembered.remove(id)
            removeObjects(ownedBy: [id], now)
            for child in content.listed.ids(withParent: id) { remove(child, now) }
            for child in content.remembered.ids(withParent: id) { content.remembered.remove(child) }
            unconfirmed.remove(id)
        }
    }

    /// Records that some agents may have left unnoticed.
    mutating func markUnconfirmed(_ agents: Set<CoatyUUID>) {
        unconfirmed = agents
        lastConfirmed = lastSerial
    }

    var hasUnconfirmed: Bool { !unconfirmed.isEmpty }

    /// Removes the agents from which no event was received since ``markUnconfirmed(_:)``, and the objects that they own.
    /// Objects that are not children are remembered. An object that another agent has resolved since then stays and is
    /// owned by that agent, except the identity of an agent.
    mutating func removeUnconfirmed(now: Int) {
        let gone = unconfirmed
        unconfirmed = []
        for id in gone.flatMap(content.listed.ids(ownedBy:)) {
            guard let entry = content.listed[id], !entry.object.isPresence, let witness = entry.witness,
                witness.lastEvent > lastConfirmed, content.listed[witness.agent] != nil
            else { continue }
            let object = AliveObject(entry.object, owner: witness.agent, changed: now)
            content.listed.remove(id)
            content.listed.insert(.init(object: object, lastEvent: entry.lastEvent, witness: witness))
            report(ObjectChange(kind: .changed, object: object, previous: entry.object))
        }
        removeObjects(ownedBy: gone, now, isPresumed: true)
    }

    private mutating func removeObjects(ownedBy agents: Set<CoatyUUID>, _ now: Int, isPresumed: Bool = false) {
        let owned = agents.flatMap { content.listed.removeAll(ownedBy: $0) }.map(\.object)
            .sorted { $0.position < $1.position }
        let leaving = Set(owned.lazy.filter(\.isPresence).map(\.objectId))
        for object in owned where object.owner != object.objectId && object.owner != object.parentObjectId {
            guard leaving.contains(object.owner) || content.departed.contains(object.owner) else { continue }
            lastSerial += 1
            content.remembered.insert(.init(object: object, lastEvent: lastSerial, witness: nil))
        }
        // Last, because a departure can make the table remove another agent with its remembered objects.
        for object in owned { noteRemoved(object, now, isPresumed: isPresumed) }
    }

    // MARK: - Removed and discarded objects

    private mutating func remove(_ id: CoatyUUID, _ now: Int) {
        if let object = content.listed.remove(id)?.object { noteRemoved(object, now) }
    }

    private mutating func noteRemoved(_ object: AliveObject, _ now: Int, isPresumed: Bool = false) {
        if object.isPresence {
            for agent in content.departed.add(object, since: now, isPresumed: isPresumed)
            where !content.remembered.removeAll(ownedBy: agent).isEmpty {
                noteForgotten(of: agent)
            }
        }
        keepRemoved(object)
        report(ObjectChange(kind: .removed, object: object, previous: nil))
    }

    private mutating func keepRemoved(_ object: AliveObject) {
        if let former = content.removed.updateValue(object, forKey: object.objectId) {
            removedBytes -= former.size
        } else {
            removalOrder.append(object.objectId)
        }
        removedBytes += object.size
        while content.removed.count > Self.maximumRemoved || removedBytes > Limits.maximumRemovedBytes,
            let oldest = removalOrder.popFirst(), let former = content.removed.removeValue(forKey: oldest)
        {
            removedBytes -= former.size
        }
    }

    private mutating func noteForgotten(of agent: CoatyUUID) {
        guard content.isComplete else { return }
        incompleteAgents.insert(agent.hashValue)
        if incompleteAgents.count > Self.maximumIncompleteAgents { content.isComplete = false }
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
