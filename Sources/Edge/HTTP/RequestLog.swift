import Access
package import HTTPServer
package import Logging
import Logs
import ProblemDetails
import Synchronization

/// Logs single requests with their operation, result and duration. It logs no targets, header fields or bodies, because
/// they may contain secrets.
package struct RequestLog: Sendable {
    /// The selection of requests that are logged.
    package enum Selection: Int, CaseIterable, Sendable {
        case none
        /// Slow requests, and those with status 500 and above.
        case slow
        /// Also those with status 400 and above.
        case errors
        /// Also those that succeed, and the ends of WebSockets.
        case all

        /// Returns whether a result is logged, independent of its duration.
        func includes(status: Int) -> Bool {
            switch self {
            case .none: false
            case .slow: status >= 500
            case .errors: status >= 400
            case .all: true
            }
        }
    }

    package struct Settings: Sendable, Equatable {
        package var selection = Selection.slow
        /// The minimum duration of a slow request, in milliseconds.
        package var slowTime = 1000

        package init() {}
    }

    /// Routes that wait for agents for as long as the client requests.
    private static let waitingRoutes: Set = ["/v1/discover", "/v1/query", "/v1/update", "/v1/call/{operation}"]
    /// Routes whose status 503 is a regular answer and not a failure.
    private static let probeRoutes: Set = ["/healthz", "/readyz"]

    /// The selection of requests that are logged, and the loggers for them.
    private final class Lines: Sendable {
        /// An index of ``Selection``.
        private let index = Atomic(Selection.none.rawValue)
        private let counting: Logger
        private let complete: Logger

        init(_ logger: Logger) {
            counting = logger.labelled(.requests)
            // With `all`, equal requests are also written rather than counted.
            complete = counting.writingAll()
        }

        var selection: Selection {
            get { Selection(rawValue: index.load(ordering: .relaxed)) ?? .none }
            set { index.store(newValue.rawValue, ordering: .relaxed) }
        }

        var logger: Logger { selection == .all ? complete : counting }
    }

    /// Reports the requests of HTTP servers to this log.
    package let reports: RequestReports
    private let lines: Lines

    package init(_ settings: Settings, logger: Logger) {
        let lines = Lines(logger)
        self.lines = lines
        reports = RequestReports { Self.write($0, to: lines) }
        apply(settings)
    }

    /// Applies settings to all requests that end from now on.
    package func apply(_ settings: Settings) {
        lines.selection = settings.selection
        let selection: RequestReports.Selection =
            switch settings.selection {
            case .none: .none
            case .slow: .status(500)
            case .errors: .status(400)
            case .all: .all
            }
        reports.select(selection, slowTime: settings.slowTime)
    }

    private static func write(_ request: borrowing EndedRequest, to lines: Lines) {
        let selection = lines.selection
        let route = request.pathTemplate ?? ""
        let status = request.status
        let isSlow = request.isSlow && !waitingRoutes.contains(route)
        guard selection.includes(status: status) || isSlow, selection == .all || !probeRoutes.contains(route) else {
            return
        }
        var fields = fields(request.identity, route, nanoseconds: request.nanoseconds)
        let method = request.method?.rawValue ?? "other"
        fields["method"] = .string(method)
        fields["status"] = .stringConvertible(status)
        fields["bytes"] = .stringConvertible(request.responseBytes)
        if isSlow { fields["slow"] = .stringConvertible(true) }
        if request.isStream { fields["stream"] = .stringConvertible(true) }
        switch request.context {
        case let principal as Principal: add(principal, address: principal.address, to: &fields)
        case let client as UnknownClient: add(nil, address: client.address, to: &fields)
        default: add(nil, address: request.peer, to: &fields)
        }
        log(level(status, isSlow: isSlow), method, route, status, fields, to: lines)
    }

    private static func log(
        _ level: Logger.Level,
        _ method: String,
        _ route: String,
        _ status: Int,
        _ fields: Logger.Metadata,
        to lines: Lines
    ) {
        let path = route.isEmpty ? "-" : route
        lines.logger.log(level: level, "request \(method) \(path) \(status)", metadata: fields)
    }

    // MARK: - WebSockets

    /// Whether every connection gets an id.
    var identifiesAll: Bool { lines.selection == .all }

    /// Logs a handshake that was refused.
    func refused(_ record: SocketRecord, id: String, _ problem: Problem) {
        guard lines.selection.includes(status: problem.status) else { return }
        var fields = Self.fields(record.identity, record.route, nanoseconds: record.nanoseconds)
        fields["id"] = .string(id)
        fields["method"] = "GET"
        fields["status"] = .stringConvertible(problem.status)
        Self.add(nil, address: record.address, to: &fields)
        Self.log(Self.level(problem.status), "GET", record.route, problem.status, fields, to: lines)
    }

    /// Logs a frame that is answered with `error`.
    ///
    /// - Parameters:
    ///   - op: nil if the frame could not be read.
    ///   - id: the frame's id.
    func failed(_ op: ClientFrame.Op?, id: String?, _ problem: Problem, _ record: SocketRecord, _ principal: Principal?)
    {
        guard lines.selection.includes(status: problem.status) else { return }
        var fields = Self.fields(record.identity, record.route, nanoseconds: nil)
        fields["op"] = .string(op?.rawValue ?? "")
        if let id { fields["frame"] = .string(id) }
        fields["status"] = .stringConvertible(problem.status)
        Self.add(principal, address: record.address, to: &fields)
        let name = op?.rawValue ?? "-"
        lines.logger.log(level: Self.level(problem.status), "frame \(name) \(problem.status)", metadata: fields)
    }

    /// Logs the end of a WebSocket, if all requests are logged, or if the gateway has given the client up.
    func closed(_ record: SocketRecord, code: UInt16, sentBytes: Int, _ principal: Principal?) {
        let isGivenUp = code == CloseCode.unresponsive.rawValue
        guard lines.selection == .all || isGivenUp && lines.selection != .none else { return }
        var fields = Self.fields(record.identity, record.route, nanoseconds: record.nanoseconds)
        fields["code"] = .stringConvertible(Int(code))
        fields["bytes"] = .stringConvertible(sentBytes)
        fields["received"] = .stringConvertible(record.received)
        Self.add(principal, address: record.address, to: &fields)
        lines.logger.log(level: isGivenUp ? .notice : .info, "WebSocket \(record.route) \(code)", metadata: fields)
    }

    // MARK: - Fields

    /// - Parameter nanoseconds: the duration; nil if it is not known.
    private static func fields(_ identity: RequestIdentity?, _ route: String, nanoseconds: Int?) -> Logger.Metadata {
        var fields: Logger.Metadata = ["route": .string(route)]
        // With one decimal.
        if let nanoseconds { fields["ms"] = .stringConvertible(Double(nanoseconds / 100_000) / 10) }
        if let id = identity?.id { fields["id"] = .string(id) }
        if let trace = identity?.trace { fields["trace"] = .string(trace) }
        return fields
    }

    private static func add(_ principal: Principal?, address: String, to fields: inout Logger.Metadata) {
        fields["address"] = .string(address)
        if let name = principal?.name { fields["principal"] = .string(name) }
        if let issuer = principal?.issuer { fields["issuer"] = .string(issuer) }
    }

    private static func level(_ status: Int, isSlow: Bool = false) -> Logger.Level {
        if status >= 500 { .warning } else if isSlow { .notice } else { .info }
    }
}

/// A client without a principal, as the context of its request.
final class UnknownClient: Sendable {
    let address: String

    init(_ address: String) { self.address = address }
}
