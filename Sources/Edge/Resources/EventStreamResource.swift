import Base
import Feeds
import Gate
import HTTPServer

/// `GET /v1/sse/{event}`: one subscription as Server-Sent Events (HTML Living Standard, 9.2).
struct EventStreamResource: Sendable {
    static let path = "/v1/sse/{event}"

    let services: ClientServices
    let heartbeat: Heartbeat

    private static let headers = [
        (name: "Content-Type", value: "text/event-stream"), ("Cache-Control", "no-store"),
        // Without it, nginx and similar proxies buffer the stream.
        ("X-Accel-Buffering", "no"),
    ]

    func register(in router: inout GatewayRouter) {
        router.on(.get, Self.path, query: .stream) { request, principal in
            do {
                let limits = services.accounts.limits
                var items = QueryParameters(request, limits: limits).items
                // A reconnecting client sends its latest cursor; `since` in its address is older.
                if let last = request.header("Last-Event-ID"), !last.isEmpty {
                    items.removeAll { $0.name == "since" }
                    items.append(("since", last))
                }
                let parameters = QueryParameters(items: items, limits: limits)
                let event = request.parameters["event"] ?? ""
                guard let observation = try Observation(event: event, parameters) else {
                    throw Problems.unknownEvent(event)
                }
                let options = try SubscriptionOptions(parameters, of: observation)
                guard options.encoding == .base64 else {
                    throw parameters.invalid("encoding", "must be base64: an event stream is text")
                }
                let client = GateClient(services.gate, principal)
                let operation = Observe(observation: observation, footprint: options.footprint)
                let activity = try services.gate.open(operation, for: client)
                return .stream(status: 200, headers: Self.headers) { stream in
                    let subscription = SingleStream(
                        EventStreamTransport(stream: stream),
                        .sse,
                        client,
                        principal,
                        services
                    )
                    stream.onRoom { subscription.outbound.pump() }
                    let stopHeartbeat = heartbeat.add(stream)
                    stream.onClose {
                        stopHeartbeat()
                        subscription.close()
                    }
                    subscription.start(activity, options)
                }
            } catch {
                return .response(Problems.of(error).response())
            }
        }
    }
}
