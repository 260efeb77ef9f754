import Access
import Base
import Coaty
import HTTPServer

/// `GET /v1/access`, `POST /v1/access/check` and `POST /v1/tickets`: the client's identity and permissions, and tickets
/// for URLs.
///
/// These are not operations on the network: a client may always read its own permissions.
struct AccessResource: Sendable {
    let authenticator: Authenticator

    func register(in router: inout GatewayRouter) {
        router.on(.get, "/v1/access") { [authenticator] _, principal in
            .performing {
                .json(try authenticator.access.permissions(of: principal).json(of: principal))
            }
        }
        router.on(.post, "/v1/access/check") { [authenticator] request, principal in
            guard request.hasContentType("application/json") else { return .response(Problems.unsupportedMediaType) }
            let body = request.body
            return .performing {
                let question = try AccessQuestion(Payload(body).json)
                let permissions = try authenticator.access.permissions(of: principal)
                return .json(AccessExplanation(permissions, question.request).json)
            }
        }
        router.on(.post, "/v1/tickets") { [authenticator] request, principal in
            // Also without a body: browsers send a preflight request before they send this media type to another
            // origin.
            guard request.hasContentType("application/json") else { return .response(Problems.unsupportedMediaType) }
            let origin = request.header("Origin").flatMap { WebOrigin($0) }
            let host = request.header("Host")
            return .performing {
                // Only checks that the token is valid.
                _ = try authenticator.access.permissions(of: principal)
                let isOwn = host.flatMap { host in origin?.isSame(asHost: host) } ?? true
                let (ticket, validity) = authenticator.ticket(for: principal, origin: isOwn ? nil : origin)
                let seconds = Int(validity / .seconds(1))
                return .json(Array(#"{"ticket":"\#(ticket)","validFor":\#(seconds * 1000)}"#.utf8))
            }
        }
    }
}
