import Coaty

/// A line of the agent's input: an event to publish, or a request to send.
struct Instruction {
    private let json: JSONView
    private let payload: Payload

    init(_ line: String) throws {
        json = try Payload(Array(line.utf8)).json
        payload = try Payload(Array(json["data"]?.bytes ?? []))
    }

    /// Carries out the instruction.
    ///
    /// - Returns: the pending request, whose lifetime is that of its responses; nil for publications.
    func carryOut(by manager: CommunicationManager) throws -> PendingRequest? {
        switch json["publish"]?.string {
        case "advertise": _ = try manager.publishAdvertise(AdvertiseEvent(payload: payload))
        case "deadvertise": _ = try manager.publishDeadvertise(DeadvertiseEvent(payload: payload))
        case "channel":
            let channelId = json["channelId"]?.string ?? ""
            _ = try manager.publishChannel(ChannelEvent(channelId: channelId, payload: payload))
        case "raw":
            let topic = json["topic"]?.string ?? ""
            _ = try manager.publishRaw(.with(topic: topic, payload: json["data"]?.string ?? ""))
        default: return try request(by: manager)
        }
        return nil
    }

    private func request(by manager: CommunicationManager) throws -> PendingRequest? {
        switch json["request"]?.string {
        case "discover":
            try manager.publish(DiscoverEvent(payload: payload)) { Output.show("response", "resolve", $0) }
        case "query":
            try manager.publish(QueryEvent(payload: payload)) { Output.show("response", "retrieve", $0) }
        case "update":
            try manager.publish(UpdateEvent(payload: payload)) { Output.show("response", "complete", $0) }
        case "call":
            try manager.publish(CallEvent(operation: json["operation"]?.string ?? "", payload: payload)) {
                Output.show("response", "return", $0)
            }
        default: throw CommunicationError.notARequest
        }
    }
}
