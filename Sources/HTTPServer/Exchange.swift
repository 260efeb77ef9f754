/// One request and its answer. Invariant: only the thread of its connection touches it, from the first call of
/// libmicrohttpd for the request until the one that says it is completed.
final class Exchange {
    /// What the exchange is at.
    enum Phase {
        /// The body is being read, the handler will be called when all of it is there.
        case reading(HTTPHandler)
        /// The body is being read and thrown away, so that the connection stays usable after this answer.
        case discarding(HTTPResponse)
        /// The connection is or was suspended.
        case waiting(PendingResponse)
        /// The response is on its way.
        case answered
        /// The response is being streamed.
        case streaming(HTTPStream)
    }

    var phase: Phase
    /// Whether an answer has begun, so that its end must be told.
    var hasBegunAnswer = false
    /// The status of the answer; 0 as long as there is none.
    var status = 0
    /// The bytes of the answer's body, none for HEAD; of a stream they are known at its end.
    var responseBytes = 0
    /// Nil as long as the request has no ids.
    private(set) var identity: RequestIdentity?
    /// The index of the endpoint; nil if there is none.
    let endpoint: Int?
    /// When the head had come, by ``RequestTimes/now()``.
    let begin = RequestTimes.now()
    let connection: RequestDeadlines.Connection
    /// Nil for a method that no route can have.
    let requestMethod: HTTPMethod?
    var method: HTTPMethod { requestMethod ?? .get }
    let parameters: PathParameters
    let queryItems: [HTTPRequest.QueryItem]
    /// Header fields of every answer.
    let answerHeaders: [(name: String, value: String)]
    /// The context of the admission, for the handler.
    let context: (any Sendable & AnyObject)?
    /// Set while the client's departure is watched for.
    var departure: DepartureWatch.Entry?
    /// What of the body has come. Nil once the handler has it.
    private var body: InboundBody?

    /// The bytes to come, as far as they are known.
    private let declaredLength: UInt64
    /// The bytes of the body that have come, kept or not.
    private var received = 0

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
        declaredLength: UInt64
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
        body = InboundBody(budget: budget)
    }

    /// Takes a part of the body.
    func receive(_ bytes: UnsafeRawBufferPointer, limit: Int) -> InboundBody.Outcome {
        received += bytes.count
        guard received <= limit else { return .tooLong }
        guard case .reading = phase else { return .taken }
        let declaredLength = declaredLength > 0 ? Int(clamping: declaredLength) : nil
        return body?.append(bytes, declaredLength: declaredLength, limit: limit) ?? .taken
    }

    /// Returns the id that an answer carries; nil if it has none.
    func id(forStatus status: Int) -> String? {
        status < 400 ? identity?.id : RequestIdentity.complete(&identity)
    }

    /// Whether the response is a stream, which is counted when it begins.
    var isStream: Bool {
        if case .streaming = phase { true } else { false }
    }

    /// Hands the whole body over. The memory for it is given back when this returns.
    func withBody<Result>(_ handle: (_ body: [UInt8]) -> Result) -> Result {
        guard let body = self.body.take() else { return handle([]) }
        let result = handle(body.bytes)
        _ = consume body
        return result
    }
}
