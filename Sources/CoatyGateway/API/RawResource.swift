import Coaty
import CoatyMQTT
import HTTPServer

/// `POST /v1/raw/{topic}`: bytes on a topic outside of Coaty's own.
struct RawResource: Sendable {
    let manager: CommunicationManager

    func register(in router: inout Router) {
        router.on(.post, "/v1/raw/{topic}") { request in
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
