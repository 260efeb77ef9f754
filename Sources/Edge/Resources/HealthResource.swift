package import Access
import Base
package import Coaty
package import Gate
import HTTPServer

/// `GET /healthz` and `GET /readyz`: whether the gateway runs, and whether it is online and ready for clients.
///
/// Online is defined by ``CommunicationManager/isOnline``.
package struct HealthResource: Sendable {
    let manager: CommunicationManager
    let access: AccessControl
    let drain: Drain
    let pause: PauseState

    package init(manager: CommunicationManager, access: AccessControl, drain: Drain, pause: PauseState) {
        self.manager = manager
        self.access = access
        self.drain = drain
        self.pause = pause
    }

    static let healthPath = "/healthz"
    static let readinessPath = "/readyz"

    private static let headers = [(name: "Content-Type", value: "application/json"), ("Cache-Control", "no-store")]
    private static let healthy = HTTPResponse(status: 200, headers: headers, body: #"{"status":"ok"}"#)
    private static let ready = HTTPResponse(status: 200, headers: headers, body: #"{"status":"ready"}"#)

    func register(in router: inout GatewayRouter) {
        router.onPublic(.get, Self.healthPath) { _ in .response(Self.healthy) }
        router.onPublic(.get, Self.readinessPath) { _ in
            if drain.isDraining { return .response(Problems.shuttingDown.response()) }
            if pause.isPaused { return .response(Problems.paused.response()) }
            return .response(manager.isOnline ? Self.ready : notReady)
        }
    }

    /// All clients may call it. The reason can contain the name of the broker, so it is included only if access is
    /// open.
    private var notReady: HTTPResponse {
        var problem = Problems.of(CommunicationError.offline)
        guard access.policy.isOpen else { return problem.response() }
        if let error = manager.connectionError {
            problem.detail = "The gateway is not connected to its broker: \(error)"
            problem.members = [("reason", .string(error.reason.rawValue))]
        } else if manager.isConnected {
            problem.detail = "The broker has not yet answered all subscriptions of the gateway."
        }
        return problem.response()
    }
}
