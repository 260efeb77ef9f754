import Base
import Coordination
import HTTPServer

/// The REST API. Completes pending requests before it stops.
struct RESTService: Component {
    /// Maximum time for pending requests to complete with the default stop timeout, including the drain delay: the
    /// drain delay does not prolong the stop.
    static let drainTimeout = Duration.seconds(2)
    /// Maximum time for answers that have begun to be sent.
    static let sendTimeout = Duration.milliseconds(500)
    private static let pollInterval = Duration.milliseconds(20)

    let server: HTTPServer
    /// Serves the gateway's health, independent of the load on the other server.
    let health: HTTPServer
    /// Maximum time for pending requests to complete.
    let drainTimeout: Duration
    /// Asks the clients of event streams to reconnect.
    let announceStop: @Sendable () -> Void

    func start() async throws {
        try server.start()
        try health.start()
    }

    func stop() async {
        server.drain()
        health.drain()
        let deadline = ContinuousClock.now + drainTimeout
        while server.statistics.pending > 0, .now < deadline { try? await Task.sleep(for: Self.pollInterval) }
        announceStop()
        await onBlockingThread {
            server.stop()
            health.stop()
        }
    }
}
