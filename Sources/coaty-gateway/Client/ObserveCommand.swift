import ArgumentParser
import Coaty
import Foundation

struct ObserveCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "observe",
        abstract: "Observe events, and print each as a line of JSON.",
        discussion: """
            Each line is a frame of docs/websocket.md. If the connection ends, the command connects again, and resumes after the \
            last frame; {"op":"gap",…} means that events may be missing. States, such as those of routing, are printed again.

            EXAMPLES:
              coaty-gateway observe advertise objectType=com.example.Job
              coaty-gateway observe channel channelId=greenhouse --count 10
              coaty-gateway observe traffic --since 3mnifysbw2zdq-17

            \(Failure.exitCodes)
            """
    )

    @Argument(
        help:
            "What to observe: an event in the path of GET /v1/sse/{event}, such as advertise, channel, raw or traffic."
    )
    var event: String

    @Argument(help: "Parameters of the subscription as name=value, such as coreType=Task, filter=… or fields=name.")
    var parameters: [String] = []

    @Option(help: "Cursor of the event to resume after.")
    var since: String?

    @Option(help: "Number of events after which the command ends (no limit).")
    var count: Int?

    @OptionGroup(title: "Gateway") var gateway: GatewayOptions

    func validate() throws {
        for parameter in parameters where !parameter.contains("=") {
            throw ValidationError("\(parameter) must be name=value")
        }
        if let count, count < 1 { throw ValidationError("--count must be at least 1") }
    }

    func run() throws {
        try Failure.reported {
            let query = parameters.map { parameter in
                let parts = parameter.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                return (name: String(parts[0]), value: parts.last.map(String.init))
            }
            var request = gateway.request("/v1/sse/\(GatewayOptions.encoded(event))", query: query)
            request.timeout = nil
            let headers = request.headers
            let stream = FrameStream(cursor: since, remaining: count)
            var delay = Self.minimumDelay
            while true {
                request.headers = headers + (stream.cursor.map { ["Last-Event-ID: \($0)"] } ?? [])
                let events = stream.events
                let reason = try Self.observe(request, stream)
                guard !stream.isEnded else { return }
                delay = stream.events > events ? Self.minimumDelay : min(delay * 2, Self.maximumDelay)
                let pause = max(delay, stream.takeRetryDelay())
                Output.report("\(reason); connecting again in \(pause)")
                Thread.sleep(forTimeInterval: pause / .seconds(1))
            }
        }
    }

    /// Reads the stream until the connection ends.
    ///
    /// - Returns: the reason why it has ended.
    /// - Throws: a failure that another connection would have too.
    private static func observe(_ request: HTTPRequest, _ stream: FrameStream) throws(Failure) -> String {
        do throws(Failure) {
            let answer = try request.lines(of: "text/event-stream", stream.receive)
            if let problem = stream.problem { throw .refused(problem) }
            guard answer.status != 200 || !answer.body.isEmpty else { return "the gateway has closed the stream" }
            // 429 and 5xx are temporary.
            guard stream.hasBegun, answer.status == 429 || answer.status >= 500 else { throw answer.failure }
            return "\(answer.failure)"
        } catch {
            guard case .unreachable(let reason) = error, stream.hasBegun else { throw error }
            return reason
        }
    }

    private static let minimumDelay = Duration.milliseconds(250)
    private static let maximumDelay = Duration.seconds(15)
}

/// The frames of an event stream (WHATWG HTML, Server-sent events).
private final class FrameStream {
    /// The cursor of the last printed event.
    private(set) var cursor: String?
    /// Whether the gateway has accepted the subscription once.
    private(set) var hasBegun = false
    /// Whether all wanted events were printed.
    private(set) var isEnded = false
    /// The problem with which the gateway has ended the subscription.
    private(set) var problem: String?
    /// Number of events.
    private(set) var events = 0
    /// The time to wait before the next connection, as the gateway asks for.
    private var retryDelay = Duration.zero
    private var remaining: Int?

    init(cursor: String?, remaining: Int?) {
        self.cursor = cursor
        self.remaining = remaining
    }

    /// Returns the time that the gateway has asked to wait before the next connection.
    func takeRetryDelay() -> Duration {
        defer { retryDelay = .zero }
        return retryDelay
    }

    /// Handles a line; returns whether to continue. The gateway writes the data of each frame on one line.
    func receive(_ line: ArraySlice<UInt8>) -> Bool {
        hasBegun = true
        guard line.starts(with: "data: ".utf8), let frame = try? JSONDocument(Array(line.dropFirst(6))).root else {
            return true
        }
        if let next = frame["cursor"]?.string { cursor = next }
        switch frame["op"]?.string {
        case "ok": return true
        case "error":
            problem = frame.problem ?? "unknown error"
            return false
        case "event":
            events += 1
            if let left = remaining {
                remaining = left - 1
                isEnded = left == 1
            }
        default:
            if let milliseconds = frame["retryAfter"]?.number { retryDelay = .milliseconds(min(milliseconds, 600_000)) }
        }
        Output.line(frame.bytes)
        return !isEnded
    }
}
