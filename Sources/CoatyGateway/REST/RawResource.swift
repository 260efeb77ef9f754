import Coaty
import CoatyMQTT
import HTTPServer

/// `POST /v1/raw/{topic}`: publishes octets on a topic that is not one of Coaty's.
struct RawResource: Sendable {
    let manager: CommunicationManager

    private static let unsupportedMediaType = Problems.unsupportedMediaType("application/octet-stream")

    func register(in router: inout Router) {
        router.on(.post, "/v1/raw/{topic}") { request in
            // Without this check, any web page could publish: this media type makes browsers send a preflight request.
            guard request.hasContentType("application/octet-stream") else {
                return .response(Self.unsupportedMediaType)
            }
            do {
                let retain = try QueryParameters(request).boolean("retain") ?? false
                let topic = request.parameters["topic"] ?? ""
                guard MQTTTopicRules.isPublishable(topic) else {
                    throw InvalidParameter(name: "topic", reason: PublicationRequest.topic)
                }
                let event = try RawEvent.with(topic: topic, payload: request.body, shouldRetain: retain)
                return .response(PublishResource.accepted(try manager.publishRaw(event)))
            } catch {
                return .response(Problems.response(error))
            }
        }
    }
}
