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
    let connection: RequestDeadlines.Connection
    let method: HTTPMethod
    let parameters: PathParameters
    let queryItems: [HTTPRequest.QueryItem]
    /// Header fields of every answer.
    let answerHeaders: [(name: String, value: String)]
    /// The context of the admission, for the handler.
    let context: (any Sendable & AnyObject)?
    /// Set while the client's departure is watched for.
    var departure: DepartureWatch.Entry?
    /// What of the body has come.
    private(set) var body: [UInt8] = []

    /// The bytes to come, as far as they are known.
    private let declaredLength: UInt64
    /// The bytes of the body that have come, kept or not.
    private var received = 0

    /// The most memory that a mere declaration of a length gets.
    private static let maximumReservation = 64 * 1024

    init(
        phase: Phase,
        connection: RequestDeadlines.Connection,
        method: HTTPMethod,
        parameters: PathParameters,
        queryItems: [HTTPRequest.QueryItem],
        answerHeaders: [(name: String, value: String)],
        context: (any Sendable & AnyObject)?,
        declaredLength: UInt64
    ) {
        self.phase = phase
        self.connection = connection
        self.method = method
        self.parameters = parameters
        self.queryItems = queryItems
        self.answerHeaders = answerHeaders
        self.context = context
        self.declaredLength = declaredLength
    }

    /// Takes a part of the body.
    ///
    /// - Returns: `false` when it makes the body larger than `limit`.
    func receive(_ bytes: UnsafeRawBufferPointer, limit: Int) -> Bool {
        received += bytes.count
        guard received <= limit else { return false }
        guard case .reading = phase else { return true }
        if body.isEmpty {
            body.reserveCapacity(max(bytes.count, Int(min(declaredLength, UInt64(Self.maximumReservation)))))
        }
        body.append(contentsOf: bytes)
        return true
    }
}
