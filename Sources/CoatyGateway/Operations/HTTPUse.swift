import HTTPServer
import Synchronization

/// How the REST API is used. It has numbers once the server is there.
final class HTTPUse: Sendable {
    struct Figures: Sendable {
        var connections = 0
        var streams = 0
        var pending = 0
        /// Requests that have got their answer, or the head of a stream.
        var answered = 0
        /// Those whose status is 500 or higher.
        var failed = 0
        /// The durations until the response, except of requests that wait for agents.
        var durations = DurationHistogram().snapshot
    }

    private struct Reference {
        weak var server: HTTPServer?
    }

    /// Weak: the routes of the server have this.
    private let reference = Mutex(Reference())

    func observe(_ server: HTTPServer) { reference.withLock { $0.server = server } }

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
                // Nil is a rare status, which is not a failure of the gateway.
                if let status, status >= 500 { figures.failed += count }
            }
            if !TwoWayResource.paths.contains(route.pathTemplate) {
                figures.durations = figures.durations + route.durations
            }
        }
        return figures
    }
}
