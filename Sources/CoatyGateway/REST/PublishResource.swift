import Coaty
import HTTPServer

/// `POST /v1/advertise`, `/v1/deadvertise`, `/v1/channel/{channelId}`: publish one-way events.
///
/// They run to completion on the thread that read the request. The bytes of payloads are published unchanged.
struct PublishResource: Sendable {
    let gate: Gate

    private static let sent = accepted(#"{"deferred":false}"#)
    private static let deferred = accepted(#"{"deferred":true}"#)

    static func accepted(_ delivery: Delivery) -> HTTPResponse { delivery == .sent ? sent : deferred }

    private static func accepted(_ body: String) -> HTTPResponse {
        HTTPResponse(status: 202, headers: [("Content-Type", "application/json")], body: body)
    }

    func register(in router: inout GatewayRouter) {
        router.onPost("/v1/advertise", publishingBy: gate) { request, principal, _ in
            answer(request, principal) { payload in .advertise(try PublicationRequest.advertisement(payload)) }
        }
        router.onPost("/v1/deadvertise", publishingBy: gate) { request, principal, _ in
            answer(request, principal) { payload in
                .deadvertise(try PublicationRequest.deadvertisement(payload, gate.limits))
            }
        }
        router.onPost("/v1/channel/{channelId}", publishingBy: gate) { request, principal, _ in
            let channelId = request.parameters["channelId"] ?? ""
            guard WireName.isPublishable(channelId) else {
                return .response(Problems.invalidParameter("channelId", InvalidParameter.level).response())
            }
            return answer(request, principal) { payload in
                .channel(try PublicationRequest.channelEvent(channelId, payload))
            }
        }
    }

    private func answer(
        _ request: borrowing HTTPRequest,
        _ principal: Principal,
        _ read: (Payload) throws -> PublicationRequest
    ) -> HTTPReply {
        guard request.hasContentType("application/json") else { return .response(Problems.unsupportedMediaType) }
        let body = request.body
        return .performing {
            Self.accepted(try gate.perform(Publish(publication: read(Payload(body))), by: principal))
        }
    }
}
