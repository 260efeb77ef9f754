import Coaty

/// An IO context in which half of the actors are responsible for each operating state, with one point per node.
struct Network {
    static let valueTypeCount = 50

    /// A node, and the JSON of it that a router receives.
    struct Node {
        let node: IoNode
        let json: JSONView
        let event: AdvertiseEvent

        fileprivate init(_ node: IoNode) throws {
            self.node = node
            event = try AdvertiseEvent.with(object: node)
            json = event.payload.json["object"] ?? event.payload.json
        }
    }

    /// The number of sources, and of actors.
    let size: Int
    /// The nodes of the sources, then those of the actors.
    let nodes: [Node]
    let rules: [IoAssociationRule]

    init(size: Int) throws {
        self.size = size
        nodes =
            try (0..<size).map { try Self.source($0, updateRate: 100) }
            + (0..<size).map { try Self.actor($0, isForEmergencies: !Self.isNormal($0)) }
        let texts = (0..<Self.valueTypeCount).map {
            #"""
            {"name": "Responsible actors", "valueType": "\#(Self.valueType($0))", "condition":
            ["actorNode.characteristics.isResponsibleForOperatingState", ["Equals", {"property": "context.operatingState"}]]}
            """#
        }
        rules = try IoAssociationRule.rules(JSONDocument(Array("[\(texts.joined(separator: ","))]".utf8)).root)
    }

    /// Returns whether an actor is initially responsible for the normal state, which applies to half of the actors of
    /// each value type.
    static func isNormal(_ index: Int) -> Bool { index / valueTypeCount % 2 == 0 }

    static func source(_ index: Int, updateRate: Int) throws -> Node {
        let source = IoSource(
            valueType: valueType(index),
            updateRate: updateRate,
            name: "Temperature Source \(index)",
            objectId: id("a", index)
        )
        return try Node(IoNode(name: contextName, ioSources: [source], objectId: id("b", index)))
    }

    static func actor(_ index: Int, isForEmergencies: Bool) throws -> Node {
        let actor = IoActor(
            valueType: valueType(index),
            updateRate: 50,
            name: "Temperature Actor \(index)",
            objectId: id("c", index)
        )
        return try Node(
            IoNode(
                name: contextName,
                ioActors: [actor],
                characteristics: ["isResponsibleForOperatingState": isForEmergencies ? "emergency" : "normal"],
                objectId: id("d", index)
            )
        )
    }

    /// Returns the context.
    ///
    /// - Parameter remark: a member that no rule uses.
    static func context(isEmergency: Bool, remark: Int) -> sending IoContext {
        let context = IoContext(
            coreType: .IoContext,
            objectType: "coaty.test.TemperatureIoContext",
            objectId: CoatyUUID(uuidString: "b61740a6-95d7-4d1a-8be5-53f3aa1e0b79") ?? CoatyUUID(),
            name: contextName
        )
        context.custom["operatingState"] = .string(isEmergency ? "emergency" : "normal")
        context.custom["remark"] = .integer(Int64(remark))
        return context
    }

    static let contextName = "TemperatureMeasurement"

    private static func valueType(_ index: Int) -> String {
        "coaty.test.Temperature[\(index % valueTypeCount)]"
    }

    private static func id(_ kind: String, _ index: Int) -> CoatyUUID {
        let digits = String(index)
        let padding = String(repeating: "0", count: 11 - digits.count)
        return CoatyUUID(uuidString: "00000000-0000-4000-8000-\(kind)\(padding)\(digits)") ?? CoatyUUID()
    }
}
