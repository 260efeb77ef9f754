import Coaty
import HTTPServer

/// `POST /v1/raw/{topic}`: bytes on a topic outside of Coaty's own.
struct RawResource: Sendable {
    let manager: CommunicationManager

    func register(in router: inout Router) {
        router.on(.post, "/v1/raw/{topic}") { request in
            do {
                let retain = try QueryParameters(request).boolean("retain") ?? false
                guard
                    let event = try? RawEvent.with(
                        topic: request.parameters["topic"] ?? "",
                        payload: request.body,
                        shouldRetain: retain
                    )
                else { throw InvalidParameter(name: "topic", reason: PublicationRequest.topic) }
                return .response(PublishResource.accepted(try manager.publishRaw(event)))
            } catch {
                return .response(Problems.response(error))
            }
        }
    }
}
