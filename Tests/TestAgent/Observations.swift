import Coaty
import Synchronization

/// All observations of the agent, and its responses.
final class Observations: Sendable {
    static let objectType = "com.example.Thing"
    static let operation = "com.example.add"

    private let subscriptions: [Subscription]
    private let standing: AsyncStream<Void>

    init(_ manager: CommunicationManager) throws {
        let (standing, continuation) = AsyncStream.makeStream(of: Void.self)
        self.standing = standing
        let status: @Sendable (SubscriptionStatus) -> Void = { if $0 == .standing { continuation.yield() } }
        subscriptions = [
            manager.subscribe(try .advertise(withObjectType: "com.example.Job"), onStatus: status) {
                Output.show("event", "advertise", $0)
            },
            manager.subscribe(.deadvertise, onStatus: status) { Output.show("event", "deadvertise", $0) },
            manager.subscribe(try .channel("news"), onStatus: status) { Output.show("event", "channel", $0) },
            try manager.subscribe(rawTopic: "example/+", onStatus: status) { event in
                let text = Output.text(String(decoding: event.payload, as: UTF8.self))
                Output.line(#"{"event":"raw","topic":\#(Output.text(event.topic)),"text":\#(text)}"#)
            },
            manager.subscribe(.discover, onStatus: status, handler: Self.resolve),
            manager.subscribe(.query, onStatus: status, handler: Self.retrieve),
            manager.subscribe(try .update(withObjectType: Self.objectType), onStatus: status, handler: Self.complete),
            manager.subscribe(try .call(operation: Self.operation), onStatus: status, handler: Self.add),
        ]
    }

    /// Waits until the broker has acknowledged all subscriptions.
    func untilStanding() async {
        var missing = subscriptions.count
        for await _ in standing {
            missing -= 1
            if missing == 0 { return }
        }
    }

    private static func thing(_ name: String) -> CoatyObject {
        CoatyObject(coreType: .CoatyObject, objectType: objectType, objectId: CoatyUUID(), name: name)
    }

    private static func resolve(_ event: DiscoverEvent) {
        guard event.data.isObjectTypeCompatible(objectType) else { return }
        Output.show("event", "discover", event)
        answer { try event.resolve(.with(object: thing("resolved"))) }
    }

    private static func retrieve(_ event: QueryEvent) {
        guard event.data.isObjectTypeCompatible(objectType) else { return }
        Output.show("event", "query", event)
        answer { try event.retrieve(.with(objects: [thing("first"), thing("second")])) }
    }

    private static func complete(_ event: UpdateEvent) {
        Output.show("event", "update", event)
        answer { try event.complete(.with(object: event.data.object)) }
    }

    private static func add(_ event: CallEvent) {
        Output.show("event", "call", event)
        answer {
            let parameters = event.data.parameterArray?.compactMap { $0.value as? Int } ?? []
            guard parameters.count == 2 else {
                return try event.returnEvent(.with(error: ReturnError(code: .invalidParameters)))
            }
            return try event.returnEvent(.with(result: .init(parameters[0] + parameters[1])))
        }
    }

    private static func answer(_ publish: () throws -> Delivery) {
        do {
            _ = try publish()
        } catch {
            Output.line(#"{"failure":\#(Output.text("\(error)"))}"#)
        }
    }
}
