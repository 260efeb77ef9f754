/// Decoding of percent escapes (RFC 3986, section 2.1) in one path segment, query name or query value.
enum PercentCoding {
    /// Returns the decoded text of `bytes`; `nil` if an escape is malformed, a byte is a control character (including
    /// `%00`) or the result is not UTF-8.
    static func decode(_ bytes: UnsafeBufferPointer<UInt8>) -> String? {
        guard isPlain(bytes) else {
            guard let decoded = unescape(bytes) else { return nil }
            return String(validating: decoded, as: UTF8.self)
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Returns the decoded bytes of `bytes`; `nil` if an escape is malformed or a byte is a control character.
    static func unescape(_ bytes: UnsafeBufferPointer<UInt8>) -> [UInt8]? {
        var decoded: [UInt8] = []
        decoded.reserveCapacity(bytes.count)
        var index = 0
        while index < bytes.count {
            var byte = bytes[index]
            index += 1
            if byte == UInt8(ascii: "%") {
                guard index + 1 < bytes.count, let high = hexDigit(bytes[index]), let low = hexDigit(bytes[index + 1])
                else { return nil }
                byte = high << 4 | low
                index += 2
            }
            guard byte >= 0x20, byte != 0x7F else { return nil }
            decoded.append(byte)
        }
        return decoded
    }

    /// Returns whether `bytes` are printable ASCII without escapes, so that they need no decoding.
    static func isPlain(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        bytes.allSatisfy { $0 >= 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "%") }
    }

    private static func hexDigit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        default: nil
        }
    }
}
