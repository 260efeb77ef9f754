/// Answers a Call event with a result or an error.
public struct ReturnEvent: CommunicationEvent {
    /// `RTN`
    public static let eventType = CommunicationEventType.return

    /// `{result, executionInfo?}` or `{error: {code, message}, executionInfo?}`
    public let payload: Payload
    /// The agent that answers.
    public let sourceId: CoatyUUID?

    private struct Body: Encodable {
        var result: AnyCodable?
        var error: ReturnError?
        let executionInfo: AnyCodable?
    }

    /// Creates an answer with a result, which may be null.
    ///
    /// - Parameters:
    ///   - result: the return value of the operation.
    ///   - executionInfo: information about the execution, for receivers that understand it.
    public static func with(result: AnyCodable, executionInfo: AnyCodable? = nil) throws -> ReturnEvent {
        try ReturnEvent(payload: Payload(encoding: Body(result: result, executionInfo: executionInfo)))
    }

    /// Creates an answer with an error.
    public static func with(error: ReturnError, executionInfo: AnyCodable? = nil) throws -> ReturnEvent {
        try ReturnEvent(payload: Payload(encoding: Body(error: error, executionInfo: executionInfo)))
    }

    /// Creates an event with an unchanged payload.
    ///
    /// - Throws: ``PayloadError`` if the payload does not have exactly one of `result` and `error`.
    public init(payload: Payload) throws(PayloadError) {
        try Self.check(payload)
        self.payload = payload
        sourceId = nil
    }

    /// Decodes a received event.
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
        case (.some, .some(let error)): throw .invalid(error, "must not be combined with result")
        case (nil, .some(let error)):
            guard error.kind == .object else { throw .invalid(error, "must be an object") }
            if error["code"] == nil { throw .missing("code", in: error) }
            if error["message"] == nil { throw .missing("message", in: error) }
        default: break
        }
    }

    /// The event's data.
    public var data: ReturnEventData { ReturnEventData(payload: payload) }
}

/// The data of a Return event.
public struct ReturnEventData: Sendable {
    let payload: Payload

    /// The return value of the operation; nil if it failed.
    public var result: AnyCodable? { payload.json["result"].map { AnyCodable($0) } }

    /// The reason why the operation failed; nil if it succeeded.
    public var error: ReturnError? { payload.json["error"].map { ReturnError($0) } }

    /// Information about the execution.
    public var executionInfo: AnyCodable? { payload.json["executionInfo"].map { AnyCodable($0) } }
}

/// The reason why a remote operation failed.
public struct ReturnError: Error, Sendable, Hashable, Encodable {
    /// The error code. -32768 to -32000 are reserved, others are defined by the application (JSON-RPC 2.0).
    public let code: Int
    /// The reason as text.
    public let message: String

    /// Creates an application-defined error.
    public init(code: Int, message: String) {
        self.code = code
        self.message = message
    }

    /// Creates a predefined error.
    public init(code: RemoteCallErrorCode) {
        self.init(code: code.rawValue, message: code.message)
    }

    /// Decodes a received error. Existing agents may send a code that is not a whole number; it is read as 0.
    init(_ json: JSONView) {
        let code = json["code"]
        self.code = code?.number.flatMap { Int(exactly: $0) } ?? code?.string.flatMap { Int($0) } ?? 0
        let message = json["message"]
        self.message = message?.string ?? message.map { String(decoding: $0.bytes, as: UTF8.self) } ?? ""
    }
}

/// The predefined errors of remote operations.
public enum RemoteCallErrorCode: Int, Sendable, CaseIterable {
    /// The parameters do not match the operation.
    case invalidParameters = -32602

    var message: String {
        switch self {
        case .invalidParameters: "Invalid params"
        }
    }
}
