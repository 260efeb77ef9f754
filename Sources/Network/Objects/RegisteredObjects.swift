import Coaty
import HashTreeCollections

/// The content of the object registry at one moment.
///
/// A copy takes constant time, so readers can search and sort it without blocking changes of the registry.
package struct RegisteredObjects: Sendable {
    /// The objects that are in the network.
    package var listed = ObjectIndex()
    /// Objects of departed agents. None of them is listed.
    var remembered = ObjectIndex()
    /// The last versions of recently removed objects.
    var removed: TreeDictionary<CoatyUUID, AliveObject> = [:]
    var departed: DepartedAgents
    /// Whether the list is complete. Once false, it stays false, because the table does not know which objects are
    /// missing.
    package var isComplete = true

    func object(_ id: CoatyUUID) -> AliveObject? { listed[id]?.object }

    /// Returns the last known version of an object, even if it was removed recently.
    func known(_ id: CoatyUUID) -> AliveObject? { (listed[id] ?? remembered[id])?.object ?? removed[id] }

    /// Returns whether an object with an id, or one that depends on it, is listed or remembered.
    func isKnown(_ id: CoatyUUID) -> Bool { listed.isKnown(id) || remembered.isKnown(id) }

    /// Returns the ids of an event for which an object is listed, remembered or removed, or on which such an object
    /// depends; and possibly other ids.
    ///
    /// - Parameter more: further known ids.
    func ids(in data: DeadvertiseEventData, or more: Set<CoatyUUID> = []) -> [CoatyUUID] {
        data.objectIds(among: listed.count + remembered.count + removed.count + more.count) {
            let known = [Array(listed.knownIds), Array(remembered.knownIds), Array(removed.keys), Array(more)]
            return NameFilter(known.joined().lazy.map(\.string))
        }
    }

    /// Returns whether ``dependents(of:)`` is not empty.
    func hasDependents(_ id: CoatyUUID) -> Bool {
        listed.hasChildren(of: id, besides: id) || listed.hasOwned(by: id, besides: id)
    }

    /// Returns the objects that are removed together with an id: its children, and the objects of the agent with this
    /// id.
    func dependents(of id: CoatyUUID) -> [AliveObject] {
        listed.ids(withParent: id).union(listed.ids(ownedBy: id)).subtracting([id]).compactMap { listed[$0]?.object }
    }

    /// The present agents in the order in which they came, followed by the departed ones.
    var agents: [AgentPresence] {
        listed.objects(listed.presences).map { AgentPresence(identity: $0.bytes, isOnline: true, since: $0.since) }
            + departed.agents
    }
}
