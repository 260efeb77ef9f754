import Coaty
import HTTPServer

/// `POST /v1/advertise`, `/v1/deadvertise`, `/v1/channel/{channelId}`: publish one-way events.
///
/// They run to completion on the thread that read the request. The bytes of payloads are published unchanged.
struct PublishResource: Sendable {
    let manager: CommunicationManager

    private static let sent = accepted(#"{"deferred":false}"#)
    private static let deferred = accepted(#"{"deferred":true}"#)

    static func accepted(_ delivery: Delivery) -> HTTPResponse { delivery == .sent ? sent : deferred }

    private static func accepted(_ body: String) -> HTTPResponse {
        HTTPResponse(status: 202, headers: [("Content-Type", "application/json")], body: body)
    }

    func register(in router: inout Router) {
        router.on(.post, "/v1/advertise") { request in
            answer(request) { payload in try manager.publishAdvertise(AdvertiseEvent(payload: payload)) }
        }
        router.on(.post, "/v1/deadvertise") { request in
            answer(request) { payload in try manager.publishDeadvertise(DeadvertiseEvent(payload: payload)) }
        }
        router.on(.post, "/v1/channel/{channelId}") { request in
            let channelId = request.parameters["channelId"] ?? ""
            guard WireName.isPublishable(channelId) else {
                return .response(Problems.invalidParameter("channelId", InvalidParameter.level).response())
            }
            return answer(request) { payload in
                try manager.publishChannel(ChannelEvent(channelId: channelId, payload: payload))
            }
        }
    }

    private func answer(
        _ request: borrowing HTTPRequest,
        _ publish: (Payload) throws -> Delivery
    ) -> HTTPReply {
        guard request.hasContentType("application/json") else { return .response(Problems.unsupportedMediaType) }
        do {
            return .response(Self.accepted(try publish(Payload(request.body))))
        } catch {
            return .response(Problems.response(error))
        }
    }
}
