import Base
import Coaty
import CoatyMQTT
import Gate
import HTTPServer

/// `POST /v1/raw/{topic}`: publishes octets on a topic that is not one of Coaty's.
struct RawResource: Sendable {
    let gate: Gate

    private static let unsupportedMediaType = Problems.unsupportedMediaType("application/octet-stream").response()

    func register(in router: inout GatewayRouter) {
        router.onPost("/v1/raw/{topic}", query: ["retain"], publishingBy: gate) { request, principal, _ in
            // Without this check, any web page could publish: this media type makes browsers send a preflight request.
            guard request.hasContentType("application/octet-stream") else {
                return .response(Self.unsupportedMediaType)
            }
            let (topic, body) = (request.parameters["topic"] ?? "", request.body)
            let parameters = QueryParameters(request, limits: gate.limits)
            return .performing {
                let retain = try parameters.boolean("retain") ?? false
                guard MQTTTopicRules.isPublishable(topic) else {
                    throw InvalidParameter(name: "topic", reason: RawEvent.topicRule)
                }
                let event = try RawEvent.with(topic: topic, payload: body, shouldRetain: retain)
                return PublishResource.accepted(try gate.publish(event, by: principal).delivery)
            }
        }
    }
}
