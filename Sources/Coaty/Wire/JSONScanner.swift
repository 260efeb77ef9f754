/// Walks over a JSON text once, checks it against RFC 8259 and notes where each value stands.
struct JSONScanner {
    private(set) var nodes = ContiguousArray<JSONDocument.Node>()
    private var position = 0
    private var depth = 0

    init(capacity: Int) {
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
        repeat {
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
        close(index)
    }

    private mutating func array(_ text: Span<UInt8>) throws(JSONSyntaxError) {
        let index = try open(.array)
        skipSpace(text)
        if accept("]", text) { return close(index) }
        repeat {
            skipSpace(text)
            try value(text)
            skipSpace(text)
        } while accept(",", text)
        guard accept("]", text) else { throw error("expected ',' or ']' in an array") }
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

    /// Checks one character of two to four bytes against the well-formed sequences of Unicode, table 3-7.
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
            throw error("nested deeper than \(JSONDocument.maximumDepth) levels")
        }
        depth += 1
        position += 1
        nodes.append(.init(start: UInt32(position - 1), end: 0, next: 0, kind: kind, isEscaped: false))
        return nodes.count - 1
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

    /// Whether a string's content, which has been checked before, says a name of ASCII characters. Allocates nothing: keys
    /// are compared with many names.
    static func isEqual(_ content: ArraySlice<UInt8>, toASCII name: UnsafeBufferPointer<UInt8>) -> Bool {
        var rest = content
        for expected in name {
            guard let byte = rest.popFirst() else { return false }
            guard byte == UInt8(ascii: "\\") else {
                if byte == expected { continue }
                return false
            }
            guard let kind = rest.popFirst() else { return false }
            if kind == UInt8(ascii: "u") {
                let unit = rest.prefix(4).reduce(0) { $0 << 4 | (hexDigit($1) ?? 0) } as UInt16
                rest = rest.dropFirst(4)
                guard unit == UInt16(expected) else { return false }
            } else if simple(kind) != expected {
                return false
            }
        }
        return rest.isEmpty
    }

    /// Resolves the escapes of a string's content, which has been checked before.
    static func resolve(_ content: ArraySlice<UInt8>) -> String {
        var units: [UInt16] = []
        var text = ""
        var rest = content
        func flush() {
            // Repairs lone surrogates, which JSON can spell and UTF-8 cannot.
            text += String(decoding: units, as: UTF16.self)
            units.removeAll(keepingCapacity: true)
        }
        while let byte = rest.first {
            guard byte == UInt8(ascii: "\\") else {
                flush()
                let run = rest.prefix { $0 != UInt8(ascii: "\\") }
                text += String(decoding: run, as: UTF8.self)
                rest = rest.dropFirst(run.count)
                continue
            }
            let kind = rest[rest.startIndex + 1]
            if kind == UInt8(ascii: "u") {
                units.append(rest.dropFirst(2).prefix(4).reduce(0) { $0 << 4 | (hexDigit($1) ?? 0) })
                rest = rest.dropFirst(6)
            } else {
                units.append(UInt16(simple(kind)))
                rest = rest.dropFirst(2)
            }
        }
        flush()
        return text
    }

    private static func simple(_ kind: UInt8) -> UInt8 {
        switch kind {
        case UInt8(ascii: "b"): 0x08
        case UInt8(ascii: "f"): 0x0C
        case UInt8(ascii: "n"): 0x0A
        case UInt8(ascii: "r"): 0x0D
        case UInt8(ascii: "t"): 0x09
        default: kind
        }
    }
}
