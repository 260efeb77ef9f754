import Access
import Base
package import Coaty
import Feeds
package import Network
import ProblemDetails

/// An operation on a registered IO point, which needs a grant for its values in the IO context of its node.
protocol IoPointOperation: Operation where Target == (point: Point, node: IoNodeRegistry.Owned) {
    associatedtype Point: Sendable

    /// Nil if the client's id is not a UUID.
    var id: CoatyUUID? { get }
    /// The verb that the operation needs.
    static var verb: Verb { get }
    /// The name of the point in problems.
    static var name: String { get }

    /// Looks up the point; nil if it is not registered.
    static func point(_ id: CoatyUUID, in ioNodes: IoNodeRegistry) -> Point?
}

extension IoPointOperation {
    package var kind: OperationKind { OperationKind(verb: Self.verb, pattern: .iovalue) }
    package var concealment: AccessRequest? { AccessRequest(verb: Self.verb, pattern: .iovalue, target: .anyContext) }
    package var unknown: Problem { Problems.notRegistered(Self.name) }

    package func resolve(in network: NetworkParts) -> (point: Point, node: IoNodeRegistry.Owned)? {
        guard let id, let point = Self.point(id, in: network.ioNodes), let node = network.ioNodes.owned(ofPoint: id)
        else { return nil }
        return (point, node)
    }

    package func claims(
        on target: (point: Point, node: IoNodeRegistry.Owned),
        in network: NetworkParts,
        by subject: Principal.Subject
    ) -> [AccessRequest] {
        [target.node.request(Self.verb, .iovalue, by: subject)]
    }
}

/// Publishes a value of a registered IO source.
package struct PublishIoValue: IoPointOperation {
    static let verb = Verb.publish
    static let name = "IO source"
    let id: CoatyUUID?
    let value: [UInt8]
    /// Whether the value is octets; nil if the client sent neither octets nor JSON.
    let isRaw: Bool?

    package init(id: CoatyUUID?, value: [UInt8], isRaw: Bool?) {
        self.id = id
        self.value = value
        self.isRaw = isRaw
    }

    static func point(_ id: CoatyUUID, in ioNodes: IoNodeRegistry) -> LeasedIoSource? { ioNodes.source(id) }

    package func execute(
        on target: (point: LeasedIoSource, node: IoNodeRegistry.Owned),
        in network: NetworkParts,
        under permit: Permit
    ) throws -> IoPointState {
        let source = target.point
        guard isRaw == source.isRaw else {
            throw Problems.unsupportedMediaType(source.isRaw ? "application/octet-stream" : "application/json")
        }
        try source.publish(value)
        return source.state
    }
}

/// Reads the latest value of a registered IO actor.
package struct ReadIoValue: IoPointOperation {
    static let verb = Verb.observe
    static let name = "IO actor"
    let id: CoatyUUID?

    package init(id: CoatyUUID?) {
        self.id = id
    }

    package var isNewWork: Bool { false }

    static func point(_ id: CoatyUUID, in ioNodes: IoNodeRegistry) -> LeasedIoActor? { ioNodes.actor(id) }

    /// - Returns: nil if no value has been received yet.
    package func execute(
        on target: (point: LeasedIoActor, node: IoNodeRegistry.Owned),
        in network: NetworkParts,
        under permit: Permit
    ) -> ReceivedIoValue? { target.point.latest }
}
