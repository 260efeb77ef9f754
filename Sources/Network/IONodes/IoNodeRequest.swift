package import Base
package import Coaty
import CoatyMQTT
import Foundation

/// The registration of an IO node by a client: `{contextName, ioSources?, ioActors?, characteristics?, objectId?,
/// name?, leaseDuration?}`.
package struct IoNodeRequest: Sendable {
    /// Maximum nesting depth of the characteristics and of a point, each counted from its own value. The cost of a node
    /// grows with its size and depth, on a thread that also serves other requests; points are decoded by a general
    /// decoder, which is more expensive.
    static let maximumDepth = 8
    static let maximumPointDepth = 4
    /// Maximum update rate: existing agents use 32-bit integers.
    static let maximumUpdateRate = Double(Int32.max)

    /// The node. Invariant: it is not changed after `init`, so that threads may pass it on.
    package nonisolated(unsafe) let node: IoNode
    /// All ids with their places in the request, the id of the node first.
    package let ids: [(id: CoatyUUID, pointer: String)]
    /// The name of the identity; nil if the request has none.
    let name: String?
    let leaseDuration: Duration

    /// - Parameter limits: the limits of the name and the number of points.
    /// - Throws: ``PayloadError`` with the place of the error in the request.
    package init(_ payload: Payload, _ limits: Limits) throws(PayloadError) {
        let body = payload.json
        try body.refuseMembers(
            besides: ["contextName", "ioSources", "ioActors", "characteristics", "objectId", "name", "leaseDuration"]
        )
        name = try body["name"].map { view throws(PayloadError) in
            guard let name = view.string, name.utf8.count <= limits.agentNameSize else {
                throw view.invalid("must be a string of at most \(limits.agentNameSize) bytes")
            }
            return name
        }
        leaseDuration = try Lease.duration(in: body) ?? Lease.defaultDuration

        guard let context = body["contextName"] else { throw .invalid(pointer: "/contextName", reason: "missing") }
        guard let contextName = context.string else { throw context.invalid("must be a string") }
        guard WireName.isPublishable(contextName) else { throw context.invalid(InvalidParameter.level) }
        var ids = Ids()
        let nodeId = try ids.take(body["objectId"], or: "/objectId")
        let sources = try Self.list(body["ioSources"])
        let actors = try Self.list(body["ioActors"])
        guard 1...limits.ioNodePoints ~= sources.count + actors.count else {
            throw .invalid(
                pointer: sources.isEmpty ? "/ioActors" : "/ioSources",
                reason: "must hold 1 to \(limits.ioNodePoints) points, together with the other list"
            )
        }
        var object: [String: AnyCodable] = [
            "coreType": .string(CoreType.IoNode.rawValue), "objectType": .string(CoreType.IoNode.objectType),
            "objectId": .init(nodeId), "name": .string(contextName),
        ]
        object["ioSources"] = try .array(Self.points(sources, .IoSource, "/ioSources", &ids))
        object["ioActors"] = try .array(Self.points(actors, .IoActor, "/ioActors", &ids))
        self.ids = ids.taken
        node = try Self.node(object)
        if let characteristics = body["characteristics"] {
            try characteristics.checkValues(depth: Self.maximumDepth)
            guard let value = AnyCodable(characteristics).value as? [String: Any] else {
                throw characteristics.invalid("must be an object")
            }
            node.characteristics = value
        }
    }

    private static func list(_ view: JSONView?) throws(PayloadError) -> [JSONView] {
        guard let view else { return [] }
        guard view.kind == .array else { throw view.invalid("must be an array") }
        return Array(view.elements)
    }

    /// Returns the points with all properties that the request left out.
    private static func points(
        _ views: [JSONView],
        _ coreType: CoreType,
        _ pointer: String,
        _ ids: inout Ids
    ) throws(PayloadError) -> [AnyCodable] {
        var points: [AnyCodable] = []
        for (index, view) in views.enumerated() {
            try view.checkValues(depth: maximumPointDepth)
            guard case .object(var point) = AnyCodable(view) else { throw view.invalid("must be an object") }
            point["coreType"] = point["coreType"] ?? .string(coreType.rawValue)
            point["objectType"] = point["objectType"] ?? .string(coreType.objectType)
            point["objectId"] = try .init(ids.take(view["objectId"], or: "\(pointer)/\(index)/objectId"))
            if let name = view["updateStrategy"], coreType == .IoSource, name.kind == .string {
                let strategies = IoSourceBackpressureStrategy.allCases
                guard let strategy = strategies.first(where: { "\($0)" == name.string }) else {
                    throw name.invalid("must be one of \(strategies.map { "\($0)" }.joined(separator: ", "))")
                }
                point["updateStrategy"] = .init(strategy.rawValue)
            }
            if let rate = view["updateRate"], let number = rate.number, number > maximumUpdateRate {
                throw rate.invalid("must be a number from 0 to \(Int32.max)")
            }
            if let route = view["externalRoute"], let topic = route.string,
                !MQTTTopicRules.isExternalRoute(topic)
            {
                throw route.invalid("must be an MQTT topic outside Coaty, without wildcards")
            }
            points.append(.object(point))
        }
        return points
    }

    /// Returns the node as the core decodes it from an Advertise event, so that it is checked by the rules of the wire.
    private static func node(_ object: [String: AnyCodable]) throws(PayloadError) -> IoNode {
        do {
            let text = try PayloadCoder.encode(["object": AnyCodable.object(object)])
            let event = try AdvertiseEvent(payload: Payload(Array(text.utf8)))
            guard let node = try event.data.object as? IoNode else {
                throw PayloadError.invalid(pointer: "", reason: "is no IO node")
            }
            return node
        } catch PayloadError.invalid(let pointer, let reason) {
            let place = pointer.hasPrefix("/object/") ? String(pointer.dropFirst("/object".count)) : pointer
            throw .invalid(pointer: place, reason: reason)
        } catch let error as PayloadError {
            throw error
        } catch {
            throw .invalid(pointer: "", reason: "is no IO node")
        }
    }

    /// The ids of a request, each once.
    private struct Ids {
        var taken: [(id: CoatyUUID, pointer: String)] = []
        private var known: Set<CoatyUUID> = []

        /// Returns the id at a place, or a new one if it is missing.
        mutating func take(_ view: JSONView?, or pointer: String) throws(PayloadError) -> CoatyUUID {
            var id = CoatyUUID()
            if let view {
                guard let given = view.string.flatMap(CoatyUUID.init(uuidString:)) else {
                    throw view.invalid("must be a UUID")
                }
                id = given
            }
            guard known.insert(id).inserted else {
                throw .invalid(pointer: pointer, reason: "must not be given twice")
            }
            taken.append((id, pointer))
            return id
        }
    }
}
