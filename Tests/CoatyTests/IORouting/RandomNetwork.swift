import TestSupport
@testable import Coaty

/// Random IO nodes, contexts and rules, which are the same for the same seed.
struct RandomNetwork {
    private var generator: SeededGenerator
    /// Few values of each kind, so that they often match.
    private let valueTypes = ["a", "b", "Z\u{FC}rich", "Zu\u{308}rich"]
    private let states = ["normal", "emergency", "off"]
    private let nodeIds = (0..<12).map { "node-\($0)" }
    private let pointIds = (0..<24).map { "point-\($0)" }

    init(seed: UInt64) {
        generator = SeededGenerator(seed: seed)
    }

    mutating func pick<Element>(_ elements: [Element]) -> Element {
        elements[Int.random(in: elements.indices, using: &generator)]
    }

    mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &generator) < percent }

    mutating func number(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &generator) }

    mutating func nodeId() -> String { pick(nodeIds) }

    /// Returns the payload of an Advertise event with a node of the context.
    mutating func node(named name: String = "ctx") throws -> Payload {
        var members = [
            #""coreType":"IoNode""#, #""objectType":"coaty.IoNode""#, #""objectId":"\#(nodeId())""#,
            #""name":"\#(name)""#, #""parentObjectId":"\#(pick(["agent-1", "agent-1", "agent-1", "agent-2"]))""#,
        ]
        members.append(#""ioSources":[\#(try points("IoSource"))]"#)
        members.append(#""ioActors":[\#(try points("IoActor"))]"#)
        if chance(80) { members.append(#""characteristics":{"state":"\#(pick(states))","floor":\#(number(1...3))}"#) }
        return try Payload(Array(#"{"object":{\#(members.joined(separator: ","))}}"#.utf8))
    }

    private mutating func points(_ coreType: String) throws -> String {
        (0..<number(0...3)).map { _ in
            var members = [
                #""coreType":"\#(coreType)""#, #""objectType":"coaty.\#(coreType)""#,
                #""objectId":"\#(coreType)-\#(pick(pointIds))""#, #""name":"p""#,
                #""valueType":"\#(pick(valueTypes))""#,
            ]
            if chance(20) { members.append(#""useRawIoValues":\#(chance(70))"#) }
            if chance(50) { members.append(#""updateRate":\#(number(1...4) * 100)"#) }
            if coreType == "IoSource", chance(15) {
                members.append(#""externalRoute":"\#(pick(["e/1", "e/2", "#", "coaty/3/-/DAD/x"]))""#)
            }
            return "{\(members.joined(separator: ","))}"
        }
        .joined(separator: ",")
    }

    /// Returns a context in one of its states.
    mutating func context() throws -> IoContext {
        let text = #"""
            {"coreType":"IoContext","objectType":"com.example.Context","objectId":"ctx-id","name":"ctx",
            "operatingState":"\#(pick(states))","floor":\#(number(1...3)),"remark":\#(number(0...9))}
            """#
        return try PayloadCoder.decode(from: text)
    }

    mutating func rules() throws -> [IoAssociationRule] {
        let conditions = [
            #"["actorNode.characteristics.state", ["Equals", {"property": "context.operatingState"}]]"#,
            #"["sourceNode.characteristics.floor", ["LessThanOrEqual", {"property": "actorNode.characteristics.floor"}]]"#,
            #"{"and": [["context.operatingState", ["NotEquals", "off"]], ["source.updateRate", ["Exists"]]]}"#,
            #"{"not": ["actor.updateRate", ["GreaterThan", 200]]}"#,
            #"{"or": [["context.floor", ["Equals", 1]], ["actorNode.objectId", ["Like", "node-_"]]]}"#,
            #"["source.name", ["Exists"]]"#,
        ]
        let texts = (0..<number(0...4)).map { index in
            let valueType = chance(60) ? #""valueType":"\#(pick(valueTypes))","# : ""
            return #"{"name":"rule \#(index)",\#(valueType)"condition":\#(pick(conditions))}"#
        }
        return try IoAssociationRule.rules(Payload(Array("[\(texts.joined(separator: ","))]".utf8)).json)
    }
}
