/// The reply of a handler.
public enum HTTPReply: Sendable {
    /// The response is available now.
    case response(HTTPResponse)
    /// The response will be available later. The connection is suspended, then the closure is called on the handler's
    /// thread with an object for completing the response. It must be completed within a time limit of the handler: a
    /// suspended connection does not time out. If the client disconnects earlier, the request ends
    /// (``PendingResponse/onDeparture(_:)``). If ``HTTPServer/Configuration/maximumPending`` requests are already
    /// suspended, the server answers 503 and does not call the closure.
    case later(@Sendable (PendingResponse) -> Void)
    /// A response whose body is written over time. The closure is called once on the handler's thread, with the stream.
    /// It is not called for HEAD, nor if ``HTTPServer/Configuration/maximumStreams`` are already open (503).
    case stream(status: Int, headers: [(name: String, value: String)], @Sendable (HTTPStream) -> Void)
}

/// Answers one request. It runs on one of the server's threads, which also serve other connections, so it must not
/// block; requests on different connections run concurrently. It is called when the body is complete.
public typealias HTTPHandler = @Sendable (borrowing HTTPRequest) -> HTTPReply
