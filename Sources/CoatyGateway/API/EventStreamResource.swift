import HTTPServer
import Synchronization

/// `GET /v1/sse/{event}`: one subscription as Server-Sent Events (HTML Living Standard, 9.2).
struct EventStreamResource: Sendable {
    /// How often a stream shows that it is alive, and finds out whether its client still is.
    static let heartbeat = Duration.seconds(15)

    let hub: StreamHub
    let heart: StreamHeart

    private static let headers = [
        (name: "Content-Type", value: "text/event-stream"), ("Cache-Control", "no-store"),
        // Proxies of the nginx family hold a stream back otherwise.
        ("X-Accel-Buffering", "no"),
    ]

    func register(in router: inout Router) {
        router.on(.get, "/v1/sse/{event}") { request in
            do {
                var items = request.queryItems.map { (name: $0.name, value: $0.value) }
                // A client that reconnects by itself knows better where it was than the address that it was opened with.
                if let last = request.header("Last-Event-ID"), !last.isEmpty {
                    items.removeAll { $0.name == "since" }
                    items.append(("since", last))
                }
                let parameters = QueryParameters(items: items)
                let event = request.parameters["event"] ?? ""
                guard let wanted = try StreamRequest(event: event, parameters) else {
                    return .response(Problems.notFound(request.path).response())
                }
                let options = try StreamOptions(parameters, of: wanted)
                guard options.encoding == .base64 else {
                    throw parameters.invalid("encoding", "must be base64: an event stream is text")
                }
                if let problem = hub.refusal(of: wanted) { return .response(problem.response()) }
                return .stream(status: 200, headers: Self.headers) { stream in
                    let subscription = SingleStream(EventStreamTransport(stream: stream), hub)
                    stream.onRoom { subscription.outlet.pump() }
                    let beat = heart.add(stream)
                    stream.onClose {
                        beat()
                        subscription.close()
                    }
                    subscription.start(wanted, options, on: hub)
                }
            } catch {
                return .response(Problems.of(error).response())
            }
        }
    }
}

/// Writes to all event streams from time to time: only so does the server notice that a client has gone.
final class StreamHeart: Sendable {
    private struct State {
        var streams: [UInt64: HTTPStream] = [:]
        var lastId: UInt64 = 0
        var isBeating = false
    }

    private let interval: Duration
    private let state = Mutex(State())

    init(interval: Duration = EventStreamResource.heartbeat) {
        self.interval = interval
    }

    /// - Returns: what ends the beating for the stream.
    func add(_ stream: HTTPStream) -> @Sendable () -> Void {
        let (id, mustBegin) = state.withLock { state in
            state.lastId += 1
            state.streams[state.lastId] = stream
            defer { state.isBeating = true }
            return (state.lastId, !state.isBeating)
        }
        if mustBegin {
            Task { [weak self, interval] in
                repeat { try? await Task.sleep(for: interval) } while self?.beat() ?? false
            }
        }
        return { [weak self] in _ = self?.state.withLock { $0.streams.removeValue(forKey: id) } }
    }

    /// - Returns: whether there are streams.
    private func beat() -> Bool {
        let streams = state.withLock { state in
            state.isBeating = !state.streams.isEmpty
            return state.streams.values
        }
        // A stream that is full is written to anyway.
        for stream in streams { stream.write(EventStreamTransport.heartbeat) }
        return !streams.isEmpty
    }
}
