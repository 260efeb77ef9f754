/// A request and its answer. Invariant: only the thread of its connection uses it, from the first call of libmicrohttpd
/// for the request until the call that reports its completion.
final class Exchange {
    /// The phase of the exchange.
    enum Phase {
        /// The body is being read; the handler will be called when it is complete.
        case reading(HTTPHandler)
        /// The body is being read and discarded, so that the connection stays usable after this answer.
        case discarding(HTTPResponse)
        /// The answer is sent; the rest of the body is being read and discarded, then the connection ends.
        case lingering(Lingering)
        /// The connection is or was suspended.
        case waiting(PendingResponse)
        /// The response is being sent.
        case answered
        /// The response is being streamed.
        case streaming(HTTPStream)
    }

    var phase: Phase
    /// Whether an answer has begun, so that its end must be reported.
    var hasBegunAnswer = false
    /// Whether the end of the answer was reported.
    var hasReportedAnswer = false
    /// The status of the answer; 0 if there is none yet.
    var status = 0
    /// Number of bytes in the answer's body, 0 for HEAD; for a stream, known at its end.
    var responseBytes = 0
    /// Nil while the request has no ids.
    private(set) var identity: RequestIdentity?
    /// The index of the endpoint; nil if there is none.
    let endpoint: Int?
    /// When the head was complete, by ``RequestTimes/now()``.
    let begin = RequestTimes.now()
    let connection: RequestDeadlines.Connection
    /// Nil for a method that is not supported in routes.
    let requestMethod: HTTPMethod?
    var method: HTTPMethod { requestMethod ?? .get }
    let parameters: PathParameters
    let queryItems: [HTTPRequest.QueryItem]
    /// Header fields for every answer.
    let answerHeaders: [(name: String, value: String)]
    /// The context of the admission, for the handler.
    let context: (any Sendable & AnyObject)?
    /// Set while the departure of a client whose answer is pending is watched.
    var watched: SocketWatch.Entry?
    /// The received part of the body. Nil once it was passed to the handler.
    private var body: InboundBody?

    /// Whether libmicrohttpd sends a body of unknown length in chunks: HTTP/1.1. A client of HTTP/1.0 gets the end of
    /// the connection as the end of the body.
    let understandsChunks: Bool
    /// Whether the connection is kept after the response, unless the server closes it.
    let keepsConnection: Bool
    /// Number of expected bytes, if known.
    private let declaredLength: UInt64
    /// Number of received bytes of the body, including discarded ones.
    private var received = 0
    /// Number of received bytes of a body that was passed to no handler.
    var discardedBytes: Int { wasHandled ? 0 : received }
    private var wasHandled = false

    init(
        phase: Phase,
        endpoint: Int?,
        connection: RequestDeadlines.Connection,
        method: HTTPMethod?,
        parameters: PathParameters,
        queryItems: [HTTPRequest.QueryItem],
        answerHeaders: [(name: String, value: String)],
        context: (any Sendable & AnyObject)?,
        budget: (any HTTPServer.ByteBudget)?,
        identity: RequestIdentity?,
        declaredLength: UInt64,
        understandsChunks: Bool,
        keepsConnection: Bool
    ) {
        self.phase = phase
        self.endpoint = endpoint
        self.connection = connection
        requestMethod = method
        self.parameters = parameters
        self.queryItems = queryItems
        self.answerHeaders = answerHeaders
        self.context = context
        self.identity = identity
        self.declaredLength = declaredLength
        self.understandsChunks = understandsChunks
        self.keepsConnection = keepsConnection
        body = InboundBody(budget: budget)
    }

    /// Adds a part of the body.
    func receive(_ bytes: UnsafeRawBufferPointer, limit: Int) -> InboundBody.Outcome {
        received += bytes.count
        guard received <= limit else { return .tooLong }
        guard case .reading = phase else { return .taken }
        let declaredLength = declaredLength > 0 ? Int(clamping: declaredLength) : nil
        return body?.append(bytes, declaredLength: declaredLength, limit: limit) ?? .taken
    }

    /// Begins to discard the rest of the body after the answer.
    func linger(_ lingering: Lingering) {
        phase = .lingering(lingering)
        body = nil
    }

    /// Discards a part of the body after the answer.
    ///
    /// - Returns: false if the connection must be closed now.
    func discard(_ count: Int) -> Bool {
        guard case .lingering(var lingering) = phase else { return false }
        received += count
        let isWithinBounds = lingering.discard(count)
        phase = .lingering(lingering)
        return isWithinBounds
    }

    /// Returns the id in the answer; nil if it has none. A slow request gets one, because it will be reported.
    func id(forStatus status: Int, _ reports: RequestReports) -> String? {
        if status < 400, identity?.id != nil || !reports.isSlow(RequestTimes.now() - begin) { return identity?.id }
        return RequestIdentity.complete(&identity)
    }

    /// Whether the response is a stream, which is counted when it begins.
    var isStream: Bool {
        if case .streaming = phase { true } else { false }
    }

    /// Passes the whole body to a function. Its memory is released when this returns.
    func withBody<Result>(_ handle: (_ body: [UInt8]) -> Result) -> Result {
        wasHandled = true
        guard let body = self.body.take() else { return handle([]) }
        let result = handle(body.bytes)
        _ = consume body
        return result
    }
}
