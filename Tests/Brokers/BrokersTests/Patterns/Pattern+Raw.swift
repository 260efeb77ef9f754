import Coaty
import Testing

extension Pattern {
    /// Topics outside of Coaty's topic structure.
    static let raw = [
        Pattern("Raw, exact topic") { scene in
            try await checkRaw(scene, filter: Dotted.rawTopic, topic: Dotted.rawTopic)
        },
        // `+` matches one level of the topic as delivered, so the level must not contain a dot.
        Pattern("Raw, filter with +") { scene in
            try await checkRaw(scene, filter: "plant.a/+/temperature", topic: "plant.a/line1/temperature")
        },
        Pattern("Raw, filter with #") { scene in
            try await checkRaw(scene, filter: "plant.a/#", topic: Dotted.rawTopic)
        },
    ]

    private static func checkRaw(_ scene: Scene, filter: String, topic: String) async throws {
        let received = ReceivedValues<String>()
        let subscription = try scene.receiver.subscribe(rawTopic: filter) { event in
            received.append("\(event.topic) \(String(decoding: event.payload, as: UTF8.self))")
        }
        defer { subscription.cancel() }
        try await scene.connect()
        try scene.sender.publishRaw(.with(topic: topic, payload: "21.5"))
        try await eventually("the message arrives", within: 10) { received.count > 0 }
        // With an exact filter, the agent restores the topic; with a wildcard, it is unknown which separators were
        // dots.
        if filter == topic {
            #expect(received.values == ["\(topic) 21.5"])
        } else {
            #expect(received.values.map { $0.replacing(".", with: "/") } == ["\(topic) 21.5".replacing(".", with: "/")])
        }
    }
}
