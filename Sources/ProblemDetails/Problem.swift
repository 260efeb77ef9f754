/// Problem details of RFC 9457, the body of every error response.
///
///     Problem(type: "urn:example:invalid", title: "Invalid object", status: 400, detail: "name is missing",
///             members: [("pointer", .string("/object/name"))])
public struct Problem: Error, Sendable {
    /// The value of an extension member.
    public enum Member: Sendable {
        /// A JSON string.
        case string(String)
        /// A JSON number.
        case integer(Int)
        /// A JSON boolean.
        case boolean(Bool)
    }

    /// A URI that identifies the kind of problem and never changes.
    public var type: String
    /// A short summary, the same for every problem of this type.
    public var title: String
    /// The status code of the response.
    public var status: Int
    /// The description of this occurrence.
    public var detail: String?
    /// Extension members (RFC 9457, section 3.2), in the order in which they are written.
    public var members: [(name: String, value: Member)]
    /// Further header fields of the response.
    public var headers: [(name: String, value: String)]

    /// Creates problem details.
    public init(
        type: String,
        title: String,
        status: Int,
        detail: String? = nil,
        members: [(name: String, value: Member)] = [],
        headers: [(name: String, value: String)] = []
    ) {
        self.type = type
        self.title = title
        self.status = status
        self.detail = detail
        self.members = members
        self.headers = headers
    }

    /// The details as a JSON object in UTF-8.
    public var body: [UInt8] {
        var json: [UInt8] = []
        json.reserveCapacity(Self.usualSize)
        json += "{\"type\":".utf8
        appendJSONString(type, to: &json)
        json += ",\"title\":".utf8
        appendJSONString(title, to: &json)
        json += ",\"status\":\(status)".utf8
        if let detail {
            json += ",\"detail\":".utf8
            appendJSONString(detail, to: &json)
        }
        for (name, value) in members {
            json += ",".utf8
            appendJSONString(name, to: &json)
            json += ":".utf8
            switch value {
            case .string(let text): appendJSONString(text, to: &json)
            case .integer(let number): json += String(number).utf8
            case .boolean(let value): json += String(value).utf8
            }
        }
        json += "}".utf8
        return json
    }

    /// Initial capacity; most bodies are smaller.
    private static let usualSize = 512
}
