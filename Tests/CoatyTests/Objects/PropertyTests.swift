import TestSupport
import Testing

@testable import Coaty
@testable import CoatyTestSupport

/// Properties that hold for all topics and all JSON values, checked with generated ones. The seeds are fixed, so
/// failures are reproducible.
@Suite(.exclusive) struct PropertyTests {
    private static let cases = 3000

    @Test func objectsRoundTrip() throws {
        var random = SeededGenerator(seed: 2)
        for _ in 0..<Self.cases {
            var members: [String: AnyCodable] = [
                "coreType": "CoatyObject", "objectType": .string("t" + random.level()),
                "objectId": .string("o" + random.level()),
                "name": .string(random.level()),
            ]
            for _ in 0..<Int.random(in: 0..<5, using: &random) {
                members["x" + random.level()] = random.json(depth: 4)
            }
            let text = try PayloadCoder.encode(AnyCodable.object(members))
            let object = try PayloadCoder.object(JSONDocument(Array(text.utf8)).root)
            #expect(try ComparableJSON(object.json) == ComparableJSON(text))
            // Integers are exact, even those that a double can't represent.
            #expect(try AnyCodable(JSONDocument(Array(object.json.utf8)).root) == .object(members))
        }
    }

    /// Each value is read once, even in deep and wide objects; otherwise this would take minutes.
    @Test(.timeLimit(.minutes(1))) func readsDeepAndWideObjectsInOneGo() throws {
        let deep = String(repeating: #"{"a":["#, count: 250) + "1" + String(repeating: "]}", count: 250)
        let wide = (0..<20_000).map { #""m\#($0)":\#($0)"# }.joined(separator: ",")
        let points = (0..<200).map { index in
            #"{"coreType":"IoActor","objectType":"coaty.IoActor","objectId":"\#(index)","name":"n","valueType":"v","x":\#(deep)}"#
        }
        let sources = (0..<20_000).map { index in
            #"{"coreType":"IoSource","objectType":"coaty.IoSource","objectId":"\#(index)","name":"n","valueType":"v","x":\#(index)}"#
        }
        let text =
            #"{"coreType":"IoNode","objectType":"coaty.IoNode","objectId":"o","name":"n","#
            + #""ioSources":[\#(sources.joined(separator: ","))],"#
            + #""ioActors":[\#(points.joined(separator: ","))],"characteristics":{\#(wide)},\#(wide)}"#
        let node = try #require(try PayloadCoder.object(JSONDocument(Array(text.utf8)).root) as? IoNode)
        #expect(node.custom.count == 20_000 && node.custom["m777"] == 777)
        #expect(node.characteristics?.count == 20_000 && node.characteristics?["m5"] as? Int == 5)
        #expect(node.ioActors.count == 200)
        #expect(node.ioSources.count == 20_000 && node.ioSources[19_999].custom["x"] == 19_999)
        let x = try #require(node.ioActors[199].custom["x"])
        #expect(try ComparableJSON(PayloadCoder.encode(x)) == ComparableJSON(deep))
    }

    @Test func keepsDeepNestingUpToTheLimit() throws {
        let depth = JSONDocument.maximumDepth - 2
        let nested = String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
        let text = #"{"coreType":"CoatyObject","objectType":"t","objectId":"o","name":"n","x":\#(nested)}"#
        let event = try AdvertiseEvent(payload: Payload(Array(#"{"object":\#(text)}"#.utf8)))
        #expect(try ComparableJSON(event.data.object.json) == ComparableJSON(text))
        let tooDeep = String(repeating: "[", count: depth + 3) + String(repeating: "]", count: depth + 3)
        #expect(throws: PayloadError.self) { try Payload(Array(tooDeep.utf8)) }
    }
}

extension SeededGenerator {
    /// Returns a text that is valid as a topic level, including combining marks and colons.
    fileprivate mutating func level() -> String {
        let letters: [Unicode.Scalar] = [
            "a", "Z", "0", ":", ".", "-", " ", "\u{301}", "\u{E9}", "\u{1F600}", "\u{200D}", "\"",
        ]
        var text = String.UnicodeScalarView()
        for _ in 0..<Int.random(in: 1..<8, using: &self) {
            if let letter = letters.randomElement(using: &self) { text.append(letter) }
        }
        return String(text)
    }

    fileprivate mutating func json(depth: Int) -> AnyCodable {
        switch Int.random(in: 0..<(depth > 0 ? 8 : 6), using: &self) {
        case 0: return .null
        case 1: return .bool(.random(using: &self))
        case 2: return .integer(.random(in: .min ... .max, using: &self))
        case 3: return .unsignedInteger(.random(in: (UInt64(Int64.max) + 1)...(.max), using: &self))
        case 4: return .double(.random(in: -1e6...1e6, using: &self) + 0.5)
        case 5: return .string(level())
        case 6: return .array((0..<Int.random(in: 0..<4, using: &self)).map { _ in json(depth: depth - 1) })
        default:
            var members: [String: AnyCodable] = [:]
            for _ in 0..<Int.random(in: 0..<4, using: &self) { members[level()] = json(depth: depth - 1) }
            return .object(members)
        }
    }
}
