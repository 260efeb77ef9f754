import Coaty

/// An object that is alive in the network, as it was last heard of.
///
/// It has bytes of its own, so that a small part of a large payload does not keep the payload. They are not indexed: that
/// would take several times their room, and most objects are only handed on.
final class AliveObject: Sendable {
    let objectId: CoatyUUID
    let coreType: CoreType
    let objectType: WireName
    let parentObjectId: CoatyUUID?
    /// Who advertised it last; who resolved it first, where nobody has advertised it.
    let owner: CoatyUUID
    /// When it was first heard of, in milliseconds since 1970.
    let since: Int
    /// When it became what it is, in milliseconds since 1970.
    let changed: Int
    /// Its place in the order in which objects came.
    let position: UInt64
    /// The JSON text, as it came.
    let bytes: [UInt8]

    init(
        objectId: CoatyUUID,
        coreType: CoreType,
        objectType: WireName,
        parentObjectId: CoatyUUID?,
        owner: CoatyUUID,
        since: Int,
        changed: Int,
        position: UInt64,
        bytes: [UInt8]
    ) {
        self.objectId = objectId
        self.coreType = coreType
        self.objectType = objectType
        self.parentObjectId = parentObjectId
        self.owner = owner
        self.since = since
        self.changed = changed
        self.position = position
        self.bytes = bytes
    }

    /// The same object, of another owner.
    init(_ other: AliveObject, owner: CoatyUUID, changed: Int) {
        objectId = other.objectId
        coreType = other.coreType
        objectType = other.objectType
        parentObjectId = other.parentObjectId
        self.owner = owner
        since = other.since
        self.changed = changed
        position = other.position
        bytes = other.bytes
    }

    /// The object's properties, indexed anew each time. Never nil: the bytes come from a checked text.
    var json: JSONView? { (try? Payload(bytes))?.json }

    /// The bytes that count for the registry's bound. A source id may be as long as a topic.
    var size: Int { bytes.count + owner.string.utf8.count }
}

/// What became of an object.
struct ObjectChange: Sendable {
    enum Kind: String, Sendable { case added, changed, removed }

    let kind: Kind
    /// The object; as it was last, where it is removed.
    let object: AliveObject
    /// The object as it was before a change; nil where it is added or removed.
    let previous: AliveObject?
}

/// An agent that has shown its identity.
struct AgentPresence: Sendable {
    /// The identity's JSON text, as it came last.
    let identity: [UInt8]
    let isOnline: Bool
    /// When it came, or went, in milliseconds since 1970.
    let since: Int
}
