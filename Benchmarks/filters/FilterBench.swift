import Coaty
import Foundation

/// Prints the cost of filters per event, depending on their number. Exits with 1 if a filter holds unexpectedly.
@main
enum FilterBench {
    /// The number of measurements; the median is printed.
    private static let rounds = 9
    private static let counts = [200, 1_000, 10_000]

    private static let event = #"""
        {"object":{"coreType":"CoatyObject","objectType":"com.example.Thermometer","name":"hall 7","status":"on",
        "objectId":"8a1b7c9e-1111-4222-8333-444455556666","floor":6,"value":21.5,"labels":{"site":"north","room":"7.1"}}}
        """#

    static func main() throws {
        let object = try Payload(Array(event.utf8)).json.member(named: "object")
        guard let object else { exit(1) }
        print("filters that do not hold, microseconds for an event")
        row("", counts.map { "\($0)" })
        try indexed("equality, one property", object) { ("labels.room", "other-\($0)") }
        try indexed("equality, a property each", object) { ("name\($0)", "hall 7") }
        try indexed("equality, a path each", object) { ("labels.room\($0)", "7.1") }
        try judged("comparison, one property", object) { .property("value", .lessThan(.double(-0.5 - Double($0)))) }
        try judged("order of texts, one property", object) { .property("name", .lessThan(.string("hall -\($0)"))) }
        try judged("pattern, one property", object) { .property("name", .like("hall %-\($0)")) }
        try judged("existence, a property each", object) { .property(.init("name\($0)"), .exists()) }
        try wide()
    }

    /// Measures filters that an index finds by a value.
    private static func indexed(_ name: String, _ object: JSONView, _ filter: (Int) -> (String, String)) throws {
        row(
            name,
            counts.map { count in
                var index = FilterIndex<Int>()
                for id in 0..<count {
                    let (path, value) = filter(id)
                    let condition = ObjectFilterCondition.property(.init(path), .equals(.string(value)))
                    index.insert(id, keys: CompiledCondition(condition).accessKeys ?? [])
                }
                return microseconds(repeats: 1_000) { index.candidates(in: object).isEmpty }
            }
        )
    }

    /// Measures filters that are evaluated one by one.
    private static func judged(_ name: String, _ object: JSONView, _ filter: (Int) -> ObjectFilterCondition) throws {
        row(
            name,
            counts.map { count in
                let conditions = (0..<count).map { CompiledCondition(filter($0)) }
                return microseconds(repeats: 10) {
                    var cache = ValueCache()
                    return conditions.allSatisfy { condition in
                        var budget = WorkBudget(steps: 10_000)
                        return (try? condition.holds(for: object, &cache, &budget)) == false
                    }
                }
            }
        )
    }

    /// Measures filters that each look up one missing name in an object whose escaped names must be decoded.
    private static func wide() throws {
        let members = (0..<128_000).map { #""\u00e4\#(String($0, radix: 36))":0"# }
        let text = Array("{\(members.joined(separator: ","))}".utf8)
        let conditions = (0..<600).map { _ in CompiledCondition(.property("ä", .exists())) }
        let events = try (0..<rounds).map { _ in try Payload(text).json }
        var next = 0
        let time = microseconds(repeats: 1) {
            defer { next += 1 }
            return conditions.allSatisfy { condition in
                var budget = WorkBudget(steps: 100)
                return (try? condition.holds(for: events[next], &budget)) == false
            }
        }
        print("600 filters for an event of \(text.count) bytes with 128,000 escaped names: \(time) microseconds")
    }

    /// Returns the median of the processor time, which depends less on other processes than the elapsed time.
    private static func microseconds(repeats: Int, _ isRight: () -> Bool) -> String {
        let times = (0..<rounds).map { _ in
            let start = clock()
            for _ in 0..<repeats where !isRight() { exit(1) }
            return Double(clock() - start) * 1_000_000 / Double(CLOCKS_PER_SEC) / Double(repeats)
        }
        return String(format: "%.1f", times.sorted()[rounds / 2])
    }

    private static func row(_ name: String, _ columns: [String]) {
        func padding(_ text: String, _ width: Int) -> String {
            String(repeating: " ", count: max(width - text.count, 0))
        }
        print("  " + name + padding(name, 28) + columns.map { padding($0, 10) + $0 }.joined())
    }
}
