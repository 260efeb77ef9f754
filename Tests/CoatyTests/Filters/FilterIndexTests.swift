import TestSupport
import Testing

@testable import Coaty

extension FilterGenerator {
    /// Returns one of a few values, so that conditions and objects often have equal values.
    private mutating func scalar() -> AnyCodable {
        pick([
            .null, .bool(true), .integer(1), .double(1), .double(0.5), .unsignedInteger(2), .string("a"), .string("ä"),
        ])
    }

    fileprivate mutating func object(_ depth: Int = 2) -> AnyCodable {
        let members = (0..<1 + below(20)).map { _ in
            (
                name(),
                depth == 0 || below(3) > 0 ? scalar() : below(3) == 0 ? .array(list { $0.scalar() }) : object(depth - 1)
            )
        }
        return .object(Dictionary(members, uniquingKeysWith: { $1 }))
    }

    /// Returns a condition that is likely to have keys.
    fileprivate mutating func keyed(_ depth: Int = 2) -> ObjectFilterCondition {
        let names = (0..<1 + below(2)).map { _ in name() }
        return switch below(depth > 0 ? 8 : 5) {
        case 0...2: .property(.init(names), .equals(scalar()))
        case 3, 4: .property(.init(names), .in(list { $0.scalar() }))
        case 5: .and([condition(1), keyed(depth - 1), keyed(depth - 1)])
        case 6: .and(list { $0.keyed(depth - 1) })
        default: .or(list { $0.keyed(depth - 1) })
        }
    }
}

@Suite(.exclusive) struct FilterIndexTests {
    /// For 200,000 pairs of condition and object, the candidates include every condition that holds, and only
    /// conditions that have a matching key.
    @Test func candidatesEqualThoseOfAFullScan() throws {
        var generator = FilterGenerator(seed: 12)
        let conditions = (0..<1_000).map { _ in CompiledCondition(generator.keyed()) }
        var index = FilterIndex<Int>()
        for (id, condition) in conditions.enumerated() {
            if let keys = condition.accessKeys { index.insert(id, keys: keys) }
        }
        var hits = 0
        for round in 0..<200 {
            let json = round % 10 == 0 ? generator.json() : generator.object()
            let object = try JSONDocument(encoding: json).root
            let candidates = index.candidates(in: object)
            #expect(Set(candidates).count == candidates.count)
            for (id, condition) in conditions.enumerated() {
                guard let keys = condition.accessKeys else { continue }
                let isCandidate = candidates.contains(id)
                let hasKey = keys.contains { key in
                    object.value(at: key.path.map(\.text)).flatMap { Scalar($0) } == key.value
                }
                #expect(isCandidate == hasKey)
                var budget = WorkBudget(steps: 100_000)
                if try condition.holds(for: object, &budget) {
                    #expect(isCandidate)
                    hits += 1
                }
            }
        }
        #expect(hits > 500, "\(hits)")
    }

    @Test func removedConditionsAreNotFound() throws {
        var generator = FilterGenerator(seed: 13)
        let objects = try (0..<50).map { _ in try JSONDocument(encoding: generator.json()).root }
        var index = FilterIndex<Int>()
        var keys: [Int: [AccessKey]] = [:]
        for id in 0..<2_000 {
            keys[id] = CompiledCondition(generator.keyed(1)).accessKeys
            index.insert(id, keys: keys[id] ?? [])
            guard id % 2 == 1 else { continue }
            let removed = generator.below(id)
            index.remove(removed, keys: keys.removeValue(forKey: removed) ?? [])
        }
        for object in objects {
            #expect(index.candidates(in: object).allSatisfy { keys[$0] != nil })
        }
        for (id, keys) in keys { index.remove(id, keys: keys) }
        #expect(index.isEmpty)
    }

    /// Tests small and wide objects, with more and with fewer members than paths.
    @Test(arguments: [1, 100], [1, 100])
    func lastOfDuplicateMembersApplies(others: Int, paths: Int) throws {
        var index = FilterIndex<String>()
        for number in 0..<paths {
            index.insert("\(number)", keys: [AccessKey(path: [WireName("p\(number)")], value: .null)])
        }
        for value in ["first", "last"] {
            index.insert(value, keys: [AccessKey(path: [WireName("a")], value: .string(WireName(value)))])
        }
        let members = (0..<others).map { #""k\#($0)":0"# }.joined(separator: ",")
        let object = try JSONDocument(Array(#"{"a":"first",\#(members),"\u0061":"last"}"#.utf8)).root
        #expect(index.candidates(in: object) == ["last"])
    }
}
