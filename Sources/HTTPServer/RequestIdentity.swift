/// The ids of a request, for the response and for log lines.
public struct RequestIdentity: Sendable, Equatable {
    /// The ids of the request whose admission or handler is running, also in tasks that the handler has started. Nil
    /// outside requests, and in requests without ids, which are most.
    @TaskLocal public static var current: RequestIdentity?

    /// Maximum length of an id that a client sends.
    public static let maximumLength = 128

    /// The client's `X-Request-Id`, or a random one; nil if none is needed.
    public private(set) var id: String?
    /// The trace id of `traceparent` (W3C Trace Context): 32 hexadecimal digits.
    public let trace: String?

    /// Returns the ids of a request; nil if it needs none.
    ///
    /// - Parameters:
    ///   - requestId: the value of `X-Request-Id`; if it is not valid, a new id is created.
    ///   - traceparent: the value of `traceparent`, which is ignored if it is not valid.
    ///   - isRequired: whether the request gets an id if the client has sent none.
    public init?(requestId: String?, traceparent: String?, isRequired: Bool) {
        let trace = traceparent.flatMap(Self.trace)
        guard requestId != nil || trace != nil || isRequired else { return nil }
        self.trace = trace
        if let requestId, Self.isValid(requestId) {
            id = requestId
        } else if requestId != nil || isRequired {
            id = Self.makeId()
        }
    }

    /// Calls a closure with ids as ``current``.
    ///
    /// - Parameter identity: the ids; nil calls the closure unchanged.
    public static func use<Result>(_ identity: RequestIdentity?, _ body: () throws -> Result) rethrows -> Result {
        guard let identity else { return try body() }
        return try $current.withValue(identity, operation: body)
    }

    private init(id: String) {
        self.id = id
        trace = nil
    }

    /// Adds an id if there is none.
    ///
    /// - Returns: the id.
    static func complete(_ identity: inout RequestIdentity?) -> String {
        if let id = identity?.id { return id }
        let id = makeId()
        if identity == nil { identity = RequestIdentity(id: id) } else { identity?.id = id }
        return id
    }

    /// Returns 16 random hexadecimal digits.
    public static func makeId() -> String {
        let digits = String(UInt64.random(in: 0 ... .max), radix: 16)
        return String(repeating: "0", count: 16 - digits.utf8.count) + digits
    }

    private static func isValid(_ id: String) -> Bool {
        1...maximumLength ~= id.utf8.count && id.utf8.allSatisfy { 0x21...0x7E ~= $0 }
    }

    /// Returns the trace id of a `traceparent`: `00-<32 digits>-<16 digits>-<2 digits>`. Later versions may append
    /// fields.
    private static func trace(of traceparent: String) -> String? {
        let text = Array(traceparent.utf8)
        guard text.count >= 55, text[2] == dash, text[35] == dash, text[52] == dash else { return nil }
        let version = text[0..<2], trace = text[3..<35], parent = text[36..<52], flags = text[53..<55]
        guard [version, trace, parent, flags].allSatisfy({ $0.allSatisfy(isDigit) }) else { return nil }
        guard version.elementsEqual("00".utf8) ? text.count == 55 : text.count == 55 || text[55] == dash,
            !version.elementsEqual("ff".utf8), trace.contains(where: { $0 != zero }),
            parent.contains(where: { $0 != zero })
        else { return nil }
        return String(decoding: trace, as: UTF8.self)
    }

    private static let dash = UInt8(ascii: "-")
    private static let zero = UInt8(ascii: "0")

    private static func isDigit(_ byte: UInt8) -> Bool {
        UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte || UInt8(ascii: "a")...UInt8(ascii: "f") ~= byte
    }
}
