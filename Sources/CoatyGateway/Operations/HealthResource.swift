import Coaty
import HTTPServer

/// `GET /healthz` and `GET /readyz`: whether the gateway runs, and whether it is online.
///
/// Online is defined by ``CommunicationManager/isOnline``.
struct HealthResource: Sendable {
    let manager: CommunicationManager

    private static let headers = [(name: "Content-Type", value: "application/json"), ("Cache-Control", "no-store")]
    private static let healthy = HTTPResponse(status: 200, headers: headers, body: #"{"status":"ok"}"#)
    private static let ready = HTTPResponse(status: 200, headers: headers, body: #"{"status":"ready"}"#)

    func register(in router: inout Router) {
        router.on(.get, "/healthz") { _ in .response(Self.healthy) }
        router.on(.get, "/readyz") { _ in .response(manager.isOnline ? Self.ready : Problems.notReady(manager)) }
    }
}
