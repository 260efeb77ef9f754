import HTTPServer

/// `GET /v1/sse/{event}`: one subscription as Server-Sent Events (HTML Living Standard, 9.2).
struct EventStreamResource: Sendable {
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
                var items = QueryParameters(request).items
                // A client that reconnects by itself knows better where it was than the address that it was opened with.
                if let last = request.header("Last-Event-ID"), !last.isEmpty {
                    items.removeAll { $0.name == "since" }
                    items.append(("since", last))
                }
                let parameters = QueryParameters(items: items)
                let event = request.parameters["event"] ?? ""
                guard let wanted = try StreamRequest(event: event, parameters) else {
                    throw Problems.notFound(request.path)
                }
                let options = try StreamOptions(parameters, of: wanted)
                guard options.encoding == .base64 else {
                    throw parameters.invalid("encoding", "must be base64: an event stream is text")
                }
                if let problem = hub.refusal(of: wanted) { throw problem }
                return .stream(status: 200, headers: Self.headers) { stream in
                    let subscription = SingleStream(EventStreamTransport(stream: stream), .sse, hub)
                    stream.onRoom { subscription.outlet.pump() }
                    let beat = heart.add(stream)
                    stream.onClose {
                        beat()
                        subscription.close()
                    }
                    subscription.start(wanted, options, on: hub)
                }
            } catch {
                return .response(Problems.response(error))
            }
        }
    }
}
