import Coaty

/// Names a version of something (RFC 9110, section 8.8.3).
struct EntityTag: Sendable, Hashable {
    /// With its quotes.
    let text: String

    /// The version of a JSON text.
    init(_ bytes: some Sequence<UInt8>) {
        text = "\"\(Fingerprint.of(bytes))\""
    }

    init(_ json: JSONView) {
        self.init(json.bytes)
    }
}

/// The header field `If-Match` (RFC 9110, section 13.1.1).
enum IfMatch: Sendable, Hashable {
    case any
    case oneOf([String])

    /// - Throws: ``InvalidParameter``
    init(_ value: String) throws(InvalidParameter) {
        let list = value.split(separator: ",").map { $0.trimming(while: { $0 == " " || $0 == "\t" }) }
        if list == ["*"] {
            self = .any
            return
        }
        let isValid = list.allSatisfy { tag in
            let tag = tag.hasPrefix("W/") ? tag.dropFirst(2) : tag[...]
            return tag.count >= 2 && tag.hasPrefix("\"") && tag.hasSuffix("\"")
                && !tag.dropFirst().dropLast().contains("\"")
        }
        guard isValid, !list.isEmpty else {
            throw InvalidParameter(name: "If-Match", reason: "must be * or a list of entity tags in quotes")
        }
        self = .oneOf(list)
    }

    /// Whether the condition holds. Weak tags match nothing.
    func holds(for current: EntityTag?) -> Bool {
        switch self {
        case .any: current != nil
        case .oneOf(let tags): current.map { tags.contains($0.text) } ?? false
        }
    }
}

extension Substring {
    fileprivate func trimming(while isTrimmed: (Character) -> Bool) -> String {
        var text = self
        while let first = text.first, isTrimmed(first) { text.removeFirst() }
        while let last = text.last, isTrimmed(last) { text.removeLast() }
        return String(text)
    }
}
