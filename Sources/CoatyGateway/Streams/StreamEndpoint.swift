import HTTPServer
import WebSocketServer

/// `GET /v1/ws/{event}`: one subscription a connection.
struct StreamEndpoint: WebSocketHandler {
    static let path = "/v1/ws"
    /// The events that can be observed.
    static let events = ["advertise", "deadvertise", "channel", "iovalue", "iostate", "routing"]

    let hub: StreamHub

    func handshake(_ request: borrowing WebSocketHandshake) -> WebSocketDecision {
        let path = request.path
        do throws(InvalidParameter) {
            guard path.hasPrefix(Self.path + "/"),
                let wanted = try StreamRequest(
                    event: String(path.dropFirst(Self.path.count + 1)),
                    queryItems: request.queryItems
                )
            else { return refuse(Problems.notFound(path)) }
            if let problem = hub.refusal(of: wanted) { return refuse(problem) }
            return .accept { [hub] connection in hub.add(connection, to: wanted) }
        } catch {
            return refuse(error.problem)
        }
    }

    /// Requests for a stream that are no handshake, on a connection that carries REST.
    static func registerPlain(in router: inout Router) {
        let upgradeRequired = Problem(
            type: Problems.typePrefix + "upgrade-required",
            title: "This resource is a WebSocket",
            status: 426,
            detail: "Open it with a WebSocket handshake, on a connection of its own."
        ).response(headers: [("Upgrade", "websocket")])
        router.on(.get, path + "/{event}") { _ in .response(upgradeRequired) }
    }

    func received(_ message: WebSocketMessage, on connection: WebSocketConnection) {
        connection.close(code: 1008, reason: "this stream takes no messages")
    }

    func closed(_ connection: WebSocketConnection, code: UInt16) {
        hub.remove(connection)
    }

    private func refuse(_ problem: Problem) -> WebSocketDecision {
        .refuse(
            status: problem.status,
            headers: [("Content-Type", "application/problem+json")],
            body: problem.body
        )
    }
}
