import Coaty

/// The error in a value of a YAML file, and its line.
struct YAMLValueError: Error {
    let line: Int
    let pointer: String
    let reason: String
}

/// Converts YAML to JSON by the core schema of YAML 1.2 (section 10.3), whose values match those of JSON: `on` and
/// `2020-01-01` are strings.
struct YAMLValue {
    /// Maximum size of the values of a file, as the approximate number of bytes of their JSON text with resolved
    /// aliases; larger ones are refused.
    static let maximumSize = 4 << 20

    /// The value.
    let json: AnyCodable

    init(_ node: YAMLNode) throws(YAMLValueError) {
        var reader = Reader()
        json = try reader.value(node, pointer: "", depth: 0)
    }

    /// Returns the line of the value that a JSON Pointer refers to, or of its place if it is missing; for a member, the
    /// line of its key.
    static func line(of pointer: String, in root: YAMLNode) -> Int {
        var node = root
        var line = root.line
        for token in pointer.split(separator: "/", omittingEmptySubsequences: false).dropFirst() {
            let name = String(token).replacing("~1", with: "/").replacing("~0", with: "~")
            if let (key, value) = node.mapping?.first(where: { $0.key.text == name }) {
                line = key.line
                node = value
            } else if case .sequence(let sequence) = node.content, let index = Int(name),
                sequence.indices.contains(index)
            {
                node = sequence[index]
                line = node.line
            } else {
                break
            }
        }
        return line
    }

    private struct Reader {
        /// Counts values rather than bytes, because aliases can expand a small file.
        var size = 0

        mutating func value(_ node: YAMLNode, pointer: String, depth: Int) throws(YAMLValueError) -> AnyCodable {
            func error(_ reason: String) -> YAMLValueError {
                YAMLValueError(line: node.line, pointer: pointer, reason: reason)
            }
            guard depth < JSONDocument.maximumDepth else {
                throw error("nested deeper than \(JSONDocument.maximumDepth) levels")
            }
            size += 2 + (node.text?.utf8.count ?? 0)
            guard size <= YAMLValue.maximumSize else {
                throw error("is more than \(YAMLValue.maximumSize) bytes with what stands before it")
            }
            switch node.content {
            case .scalar(let text, let isPlain, let tag):
                guard let json = YAMLValue.scalar(text, isPlain: isPlain, tag: tag) else {
                    throw error("has an unknown tag, or is no number of JSON")
                }
                return json
            case .sequence(let sequence):
                var elements: [AnyCodable] = []
                for (index, element) in sequence.enumerated() {
                    elements.append(try value(element, pointer: "\(pointer)/\(index)", depth: depth + 1))
                }
                return .array(elements)
            case .mapping(let mapping):
                var members: [String: AnyCodable] = [:]
                for (key, member) in mapping {
                    guard let name = key.text else { throw error("must have strings as keys") }
                    size += 2 + name.utf8.count
                    let token = name.replacing("~", with: "~0").replacing("/", with: "~1")
                    members[name] = try value(member, pointer: "\(pointer)/\(token)", depth: depth + 1)
                }
                return .object(members)
            }
        }
    }

    /// Returns nil if the scalar has a tag outside the core schema, or a value that JSON can't represent.
    private static func scalar(_ text: String, isPlain: Bool, tag: String?) -> AnyCodable? {
        switch tag {
        case nil: isPlain ? plain(text) : .string(text)
        // `!` is the tag of a string.
        case "tag:yaml.org,2002:str", "!": .string(text)
        default: nil
        }
    }

    private static func plain(_ text: String) -> AnyCodable? {
        switch text {
        case "", "~", "null", "Null", "NULL": return .null
        case "true", "True", "TRUE": return .bool(true)
        case "false", "False", "FALSE": return .bool(false)
        default: break
        }
        // Checked first, because most scalars are not numbers, and regular expressions are slow.
        guard let first = text.utf8.first, "+-.0123456789".utf8.contains(first) else { return .string(text) }
        if text.wholeMatch(of: /[-+]?[0-9]+/) != nil {
            return Int64(text).map { .integer($0) } ?? UInt64(text).map { .unsignedInteger($0) } ?? finite(text)
        }
        if text.wholeMatch(of: /0o[0-7]+/) != nil { return UInt64(text.dropFirst(2), radix: 8).map { AnyCodable($0) } }
        if text.wholeMatch(of: /0x[0-9a-fA-F]+/) != nil {
            return UInt64(text.dropFirst(2), radix: 16).map { AnyCodable($0) }
        }
        if text.wholeMatch(of: /[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?/) != nil { return finite(text) }
        if text.wholeMatch(of: /[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)/) != nil { return nil }
        return .string(text)
    }

    private static func finite(_ text: String) -> AnyCodable? {
        Double(text).flatMap { $0.isFinite ? .double($0) : nil }
    }
}
