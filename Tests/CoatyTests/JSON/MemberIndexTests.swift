import TestSupport
import Testing

@testable import Coaty

@Suite(.exclusive) struct MemberIndexTests {
    /// Names that are easily confused, each with its JSON spelling.
    private static let names: [(spelling: String, name: String)] = [
        ("a", "a"), (#"\u0061"#, "a"), ("ä", "ä"), (#"\u00e4"#, "ä"), (#"\u00E4"#, "ä"), ("a\u{308}", "a\u{308}"),
        (#"a\u0308"#, "a\u{308}"), ("😀", "😀"), (#"\ud83d\ude00"#, "😀"), (#"\ud83d"#, "\u{FFFD}"),
        (#"\ude00\ud83d"#, "\u{FFFD}\u{FFFD}"), (#"\ud83d\n\ude00"#, "\u{FFFD}\n\u{FFFD}"), ("\u{FFFD}", "\u{FFFD}"),
        (#"\ud83d\u0041"#, "\u{FFFD}A"), (#"\ud83d\ud83d\ude00"#, "\u{FFFD}😀"), (#"\u0000"#, "\0"), ("", ""),
        (#"\"\\\/\b\f\n\r\t"#, "\"\\/\u{8}\u{C}\n\r\t"), (#"\u20ac"#, "€"), (#"x\u20AC€"#, "x€€"),
        (#"\ud83d€"#, "\u{FFFD}€"),
    ]

    @Test(arguments: names)
    func escapesAreResolved(_ spelling: String, _ name: String) throws {
        let text = try JSONDocument(Array("\"\(spelling)\"".utf8)).root
        #expect(text.string?.utf8.elementsEqual(name.utf8) == true)
        #expect(text.isString(name))
        for (_, other) in Self.names { #expect(text.isString(other) == other.utf8.elementsEqual(name.utf8)) }
        #expect(!text.isString(name + "a") && !text.isString(String(name.dropLast()) + "b"))
    }

    @Test func membersAreFoundInObjectsOfAnySize() throws {
        var generator = FilterGenerator(seed: 14)
        for round in 0..<300 {
            var members: [(spelling: String, name: String)] = []
            for number in 0..<generator.below(round % 10 == 0 ? 2_000 : 40) {
                let own = "k\(number)"
                members.append(generator.below(3) == 0 ? generator.pick(Self.names) : (own, own))
            }
            let text = members.enumerated().map { "\"\($1.spelling)\":\($0)" }.joined(separator: ",")
            let object = try JSONDocument(Array("{\(text)}".utf8)).root
            var last: [WireName: Int] = [:]
            for (position, member) in members.enumerated() { last[WireName(member.name)] = position }
            for name in members.map(\.name) + Self.names.map(\.name) + ["none"] {
                #expect(object.member(named: name)?.number.map { Int($0) } == last[WireName(name)])
            }
            #expect(object.childCount == last.count)
        }
    }

    @Test func elementsAreFoundInArraysOfAnySize() throws {
        for count in [0, 1, 63, 64, 65, 66, 1_000] {
            let elements = (0..<count).map { $0 % 3 == 0 ? #"{"n":\#($0)}"# : "[[\($0)],\($0)]" }
            let array = try JSONDocument(Array("[\(elements.joined(separator: ","))]".utf8)).root
            #expect(array.childCount == count)
            #expect(array.value(at: ["length"])?.number == Double(count))
            for position in 0..<count {
                let value = array.value(at: ["\(position)"])
                #expect((value?["n"] ?? value?.value(at: ["1"]))?.number == Double(position))
            }
            for name in ["\(count)", "-1", "00", "+1", "x", ""] { #expect(array.value(at: [name]) == nil) }
        }
    }

    @Test func threadsShareTheTables() async throws {
        let members = (0..<50_000).map { #""\u006b\#($0)":\#($0)"# }.joined(separator: ",")
        let object = try JSONDocument(Array(#"{"a":{\#(members)},"b":{\#(members)}}"#.utf8)).root
        let found = await withTaskGroup(of: Int.self) { group in
            for task in 0..<8 {
                group.addTask {
                    (0..<1_000).count { number in
                        object.value(at: [task % 2 == 0 ? "a" : "b", "k\(number * 50)"])?.number == Double(number * 50)
                    }
                }
            }
            return await group.reduce(0, +)
        }
        #expect(found == 8_000)
    }

    /// If each name were compared with each other one, this would take more than half a minute.
    @Test(.timeLimit(.minutes(1)))
    func aWideObjectComparesLikeItsSize() throws {
        let members = (0..<50_000).map { #""\u00e4\#($0)":\#($0)"# }.joined(separator: ",")
        let text = Array("{\(members)}".utf8)
        let (left, right) = (try JSONDocument(text).root, try JSONDocument(text).root)
        var budget = WorkBudget(steps: 1_000_000)
        #expect(try DeepComparison.isEqual(FilterValue(left), Constant(right), &budget))
    }

    @Test func footprintCountsTheIndexBeforeItIsBuilt() throws {
        let members = (0..<1_000).map { #""\#($0)":0"# }.joined(separator: ",")
        let wide = try JSONDocument(Array("{\(members)}".utf8))
        let narrow = try JSONDocument(Array("[\(Array(repeating: "{}", count: 64).joined(separator: ","))]".utf8))
        #expect(wide.footprint >= wide.bytes.count + wide.nodes.count * 20)
        #expect(narrow.wide == nil)
        let before = wide.footprint
        #expect(wide.root.member(named: "7") != nil)
        #expect(wide.footprint == before)
    }
}
