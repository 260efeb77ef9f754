/// What a handler answers with.
public enum HTTPReply: Sendable {
    /// The response is there.
    case response(HTTPResponse)
    /// The response comes later. The connection is suspended, then the closure is called on the handler's thread with
    /// what completes it. Whoever takes it must complete it within a time of its own: a suspended connection does not time
    /// out. If the client goes before, the request is over (``PendingResponse/onDeparture(_:)``). Where
    /// ``HTTPServer/Configuration/maximumPending`` are suspended already, the server answers 503 and does not call the closure.
    case later(@Sendable (PendingResponse) -> Void)
    /// A response whose body is written as it comes into being. The closure is called once on the handler's thread, with
    /// the stream. It is not called for HEAD, nor where ``HTTPServer/Configuration/maximumStreams`` are open
    /// already (503).
    case stream(status: Int, headers: [(name: String, value: String)], @Sendable (HTTPStream) -> Void)
}

/// Answers one request. It runs on one of the server's threads, which serve other connections too, so it must not block;
/// requests of different connections run at the same time. It is called when the whole body has come.
public typealias HTTPHandler = @Sendable (borrowing HTTPRequest) -> HTTPReply
