import Coaty
import Foundation

/// Compares the time to decode and encode objects with that of Foundation, in one process and in turn.
@main
enum CodingBench {
    /// The number of measurements; medians are printed.
    private static let rounds = 9

    static func main() throws {
        print("typed objects, nanoseconds (the ratio to Foundation)")
        print("\"checked\" is the time to decode a text that has been checked, as each received event has been")
        row("", ["bytes", "decode", "checked", "Foundation", "ratio", "ratio", "encode", "Foundation", "ratio"])
        for count in [1, 10, 100] { try typed(Job(readings: count)) }
        print("\nany JSON, milliseconds, and the exponent of the growth from the size before")
        row("", ["elements", "decode", "exponent", "encode", "exponent"])
        try large("[AnyCodable]") { count in
            "[\((0..<count).map { #"{"a":[\#($0),null]}"# }.joined(separator: ","))]"
        } decode: {
            try PayloadCoder.decode([AnyCodable].self, from: $0)
        }
        try large("[String: AnyCodable]") { count in
            "{\((0..<count).map { #""m\#($0)":{"a":[\#($0),null]}"# }.joined(separator: ","))}"
        } decode: {
            try PayloadCoder.decode([String: AnyCodable].self, from: $0)
        }
    }

    private static func typed(_ job: Job) throws {
        let text = try PayloadCoder.encode(job)
        let data = Data(text.utf8)
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let decoder = JSONDecoder()
        let checked = try JSONDocument(Array(text.utf8)).root
        let times = try compare(
            repeats: 200_000 / text.utf8.count + 10,
            [
                { _ = try PayloadCoder.decode(Job.self, from: text) },
                { _ = try PayloadCoder.decode(Job.self, from: checked) },
                { _ = try decoder.decode(Job.self, from: data) },
                { _ = try PayloadCoder.encode(job) },
                { _ = String(decoding: try encoder.encode(job), as: UTF8.self) },
            ]
        )
        row(
            "object with \(job.readings.count) readings",
            [
                "\(text.utf8.count)", format(times[0]), format(times[1]), format(times[2]),
                ratio(times[0], times[2]), ratio(times[1], times[2]),
                format(times[3]), format(times[4]), ratio(times[3], times[4]),
            ]
        )
    }

    private static func ratio(_ time: Double, _ other: Double) -> String { String(format: "%.2f", time / other) }

    private static func large<Value: Encodable>(
        _ name: String,
        _ text: (Int) -> String,
        decode: @escaping (String) throws -> Value
    ) throws {
        var previous: (decode: Double, encode: Double)?
        for count in [10_000, 100_000, 1_000_000] {
            let text = text(count)
            let value = try decode(text)
            let times = try compare(
                repeats: 1,
                rounds: 3,
                [{ _ = try decode(text) }, { _ = try PayloadCoder.encode(value) }]
            )
            row(
                name,
                [
                    "\(count)", String(format: "%.1f", times[0] / 1e6),
                    previous.map { exponent($0.decode, times[0]) } ?? "",
                    String(format: "%.1f", times[1] / 1e6), previous.map { exponent($0.encode, times[1]) } ?? "",
                ]
            )
            previous = (times[0], times[1])
        }
    }

    private static func exponent(_ smaller: Double, _ larger: Double) -> String {
        String(format: "%.2f", log10(larger / smaller))
    }

    /// Returns the median time of each operation in nanoseconds.
    private static func compare(
        repeats: Int,
        rounds: Int = rounds,
        _ operations: [() throws -> Void]
    ) throws -> [Double] {
        var times = operations.map { _ in [Double]() }
        for _ in 0..<rounds {
            for (index, operation) in operations.enumerated() {
                let time = try ContinuousClock().measure { for _ in 0..<repeats { try operation() } }
                times[index].append(time / .nanoseconds(1) / Double(repeats))
            }
        }
        return times.map { $0.sorted()[rounds / 2] }
    }

    private static func format(_ number: Double) -> String { String(Int(number)) }

    private static func row(_ name: String, _ columns: [String]) {
        let cells = columns.map { String(repeating: " ", count: max(0, 11 - $0.count)) + $0 }
        print(name.padding(toLength: 28, withPad: " ", startingAt: 0) + cells.joined())
    }
}

/// An object as applications define them.
private struct Job: Codable {
    struct Reading: Codable {
        let sensorId: CoatyUUID
        let value: Double
        let unit: String
        let isValid: Bool
    }

    // No default values: a synthesized initializer would evaluate them before it decodes.
    var coreType: CoreType
    var objectType: String
    var objectId: CoatyUUID
    var name: String
    var isDeactivated: Bool?
    var urgency: Int
    var readings: [Reading]

    init(readings count: Int) {
        coreType = .CoatyObject
        objectType = "com.example.Job"
        objectId = CoatyUUID()
        name = "Repair the pump of hall 7"
        isDeactivated = false
        urgency = 7
        readings = (0..<count).map {
            Reading(sensorId: CoatyUUID(), value: Double($0) + 0.25, unit: "°C", isValid: $0 % 2 == 0)
        }
    }
}
