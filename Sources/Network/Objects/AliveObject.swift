package import Access
package import Coaty
import Foundation

/// An object in the network, in its last known version.
///
/// It has a separate copy of the bytes, so that a small object does not keep a large payload in memory. The bytes are
/// not parsed: an index would need several times their memory, and most objects are only forwarded.
package final class AliveObject: Sendable {
    package let objectId: CoatyUUID
    package let coreType: CoreType
    package let objectType: WireName
    let parentObjectId: CoatyUUID?
    /// The agent that advertised the object last or, if no agent did, the agent that resolved it first.
    package let owner: CoatyUUID
    /// The time at which the object was listed, in milliseconds since 1970.
    package let since: Int
    /// The time of the last change of the object or its owner, in milliseconds since 1970.
    package let changed: Int
    /// Its position in the order in which objects were listed.
    let position: UInt64
    /// The JSON text, unchanged.
    package let bytes: [UInt8]

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

    /// Creates a copy with another owner.
    convenience init(_ other: AliveObject, owner: CoatyUUID, changed: Int) {
        self.init(other, owner: owner, since: other.since, changed: changed, position: other.position)
    }

    /// Creates a copy for an object that was removed and is listed again.
    convenience init(_ other: AliveObject, listedAgain now: Int, position: UInt64) {
        self.init(other, owner: other.owner, since: now, changed: now, position: position)
    }

    private convenience init(
        _ other: AliveObject,
        owner: CoatyUUID,
        since: Int,
        changed: Int,
        position: UInt64
    ) {
        self.init(
            objectId: other.objectId,
            coreType: other.coreType,
            objectType: other.objectType,
            parentObjectId: other.parentObjectId,
            owner: owner,
            since: since,
            changed: changed,
            position: position,
            bytes: other.bytes
        )
    }

    /// The object's properties, parsed on each call. Never nil, because the bytes come from a validated event.
    package var json: JSONView? { (try? Payload(bytes))?.json }

    /// Whether it is the identity of an agent, received from that agent, which means that the agent is in the network.
    var isPresence: Bool { coreType == .Identity && owner == objectId }

    /// Number of bytes that count towards the registry's limit. A source id can be as long as a topic.
    package var size: Int { bytes.count + owner.string.utf8.count }
}

extension AliveObject {
    /// Returns a request about the object in its last known version.
    package func request(_ verb: Verb, _ pattern: AccessPattern, isOfOthers: Bool = false) -> AccessRequest {
        AccessRequest(
            verb: verb,
            pattern: pattern,
            target: .object(coreType, objectType),
            objectText: bytes,
            isOfOthers: isOfOthers
        )
    }
}

/// An object in an event, read before the registry is locked.
struct ObjectVersion: Sendable {
    let objectId: CoatyUUID
    let coreType: CoreType
    let objectType: WireName
    let parentObjectId: CoatyUUID?
    /// A copy of the JSON text; nil if it is too large to be listed.
    let bytes: [UInt8]?

    /// - Parameters:
    ///   - object: an object of a validated event.
    ///   - maximumSize: the maximum size of listed objects, in bytes.
    /// - Returns: nil if such objects are not listed.
    init?(_ object: ObjectHeader, maximumSize: Int) {
        guard object.coreType != .Log else { return nil }
        objectId = object.objectId
        coreType = object.coreType
        objectType = object.objectType
        parentObjectId = object.parentObjectId
        let bytes = object.json.bytes
        self.bytes = bytes.count <= maximumSize ? Array(bytes) : nil
    }

    func hasSameText(as object: AliveObject) -> Bool {
        guard let bytes, bytes.count == object.bytes.count else { return false }
        return bytes.withUnsafeBytes { left in
            object.bytes.withUnsafeBytes { right in
                guard let left = left.baseAddress, let right = right.baseAddress else { return true }
                return memcmp(left, right, bytes.count) == 0
            }
        }
    }
}

/// A change of the list of objects.
package struct ObjectChange: Sendable {
    package enum Kind: String, Sendable { case added, changed, removed }

    package let kind: Kind
    /// The object; if it is removed, its last version.
    package let object: AliveObject
    /// The version before the change; nil if the object is added or removed.
    package let previous: AliveObject?

    package init(kind: Kind, object: AliveObject, previous: AliveObject?) {
        self.kind = kind
        self.object = object
        self.previous = previous
    }
}

/// An agent whose identity is known.
package struct AgentPresence: Sendable {
    /// The JSON text of the identity's last version, unchanged.
    package let identity: [UInt8]
    package let isOnline: Bool
    /// The time at which the agent joined or left, in milliseconds since 1970.
    package let since: Int
}
