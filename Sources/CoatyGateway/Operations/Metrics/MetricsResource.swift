import HTTPServer

/// `GET /metrics`: the metrics for Prometheus.
struct MetricsResource: Sendable {
    static let path = "/metrics"

    let gate: Gate

    func register(in router: inout GatewayRouter) {
        router.on(.get, Self.path) { [gate] _, principal in
            // Not on the thread of the request: many locks are taken.
            .awaiting {
                let text = try gate.perform(ReadMetrics(), by: principal)
                return HTTPResponse(
                    status: 200,
                    headers: [("Content-Type", MetricsText.mediaType), ("Cache-Control", "no-store")],
                    body: text.bytes
                )
            }
        }
    }
}
