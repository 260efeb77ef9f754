/// Answers a Call event with a result or an error.
public struct ReturnEvent: CommunicationEvent {
    /// `RTN`
    public static let eventType = CommunicationEventType.return

    /// `{result, executionInfo?}` or `{error: {code, message}, executionInfo?}`
    public let payload: Payload
    /// Who answers.
    public let sourceId: CoatyUUID?

    private struct Body: Encodable {
        var result: AnyCodable?
        var error: ReturnError?
        let executionInfo: AnyCodable?
    }

    /// Returns a result, which may be null.
    ///
    /// - Parameters:
    ///   - result: what the operation returns.
    ///   - executionInfo: what is known of the execution, for those who understand it.
    public static func with(result: AnyCodable, executionInfo: AnyCodable? = nil) throws -> ReturnEvent {
        try ReturnEvent(payload: Payload(encoding: Body(result: result, executionInfo: executionInfo)))
    }

    /// Returns an error.
    public static func with(error: ReturnError, executionInfo: AnyCodable? = nil) throws -> ReturnEvent {
        try ReturnEvent(payload: Payload(encoding: Body(error: error, executionInfo: executionInfo)))
    }

    /// Takes a payload as it is.
    ///
    /// - Throws: ``PayloadError`` where the payload has not exactly one of `result` and `error`.
    public init(payload: Payload) throws(PayloadError) {
        try Self.check(payload)
        self.payload = payload
        sourceId = nil
    }

    /// Reads an event that came in.
    public init(payload: Payload, address: EventAddress) throws(PayloadError) {
        try Self.check(payload)
        self.payload = payload
        sourceId = address.sourceId
    }

    private static func check(_ payload: Payload) throws(PayloadError) {
        try payload.check([])
        let json = payload.json
        switch (json["result"], json["error"]) {
        case (nil, nil): throw .missing("result", in: json)
        case (.some, .some(let error)): throw .invalid(error, "must not stand beside result")
        case (nil, .some(let error)):
            guard error.kind == .object else { throw .invalid(error, "must be an object") }
            if error["code"] == nil { throw .missing("code", in: error) }
            if error["message"] == nil { throw .missing("message", in: error) }
        default: break
        }
    }

    /// What the event answers.
    public var data: ReturnEventData { ReturnEventData(payload: payload) }
}

/// What a Return event answers.
public struct ReturnEventData: Sendable {
    let payload: Payload

    /// What the operation returned; nil where it failed.
    public var result: AnyCodable? { payload.json["result"].map { AnyCodable($0) } }

    /// Why the operation failed; nil where it did not.
    public var error: ReturnError? { payload.json["error"].map { ReturnError($0) } }

    /// What is known of the execution.
    public var executionInfo: AnyCodable? { payload.json["executionInfo"].map { AnyCodable($0) } }
}

/// Why a remote operation failed.
public struct ReturnError: Error, Sendable, Hashable, Encodable {
    /// The code: -32768 to -32000 are reserved, the others the application's own (JSON-RPC 2.0).
    public let code: Int
    /// The reason in words.
    public let message: String

    /// Creates an error of the application.
    public init(code: Int, message: String) {
        self.code = code
        self.message = message
    }

    /// Creates a predefined error.
    public init(code: RemoteCallErrorCode) {
        self.init(code: code.rawValue, message: code.message)
    }

    /// An error as it came in. Agents in the field may send a code that is no whole number; that is 0 here.
    init(_ json: JSONView) {
        let code = json["code"]
        self.code = code?.number.flatMap { Int(exactly: $0) } ?? code?.string.flatMap { Int($0) } ?? 0
        let message = json["message"]
        self.message = message?.string ?? message.map { String(decoding: $0.bytes, as: UTF8.self) } ?? ""
    }
}

/// The predefined errors of remote operations.
public enum RemoteCallErrorCode: Int, Sendable, CaseIterable {
    /// The parameters are not those of the operation.
    case invalidParameters = -32602

    var message: String {
        switch self {
        case .invalidParameters: "Invalid params"
        }
    }
}
