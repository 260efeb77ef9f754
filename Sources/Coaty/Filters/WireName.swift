import Foundation

/// A name on the wire, compared byte by byte. Swift's strings also compare equal if their Unicode representations
/// differ.
public struct WireName: Hashable, Sendable {
    /// The text.
    public let text: String

    /// Creates a name from a text.
    public init(_ text: String) {
        self.text = text
    }

    /// Returns whether the bytes are equal.
    public static func == (left: WireName, right: WireName) -> Bool {
        // Contiguous, because iterating over a string's bytes is several times slower.
        var (left, right) = (left.text, right.text)
        return left.withUTF8 { left in
            right.withUTF8 { right in left.count == right.count && left.hasSameBytes(as: right, count: right.count) }
        }
    }

    /// Returns whether the bytes begin with those of another name.
    public func hasPrefix(_ prefix: WireName) -> Bool {
        var (text, prefix) = (text, prefix.text)
        return text.withUTF8 { text in
            prefix.withUTF8 { prefix in
                text.count >= prefix.count && text.hasSameBytes(as: prefix, count: prefix.count)
            }
        }
    }

    /// Hashes the bytes and an end marker, so that pairs of names also differ by where the second begins.
    public func hash(into hasher: inout Hasher) {
        var text = text
        text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
        hasher.combine(UInt8.max)
    }
}

extension WireName {
    /// Maximum size, in bytes, of a name that is published or observed here. The protocol has no limit.
    public static let maximumLength = 1024

    /// Returns whether Coaty allows a text as the name of an event, a namespace or an IO context: not empty, and
    /// without `U+0000`, `#`, `+` and `/` (Coaty communication events specification).
    public static func isValid(_ text: some StringProtocol) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy { $0 != 0 && $0 != 0x23 && $0 != 0x2B && $0 != 0x2F }
    }

    /// Returns whether a name may be published or observed here: a valid one of at most ``maximumLength`` bytes,
    /// without control characters and Unicode noncharacters, which a broker may refuse.
    public static func isPublishable(_ text: some StringProtocol) -> Bool {
        isValid(text) && text.utf8.count <= maximumLength && text.unicodeScalars.allSatisfy(isTextual)
    }

    /// Returns whether a character is neither a control character nor a Unicode noncharacter.
    public static func isTextual(_ scalar: Unicode.Scalar) -> Bool {
        guard !scalar.isASCII else { return scalar.value >= 0x20 && scalar.value != 0x7F }
        return scalar.properties.generalCategory != .control && !scalar.properties.isNoncharacterCodePoint
    }
}

extension UnsafeBufferPointer<UInt8> {
    fileprivate func hasSameBytes(as other: UnsafeBufferPointer<UInt8>, count: Int) -> Bool {
        guard count > 0, let left = baseAddress, let right = other.baseAddress else { return count == 0 }
        return memcmp(left, right, count) == 0
    }
}
