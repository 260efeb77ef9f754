/// Problem details of RFC 9457, the body of every error response.
///
///     Problem(type: "urn:example:invalid", title: "Invalid object", status: 400, detail: "name is missing",
///             members: [("pointer", .string("/object/name"))]).response()
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

    /// A URI that names the kind of problem and never changes.
    public var type: String
    /// A short summary, the same for every problem of this type.
    public var title: String
    /// The status code of the response.
    public var status: Int
    /// What went wrong this time.
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
        var json = "{\"type\":\(quoted(type)),\"title\":\(quoted(title)),\"status\":\(status)"
        if let detail { json += ",\"detail\":\(quoted(detail))" }
        for (name, value) in members {
            json += ",\(quoted(name)):"
            switch value {
            case .string(let text): json += quoted(text)
            case .integer(let number): json += String(number)
            case .boolean(let value): json += String(value)
            }
        }
        return Array((json + "}").utf8)
    }

    /// The details as a response with the media type `application/problem+json`.
    public func response() -> HTTPResponse {
        HTTPResponse(
            status: status,
            headers: [("Content-Type", "application/problem+json")] + headers,
            body: body
        )
    }
}

/// `text` as a JSON string (RFC 8259, section 7).
private func quoted(_ text: String) -> String {
    var json = "\""
    for scalar in text.unicodeScalars {
        switch scalar {
        case "\"": json += "\\\""
        case "\\": json += "\\\\"
        case "\u{0}"..<"\u{20}":
            let digits = String(scalar.value, radix: 16)
            json += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
        default: json.unicodeScalars.append(scalar)
        }
    }
    return json + "\""
}
