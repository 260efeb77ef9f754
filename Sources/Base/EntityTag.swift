package import Coaty

/// The tag of a version of a resource (RFC 9110, section 8.8.3).
package struct EntityTag: Sendable, Hashable {
    /// The tag with its quotes.
    package let text: String

    /// Creates the tag for a version of a JSON text.
    package init(_ bytes: some Sequence<UInt8>) {
        text = "\"\(Fingerprint.of(bytes))\""
    }

    package init(_ json: JSONView) {
        self.init(json.bytes)
    }
}

/// The header field `If-Match` (RFC 9110, section 13.1.1), or the list in `If-None-Match`.
package enum IfMatch: Sendable, Hashable {
    case any
    case oneOf([String])

    /// - Throws: ``InvalidParameter``
    package init(_ value: String) throws(InvalidParameter) {
        let error = InvalidParameter(name: "If-Match", reason: "must be * or a list of entity tags in quotes")
        func isSpace(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
        let (quote, comma) = (UInt8(ascii: "\""), UInt8(ascii: ","))
        var rest = Array(value.utf8)[...]
        var tags: [String] = []
        while true {
            // A list may have empty elements (RFC 9110, section 5.6.1.2).
            rest = rest.drop { isSpace($0) || $0 == comma }
            guard !rest.isEmpty else { break }
            let opaque = rest.starts(with: "W/".utf8) ? rest.dropFirst(2) : rest
            guard opaque.first == quote, let end = opaque.dropFirst().firstIndex(of: quote),
                opaque[..<end].allSatisfy({ $0 > 0x20 && $0 != 0x7F })
            else {
                guard tags.isEmpty, rest.first == UInt8(ascii: "*"), rest.dropFirst().allSatisfy(isSpace) else {
                    throw error
                }
                self = .any
                return
            }
            tags.append(String(decoding: rest[...end], as: UTF8.self))
            rest = rest[(end + 1)...].drop(while: isSpace)
            guard rest.first ?? comma == comma else { throw error }
        }
        guard !tags.isEmpty else { throw error }
        self = .oneOf(tags)
    }

    /// Returns whether the condition holds. Weak tags match nothing.
    package func holds(for current: EntityTag?) -> Bool {
        switch self {
        case .any: current != nil
        case .oneOf(let tags): current.map { tags.contains($0.text) } ?? false
        }
    }

    /// Returns whether a tag, weak or not, matches the current one, as in `If-None-Match` (RFC 9110, section 13.1.2).
    package func holdsWeakly(for current: EntityTag) -> Bool {
        switch self {
        case .any: true
        case .oneOf(let tags): tags.contains { $0 == current.text || $0 == "W/" + current.text }
        }
    }
}
