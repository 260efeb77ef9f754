/// Scans a JSON text once, checks it against RFC 8259 and records the place of each value.
struct JSONScanner {
    private(set) var nodes = ContiguousArray<JSONDocument.Node>()
    /// Maximum number of bytes that a ``MemberIndex`` of the text takes; 0 if no value is wide.
    private(set) var wideBytes = 0
    private var position = 0
    private var depth = 0
    private let maximumValues: Int

    init(capacity: Int, maximumValues: Int) {
        self.maximumValues = maximumValues
        nodes.reserveCapacity(capacity)
    }

    mutating func scan(_ text: Span<UInt8>) throws(JSONSyntaxError) {
        skipSpace(text)
        try value(text)
        skipSpace(text)
        guard position == text.count else { throw error("unexpected text behind the value") }
    }

    private mutating func value(_ text: Span<UInt8>) throws(JSONSyntaxError) {
        guard position < text.count else { throw error("unexpected end of the text") }
        switch text[position] {
        case UInt8(ascii: "{"): try object(text)
        case UInt8(ascii: "["): try array(text)
        case UInt8(ascii: "\""): try string(text)
        case UInt8(ascii: "t"): try literal("true", .bool, text)
        case UInt8(ascii: "f"): try literal("false", .bool, text)
        case UInt8(ascii: "n"): try literal("null", .null, text)
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): try number(text)
        default: throw error("unexpected character")
        }
    }

    private mutating func object(_ text: Span<UInt8>) throws(JSONSyntaxError) {
        let index = try open(.object)
        skipSpace(text)
        if accept("}", text) { return close(index) }
        var count = 0
        repeat {
            count += 1
            guard nodes.count + 1 < maximumValues else { throw tooManyValues }
            skipSpace(text)
            guard position < text.count, text[position] == UInt8(ascii: "\"") else {
                throw error("expected a property name in double quotes")
            }
            try string(text)
            skipSpace(text)
            guard accept(":", text) else { throw error("expected ':' behind a property name") }
            skipSpace(text)
            try value(text)
            skipSpace(text)
        } while accept(",", text)
        guard accept("}", text) else { throw error("expected ',' or '}' in an object") }
        if count > MemberIndex.maximumMembers { markWide(index, MemberIndex.bytes(members: count)) }
        close(index)
    }

    private mutating func array(_ text: Span<UInt8>) throws(JSONSyntaxError) {
        let index = try open(.array)
        skipSpace(text)
        if accept("]", text) { return close(index) }
        var count = 0
        repeat {
            count += 1
            guard nodes.count < maximumValues else { throw tooManyValues }
            skipSpace(text)
            try value(text)
            skipSpace(text)
        } while accept(",", text)
        guard accept("]", text) else { throw error("expected ',' or ']' in an array") }
        if count > MemberIndex.maximumElements { markWide(index, MemberIndex.bytes(elements: count)) }
        close(index)
    }

    private mutating func string(_ text: Span<UInt8>) throws(JSONSyntaxError) {
        let start = position
        var isEscaped = false
        position += 1
        while position < text.count {
            let byte = text[position]
            if byte == UInt8(ascii: "\"") {
                position += 1
                append(.string, from: start, isEscaped: isEscaped)
                return
            } else if byte == UInt8(ascii: "\\") {
                isEscaped = true
                try escape(text)
            } else if byte < 0x20 {
                throw error("control character in a string")
            } else if byte < 0x80 {
                position += 1
            } else {
                try multibyte(text)
            }
        }
        throw error("a string does not end")
    }

    private mutating func escape(_ text: Span<UInt8>) throws(JSONSyntaxError) {
        guard position + 1 < text.count else { throw error("a string does not end") }
        switch text[position + 1] {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"), UInt8(ascii: "f"),
            UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
            position += 2
        case UInt8(ascii: "u"):
            guard position + 5 < text.count else { throw error("a string does not end") }
            for offset in 2...5 where JSONEscapes.hexDigit(text[position + offset]) == nil {
                throw error("an escape needs four hexadecimal digits")
            }
            position += 6
        default:
            throw error("unknown escape")
        }
    }

    /// Checks one character of two to four bytes against the well-formed UTF-8 sequences (Unicode, table 3-7).
    private mutating func multibyte(_ text: Span<UInt8>) throws(JSONSyntaxError) {
        let lead = text[position]
        let second: ClosedRange<UInt8>
        let length: Int
        switch lead {
        case 0xC2...0xDF: (second, length) = (0x80...0xBF, 2)
        case 0xE0: (second, length) = (0xA0...0xBF, 3)
        case 0xED: (second, length) = (0x80...0x9F, 3)
        case 0xE1...0xEF: (second, length) = (0x80...0xBF, 3)
        case 0xF0: (second, length) = (0x90...0xBF, 4)
        case 0xF1...0xF3: (second, length) = (0x80...0xBF, 4)
        case 0xF4: (second, length) = (0x80...0x8F, 4)
        default: throw error("not UTF-8")
        }
        guard position + length <= text.count, second.contains(text[position + 1]) else { throw error("not UTF-8") }
        for offset in 2..<max(length, 2) where text[position + offset] & 0xC0 != 0x80 { throw error("not UTF-8") }
        position += length
    }

    private mutating func number(_ text: Span<UInt8>) throws(JSONSyntaxError) {
        let start = position
        _ = accept("-", text)
        if !accept("0", text) { try digits(text) }
        if accept(".", text) { try digits(text) }
        if accept("e", text) || accept("E", text) {
            if !accept("+", text) { _ = accept("-", text) }
            try digits(text)
        }
        append(.number, from: start, isEscaped: false)
    }

    private mutating func digits(_ text: Span<UInt8>) throws(JSONSyntaxError) {
        let start = position
        while position < text.count, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(text[position]) { position += 1 }
        guard position > start else { throw error("expected a digit") }
    }

    private mutating func literal(
        _ literal: StaticString,
        _ kind: JSONDocument.Kind,
        _ text: Span<UInt8>
    ) throws(JSONSyntaxError) {
        let start = position
        for offset in 0..<literal.utf8CodeUnitCount {
            guard position < text.count, text[position] == literal.utf8Start[offset] else {
                throw error("unexpected character")
            }
            position += 1
        }
        append(kind, from: start, isEscaped: false)
    }

    private mutating func skipSpace(_ text: Span<UInt8>) {
        while position < text.count {
            switch text[position] {
            case 0x20, 0x09, 0x0A, 0x0D: position += 1
            default: return
            }
        }
    }

    private mutating func accept(_ character: Unicode.Scalar, _ text: Span<UInt8>) -> Bool {
        guard position < text.count, text[position] == UInt8(ascii: character) else { return false }
        position += 1
        return true
    }

    private mutating func open(_ kind: JSONDocument.Kind) throws(JSONSyntaxError) -> Int {
        guard depth < JSONDocument.maximumDepth else {
            throw .tooDeep(at: position)
        }
        depth += 1
        position += 1
        nodes.append(.init(start: UInt32(position - 1), end: 0, next: 0, kind: kind, isEscaped: false))
        return nodes.count - 1
    }

    private mutating func markWide(_ index: Int, _ bytes: Int) {
        nodes[index].isWide = true
        wideBytes += bytes
    }

    private mutating func close(_ index: Int) {
        depth -= 1
        nodes[index].end = UInt32(position)
        nodes[index].next = UInt32(nodes.count)
    }

    private mutating func append(_ kind: JSONDocument.Kind, from start: Int, isEscaped: Bool) {
        let next = UInt32(nodes.count + 1)
        nodes.append(.init(start: UInt32(start), end: UInt32(position), next: next, kind: kind, isEscaped: isEscaped))
    }

    private var tooManyValues: JSONSyntaxError {
        JSONSyntaxError(offset: position, reason: "more than \(maximumValues) values", hasTooManyValues: true)
    }

    private func error(_ reason: String) -> JSONSyntaxError {
        JSONSyntaxError(offset: position, reason: reason)
    }
}

/// The escapes of JSON strings (RFC 8259, section 7).
enum JSONEscapes {
    static func hexDigit(_ byte: UInt8) -> UInt16? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt16(byte - UInt8(ascii: "0"))
        case UInt8(ascii: "a")...UInt8(ascii: "f"): UInt16(byte - UInt8(ascii: "a") + 10)
        case UInt8(ascii: "A")...UInt8(ascii: "F"): UInt16(byte - UInt8(ascii: "A") + 10)
        default: nil
        }
    }

    /// Returns whether the content of a checked string, with resolved escapes, equals the given bytes. Allocates no
    /// memory, because keys are compared with many names.
    static func isEqual(_ content: UnsafeBufferPointer<UInt8>, to text: UnsafeBufferPointer<UInt8>) -> Bool {
        // An escape is never shorter than the character that it represents.
        guard content.count >= text.count else { return false }
        var resolved = ResolvedString(content)
        for byte in text where resolved.next() != byte { return false }
        return resolved.next() == nil
    }

    /// Resolves the escapes in the content of a checked string.
    static func resolve(_ content: UnsafeBufferPointer<UInt8>) -> String {
        String(decoding: Array(ResolvedString(content)), as: UTF8.self)
    }
}

/// The UTF-8 bytes of a string with resolved escapes. A lone surrogate, which JSON can represent and UTF-8 cannot,
/// becomes U+FFFD.
struct ResolvedString: Sequence, IteratorProtocol {
    private let content: UnsafeBufferPointer<UInt8>
    private var position = 0
    /// The remaining bytes of an escaped character, its next byte lowest. None of these bytes is 0.
    private var rest: UInt32 = 0

    /// - Parameter content: the content between the quotation marks. It has been checked, and must outlive this object.
    init(_ content: UnsafeBufferPointer<UInt8>) {
        self.content = content
    }

    var underestimatedCount: Int { 0 }

    mutating func next() -> UInt8? {
        if rest != 0 {
            defer { rest >>= 8 }
            return UInt8(truncatingIfNeeded: rest)
        }
        guard position < content.count else { return nil }
        let byte = content[position]
        position += 1
        guard byte == UInt8(ascii: "\\") else { return byte }
        let kind = content[position]
        position += 1
        switch kind {
        case UInt8(ascii: "u"): return character(unit())
        case UInt8(ascii: "b"): return 0x08
        case UInt8(ascii: "f"): return 0x0C
        case UInt8(ascii: "n"): return 0x0A
        case UInt8(ascii: "r"): return 0x0D
        case UInt8(ascii: "t"): return 0x09
        default: return kind
        }
    }

    /// Reads the four hexadecimal digits of an escape.
    private mutating func unit() -> UInt32 {
        defer { position += 4 }
        return (position..<position + 4).reduce(0) { $0 << 4 | UInt32(JSONEscapes.hexDigit(content[$1]) ?? 0) }
    }

    /// Returns the first byte of a character, and stores the others.
    private mutating func character(_ unit: UInt32) -> UInt8 {
        var scalar = Unicode.Scalar(unit) ?? "\u{FFFD}"
        if (0xD800...0xDBFF).contains(unit), position + 6 <= content.count, content[position] == UInt8(ascii: "\\"),
            content[position + 1] == UInt8(ascii: "u")
        {
            let start = position
            position += 2
            let low = self.unit()
            if (0xDC00...0xDFFF).contains(low) {
                scalar = Unicode.Scalar(0x10000 + (unit - 0xD800) << 10 + (low - 0xDC00)) ?? scalar
            } else {
                position = start
            }
        }
        for byte in scalar.utf8.reversed() { rest = rest << 8 | UInt32(byte) }
        defer { rest >>= 8 }
        return UInt8(truncatingIfNeeded: rest)
    }
}
