import Gate
import HTTPServer
import Measurement

/// `GET /metrics`: the metrics for Prometheus.
struct MetricsResource: Sendable {
    static let path = "/metrics"

    let gate: Gate

    func register(in router: inout GatewayRouter) {
        // Scrape configurations may add parameters for all their targets.
        router.on(.get, Self.path, query: .any) { [gate] _, principal in
            // Not on the thread of the request, because many locks are taken.
            .awaiting { Self.response(try gate.perform(ReadMetrics(), by: principal)) }
        }
    }

    /// Registers the metrics without access control, for the plain port, which only this machine can reach.
    static func registerPublic(_ metrics: Metrics, in router: inout GatewayRouter) {
        router.onPublic(.get, path) { _ in .awaiting { response(metrics.text) } }
    }

    private static func response(_ text: MetricsText) -> HTTPResponse {
        HTTPResponse(
            status: 200,
            headers: [("Content-Type", MetricsText.mediaType), ("Cache-Control", "no-store")],
            body: text.bytes
        )
    }
}
