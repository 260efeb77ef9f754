import Glibc
public import Measurement
import Synchronization

extension HTTPServer {
    /// The usage of a route since the start.
    public struct RouteStatistics: Sendable {
        /// The path of the route as registered; empty for requests without a route.
        public let pathTemplate: String
        /// Nil for a method that is not supported in routes.
        public let method: HTTPMethod?
        /// The statuses that occurred, with their counts. 0 stands for requests whose client disconnected before an
        /// answer, nil for rare statuses.
        public let responses: [(status: Int?, count: Int)]
        /// The times from the head of a request to the end of its response, or to the head of a stream.
        public let durations: DurationHistogram.Snapshot
    }
}

/// Counts requests by route, method and status, and measures their durations. All memory is allocated at the start.
final class RequestTimes: Sendable {
    /// The statuses that are counted separately; all others count as ``other``.
    private static let statuses = [
        0, 200, 201, 202, 204, 304, 400, 401, 403, 404, 405, 406, 409, 412, 413, 415, 421, 422, 429, 431, 500, 501, 503,
        504,
        other,
    ]
    private static let other = 599
    /// The index in ``statuses`` by status.
    private static let slots: [UInt8] = (0..<600).map { UInt8(statuses.firstIndex(of: $0) ?? statuses.count - 1) }

    private final class Cell: Sendable {
        let responses = InlineArray<25, Atomic<Int>> { _ in Atomic(0) }
        let durations = DurationHistogram()
    }

    private let templates: [String]
    /// By endpoint, with requests without one last, then by method, with other methods last.
    private let cells: [Cell]

    private static let methods = HTTPMethod.allCases.count + 1

    init(templates: [String]) {
        self.templates = templates
        cells = (0..<(templates.count + 1) * Self.methods).map { _ in Cell() }
    }

    /// Returns the current time in nanoseconds, relative to a time before the start.
    static func now() -> Int {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return time.tv_sec * 1_000_000_000 + time.tv_nsec
    }

    func record(endpoint: Int?, _ method: HTTPMethod?, status: Int, nanoseconds: Int) {
        let cell = cells[(endpoint ?? templates.count) * Self.methods + (method?.index ?? Self.methods - 1)]
        cell.responses[Int(Self.slots[min(status, Self.other)])].add(1, ordering: .relaxed)
        cell.durations.record(nanoseconds: nanoseconds)
    }

    /// The current counts, without unused routes.
    var statistics: [HTTPServer.RouteStatistics] {
        cells.indices.compactMap { index in
            let cell = cells[index]
            let counts = Self.statuses.indices.map { cell.responses[$0].load(ordering: .relaxed) }
            guard counts.contains(where: { $0 > 0 }) else { return nil }
            let (endpoint, method) = index.quotientAndRemainder(dividingBy: Self.methods)
            return HTTPServer.RouteStatistics(
                pathTemplate: endpoint < templates.count ? templates[endpoint] : "",
                method: method < Self.methods - 1 ? HTTPMethod.allCases[method] : nil,
                responses: zip(Self.statuses, counts).filter { $0.1 > 0 }.map {
                    (status: $0 == Self.other ? nil : $0, count: $1)
                },
                durations: cell.durations.snapshot
            )
        }
    }
}

extension HTTPMethod {
    /// The position in `allCases`.
    fileprivate var index: Int {
        switch self {
        case .get: 0
        case .head: 1
        case .post: 2
        case .put: 3
        case .patch: 4
        case .delete: 5
        case .options: 6
        }
    }
}
