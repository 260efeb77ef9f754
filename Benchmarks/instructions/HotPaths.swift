import Coaty
import Foundation

/// Repeats an operation of the library, so that callgrind can count its instructions.
///
/// usage: hot-paths filter|decode|object|encode|observe COUNT
@main
enum HotPaths {
    private static let event = #"""
        {"object":{"coreType":"CoatyObject","objectType":"com.example.Thermometer","name":"hall 7","status":"on",
        "objectId":"8a1b7c9e-1111-4222-8333-444455556666","floor":6,"value":21.5,"labels":{"site":"north","room":"7.1"}}}
        """#

    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count == 3, let count = Int(arguments[2]) else { exit(2) }
        switch arguments[1] {
        case "filter": try filter(count)
        case "decode": try decode(count)
        case "object": try object(count)
        case "encode": try encode(count)
        case "observe": try await observe(count)
        default: exit(2)
        }
    }

    /// Evaluates a filter with a comparison, an equality of a nested property and a pattern. It holds.
    private static func filter(_ count: Int) throws {
        let condition = CompiledCondition(
            .and([
                .property("value", .greaterThan(.double(20))),
                .property("labels.site", .equals(.string("north"))),
                .property("name", .like("hall %")),
            ])
        )
        guard let object = try Payload(Array(event.utf8)).json.member(named: "object") else { exit(1) }
        for _ in 0..<count {
            var cache = ValueCache()
            var budget = WorkBudget(steps: 10_000)
            guard try condition.holds(for: object, &cache, &budget) else { exit(1) }
        }
    }

    /// Checks a payload, and finds the members that the gateway reads of each event.
    private static func decode(_ count: Int) throws {
        let bytes = Array(event.utf8)
        for _ in 0..<count {
            let object = try Payload(bytes).json.member(named: "object")
            guard object?.member(named: "objectId") != nil, object?.member(named: "coreType") != nil else { exit(1) }
        }
    }

    /// Decodes the typed object of a checked payload.
    private static func object(_ count: Int) throws {
        guard let json = try Payload(Array(event.utf8)).json.member(named: "object") else { exit(1) }
        for _ in 0..<count {
            guard try PayloadCoder.decode(CoatyValue<Thermometer>.self, from: json).floor == 6 else { exit(1) }
        }
    }

    private static var thermometer: CoatyValue<Thermometer> {
        let content = Thermometer(status: "on", floor: 6, value: 21.5, labels: .init(site: "north", room: "7.1"))
        return CoatyValue(content, name: "hall 7")
    }

    /// Publishes a payload, and observes its object as a value, one after the other, through the in-memory broker.
    private static func observe(_ count: Int) async throws {
        let broker = InMemoryBroker()
        let options = CommunicationOptions(shouldAutoStart: true) { _ in InMemoryBinding(broker: broker) }
        let container = try await Container.resolve(configuration: Configuration(communication: options))
        let agent = container.communicationManager
        for await state in agent.getCommunicationState() where state == .online { break }
        let event = try AdvertiseEvent.with(object: thermometer)
        var seen = 0
        let values = try agent.advertised(Thermometer.self)
        try agent.publishAdvertise(event)
        for try await value in values {
            guard value.floor == 6 else { exit(1) }
            seen += 1
            if seen == count { break }
            try agent.publishAdvertise(event)
        }
        await container.shutdown()
    }

    /// Encodes a typed object into a checked payload.
    private static func encode(_ count: Int) throws {
        let value = thermometer
        for _ in 0..<count {
            guard try AdvertiseEvent.with(object: value).payload.bytes.count > 200 else { exit(1) }
        }
    }
}

private struct Thermometer: CoatyContent {
    static let objectType = "com.example.Thermometer"

    struct Labels: Codable {
        var site: String
        var room: String
    }

    var status: String
    var floor: Int
    var value: Double
    var labels: Labels
}
