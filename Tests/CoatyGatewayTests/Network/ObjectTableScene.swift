import Coaty
import Synchronization
import Testing

@testable import Base
@testable import Network

/// A table that receives events from a test, and the changes that it reports.
class ObjectTableScene {
    private final class Changes: Sendable {
        let list = Mutex<[ObjectChange]>([])
    }

    private(set) var table = ObjectTable(maximumObjects: 10_000, maximumBytes: 64 << 20)
    /// The time of the last event, in milliseconds since 1970.
    private(set) var now = 0
    private let changes = Changes()

    init() { observe() }

    /// Replaces the table with an empty one.
    func limit(
        objects: Int = 10_000,
        bytes: Int = 64 << 20,
        departed: Int = Limits().departedAgents
    ) {
        table = ObjectTable(maximumObjects: objects, maximumBytes: bytes, maximumDeparted: departed)
        observe()
    }

    private func observe() {
        _ = table.addChangeHandler { [changes] change in changes.list.withLock { $0.append(change) } }
    }

    static func json(_ id: String, _ coreType: CoreType = .CoatyObject, _ members: String = "") -> String {
        #"{"coreType":"\#(coreType)","objectType":"t","objectId":"\#(id)","name":"n"\#(members)}"#
    }

    static func child(_ id: String, of parent: String, _ coreType: CoreType = .CoatyObject) -> String {
        json(id, coreType, #","parentObjectId":"\#(parent)""#)
    }

    // MARK: - Steps

    /// Passes an object to the table that an agent has advertised or resolved.
    ///
    /// - Returns: whether it is the identity of an agent that was only presumed to have left.
    @discardableResult
    func receive(_ json: String, from agent: String, isAdvertised: Bool = true) throws -> Bool {
        now += 1
        let view = try Payload(Array(#"{ "object": \#(json) }"#.utf8)).json["object"]
        guard let header = ObjectHeader(try #require(view)),
            let version = ObjectVersion(header, maximumSize: Limits().objectSize)
        else { return false }
        return table.take(version, from: CoatyUUID(wire: agent), isAdvertised: isAdvertised, now: now)
    }

    /// Passes the identity of an agent to the table, advertised by the agent itself.
    @discardableResult
    func join(_ agent: String) throws -> Bool { try receive(Self.json(agent, .Identity), from: agent) }

    func deadvertise(_ ids: String...) { deadvertise(ids) }

    func deadvertise(_ ids: [String]) {
        now += 1
        table.deadvertise(ids.map(CoatyUUID.init(wire:)), now: now)
    }

    func confirm(_ agent: String) { table.confirm(CoatyUUID(wire: agent)) }

    func markUnconfirmed() { table.markUnconfirmed(table.content.listed.owners) }

    func removeUnconfirmed() {
        now += 1
        table.removeUnconfirmed(now: now)
    }

    // MARK: - Contents and changes

    func object(_ id: String) throws -> AliveObject { try #require(table.content.object(CoatyUUID(wire: id))) }

    var ids: [String] { table.content.listed.objects.map(\.objectId.string).sorted() }

    /// The agents that are online.
    var agents: [String] { table.content.agents.filter(\.isOnline).compactMap(Self.id).sorted() }

    private static func id(_ agent: AgentPresence) -> String? {
        (try? Payload(agent.identity))?.json["objectId"]?.string
    }

    /// The last reported change.
    var lastChange: ObjectChange? { changes.list.withLock(\.last) }

    /// Returns the changes reported since the last call.
    func takeChanges() -> [ObjectChange] {
        changes.list.withLock { list in
            defer { list = [] }
            return list
        }
    }

    /// The changes reported since the last access, as `+`, `~` or `-` with the object's id.
    var changed: [String] {
        takeChanges().map { change in
            let sign =
                switch change.kind {
                case .added: "+"
                case .changed: "~"
                case .removed: "-"
                }
            return sign + change.object.objectId.string
        }
    }
}
