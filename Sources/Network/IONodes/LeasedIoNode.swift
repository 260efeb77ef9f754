import Base
package import Coaty
import Logging
import Synchronization

/// An IO node that a client has registered. It is a separate agent, with its own broker session and last will.
package final class LeasedIoNode: Sendable {
    package let objectId: CoatyUUID
    /// The name of the IO context.
    package let context: String
    /// All ids of the node, and their places in the request.
    let ids: [(id: CoatyUUID, pointer: String)]
    /// The requested duration of the lease.
    let duration: Duration
    let communicationManager: CommunicationManager
    let sources: [LeasedIoSource]
    let actors: [LeasedIoActor]
    /// The advertised node, but with the names of update strategies.
    let json: [UInt8]

    /// - Throws: ``PayloadError``; the errors of creating a communication manager.
    init(_ request: IoNodeRequest, name: String, options: CommunicationOptions, logger: Logger) throws {
        let node = request.node
        var logger = logger
        logger[metadataKey: "io-node"] = "\(node.objectId)"
        objectId = node.objectId
        context = node.name
        ids = request.ids
        duration = request.leaseDuration
        let manager = try CommunicationManager(
            identity: Identity(name: request.name ?? name),
            ioNodes: [node],
            options: options,
            logger: logger
        )
        communicationManager = manager
        json = try AdvertiseEvent.with(object: node).payload.json["object"].map(Self.namingStrategies(of:)) ?? []
        sources = node.ioSources.map { LeasedIoSource($0, manager) }
        actors = node.ioActors.map { LeasedIoActor($0, manager) }
    }

    /// Returns the node's JSON with the name of each update strategy instead of its number on the wire.
    private static func namingStrategies(of node: JSONView) -> [UInt8] {
        var named: [UInt8] = []
        var end = node.bytes.startIndex
        guard let sources = node["ioSources"] else { return Array(node.bytes) }
        for source in sources.elements {
            guard let view = source["updateStrategy"], let number = view.number.flatMap(Int.init(exactly:)),
                let strategy = IoSourceBackpressureStrategy(rawValue: number)
            else { continue }
            named += node.bytes[end..<view.bytes.startIndex]
            named += "\"\(strategy)\"".utf8
            end = view.bytes.endIndex
        }
        return named + node.bytes[end...]
    }

    /// The body of a request that registers the node with its ids.
    var registration: String {
        let name = communicationManager.identityEvent.payload.json["object"]?["name"].map(AnyCodable.init)
        var members: [String: AnyCodable] = [
            "contextName": .string(context), "objectId": .string(objectId.string),
            "leaseDuration": .init(Int(duration / .milliseconds(1))),
        ]
        members["name"] = name
        if let node = try? JSONDocument(json).root {
            members["ioSources"] = node["ioSources"].map(AnyCodable.init)
            members["ioActors"] = node["ioActors"].map(AnyCodable.init)
            members["characteristics"] = node["characteristics"].map(AnyCodable.init)
        }
        // Not expected to fail: it was JSON before.
        return (try? PayloadCoder.encode(AnyCodable.object(members))) ?? "{}"
    }

    /// Advertises the node again, after another agent has deadvertised it.
    func advertise() throws {
        guard let event = communicationManager.ioNodeEvents.first else { return }
        try communicationManager.publishAdvertise(event)
    }

    /// Returns the JSON members `"node":…,"identity":…,"lease":…`.
    package func members(_ lease: Lease) -> [UInt8] {
        Array(#""node":"#.utf8) + json + #",""#.utf8 + identityAndLease(lease)
    }

    /// Returns the node's entry in a list.
    package func summary(_ lease: Lease) -> [UInt8] {
        var text = Array(#"{"objectId":"\#(objectId)","contextName":"#.utf8)
        JSONText.append(context, to: &text)
        text += #",""#.utf8
        text += identityAndLease(lease)
        text += #","ioSourceCount":\#(sources.count),"ioActorCount":\#(actors.count)}"#.utf8
        return text
    }

    private func identityAndLease(_ lease: Lease) -> [UInt8] {
        let identity = communicationManager.identityEvent.payload.json["object"]?.bytes ?? []
        return Array(#"identity":"#.utf8) + identity + #","lease":\#(lease.json)"#.utf8
    }

    /// The states of all points, as a JSON array.
    package var states: String {
        let points = sources.map { ($0.objectId, $0.state) } + actors.map { ($0.objectId, $0.state) }
        return "[" + points.map { #"{"ioPointId":"\#($0)",\#($1.members)}"# }.joined(separator: ",") + "]"
    }
}

/// A source of a leased node.
package final class LeasedIoSource: Sendable {
    let objectId: CoatyUUID
    private let publisher: IoSourcePublisher
    private let observed: ObservedIoState

    init(_ source: IoSource, _ manager: CommunicationManager) {
        objectId = source.objectId
        publisher = IoSourcePublisher(ioSource: source, communicationManager: manager)
        observed = ObservedIoState(source.objectId, manager)
    }

    package var state: IoPointState { observed.state }

    /// Whether values are raw bytes.
    package var isRaw: Bool { publisher.isRaw }

    /// Passes a value to the source's strategy.
    ///
    /// - Throws: ``PayloadError`` if a value that should be JSON is not; ``CommunicationError``.
    package func publish(_ value: [UInt8]) throws {
        try publisher.publish(bytes: value)
    }
}

/// An actor of a leased node.
package final class LeasedIoActor: Sendable {
    let objectId: CoatyUUID
    private let values: LatestIoValue
    private let observed: ObservedIoState

    init(_ actor: IoActor, _ manager: CommunicationManager) {
        objectId = actor.objectId
        values = LatestIoValue(ioActor: actor, communicationManager: manager)
        observed = ObservedIoState(actor.objectId, manager)
    }

    var state: IoPointState { observed.state }

    /// The latest value; nil if none was received yet.
    package var latest: ReceivedIoValue? { values.received }
}

/// The association state of an IO point.
package struct IoPointState: Sendable {
    var hasAssociations = false
    /// The update rate, in milliseconds.
    var updateRate: Int?

    /// `"hasAssociations":…` and, if there is a rate, `"updateRate":…`
    package var members: String {
        #""hasAssociations":\#(hasAssociations)"# + (updateRate.map { #","updateRate":\#($0)"# } ?? "")
    }
}

extension IoPointState {
    package init(_ event: IoStateEvent) {
        self.init(hasAssociations: event.hasAssociations, updateRate: event.updateRate)
    }
}

/// The last reported state of a point.
private final class ObservedIoState: Sendable {
    private let current: Current
    private let subscription: Subscription

    private final class Current: Sendable {
        let state = Mutex(IoPointState())
    }

    init(_ id: CoatyUUID, _ manager: CommunicationManager) {
        let current = Current()
        self.current = current
        subscription = manager.subscribe(ioStateOf: id) { event in
            current.state.withLock { $0 = IoPointState(event) }
        }
    }

    var state: IoPointState { current.state.withLock(\.self) }
}
