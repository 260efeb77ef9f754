import Access
import Base
import Coaty
import Gate
import HTTPServer
import Network

/// `POST /v1/advertise`, `/v1/deadvertise`, `/v1/channel/{channelId}`: publish one-way events.
///
/// They run to completion on the thread that read the request. The bytes of payloads are published unchanged, except that
/// `lifetime` is removed.
struct PublishResource: Sendable {
    let gate: Gate

    private static let sent = accepted(PublishOutcome(delivery: .sent).members)
    private static let deferred = accepted(PublishOutcome(delivery: .deferred).members)

    static func accepted(_ delivery: Delivery) -> HTTPResponse { delivery == .sent ? sent : deferred }

    private static func accepted(_ outcome: PublishOutcome) -> HTTPResponse {
        outcome.hasRoom ? accepted(outcome.delivery) : accepted(outcome.members)
    }

    private static func accepted(_ members: String) -> HTTPResponse {
        HTTPResponse(status: 202, headers: [("Content-Type", "application/json")], body: "{\(members)}")
    }

    func register(in router: inout GatewayRouter) {
        router.onPost("/v1/advertise", publishingBy: gate) { request, principal, _ in
            answer(request, principal) { payload in
                let lifetime = try payload.json["lifetime"].map { try ObjectLifetime($0, of: nil, gate.limits) }
                let event = lifetime == nil ? payload : try payload.without("lifetime")
                return (try AdvertiseEvent.publication(event, hasLifetime: true), lifetime)
            }
        }
        router.onPost("/v1/deadvertise", publishingBy: gate) { request, principal, _ in
            answer(request, principal) { payload in
                (try DeadvertiseEvent.publication(payload, gate.limits), nil)
            }
        }
        router.onPost("/v1/channel/{channelId}", publishingBy: gate) { request, principal, _ in
            let channelId = request.parameters["channelId"] ?? ""
            guard WireName.isPublishable(channelId) else {
                return .response(Problems.invalidParameter("channelId", InvalidParameter.level).response())
            }
            return answer(request, principal) { payload in
                (try ChannelEvent.publication(payload, on: channelId), nil)
            }
        }
    }

    private func answer<Publication: ClientPublication>(
        _ request: borrowing HTTPRequest,
        _ principal: Principal,
        _ read: (Payload) throws -> (Publication, ObjectLifetime?)
    ) -> HTTPReply {
        guard request.hasContentType("application/json") else { return .response(Problems.unsupportedMediaType) }
        let body = request.body
        return .performing {
            let (publication, lifetime) = try read(Payload(body))
            return Self.accepted(try gate.publish(publication, lifetime, by: principal))
        }
    }
}

extension Payload {
    /// Returns the object without its members of a name.
    fileprivate func without(_ name: String) throws(PayloadError) -> Payload {
        var text: [UInt8] = []
        for (key, value) in json.members where key.string != name {
            text.append(UInt8(ascii: text.isEmpty ? "{" : ","))
            text += key.bytes
            text.append(UInt8(ascii: ":"))
            text += value.bytes
        }
        if text.isEmpty { text.append(UInt8(ascii: "{")) }
        text.append(UInt8(ascii: "}"))
        return try Payload(text)
    }
}
