package import HTTPServer
import Measurement
import Synchronization

/// The usage figures of the REST API. They are available once the server is set.
package final class HTTPUse: Sendable {
    struct Figures: Sendable {
        var connections = 0
        var streams = 0
        var pending = 0
        /// Requests that were answered completely, or with the head of a stream.
        var answered = 0
        /// Answered requests with status 500 or higher.
        var failed = 0
        /// The durations until the response, without requests that wait for agents.
        var durations = DurationHistogram().snapshot
    }

    private struct Reference {
        weak var server: HTTPServer?
    }

    /// Weak, because the routes of the server reference this object.
    private let reference = Mutex(Reference())

    package init() {}

    package func observe(_ server: HTTPServer) { reference.withLock { $0.server = server } }

    var figures: Figures {
        guard let server = reference.withLock(\.server) else { return Figures() }
        let statistics = server.statistics
        var figures = Figures()
        figures.connections = statistics.connections
        figures.streams = statistics.streams
        figures.pending = statistics.pending
        for route in server.routeStatistics {
            for (status, count) in route.responses where status != 0 {
                figures.answered += count
                // Nil stands for a rare status, which is not a failure of the gateway.
                // 504 says that other agents have not responded.
                if let status, status >= 500, status != 504 { figures.failed += count }
            }
            if !TwoWayResource.paths.contains(route.pathTemplate) {
                figures.durations = figures.durations + route.durations
            }
        }
        return figures
    }
}
