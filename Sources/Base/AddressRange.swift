import Glibc

/// IP addresses that begin with the same bits: `10.0.0.0/8`, `fd00::/8`, or one address.
package struct AddressRange: Sendable, Equatable {
    private let bytes: [UInt8]
    /// The number of bits to compare.
    private let length: Int

    /// - Returns: nil if the text is not an address, or the length exceeds that of the address.
    package init?(_ text: String) {
        let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard let bytes = Self.bytes(of: String(parts[0])) else { return nil }
        self.bytes = bytes
        guard parts.count == 2 else {
            length = bytes.count * 8
            return
        }
        guard let length = Int(parts[1]), 0...bytes.count * 8 ~= length else { return nil }
        self.length = length
    }

    package func contains(_ address: String) -> Bool {
        guard let other = Self.bytes(of: address), other.count == bytes.count else { return false }
        let (whole, rest) = length.quotientAndRemainder(dividingBy: 8)
        guard bytes[..<whole] == other[..<whole] else { return false }
        return rest == 0 || (bytes[whole] ^ other[whole]) >> (8 - rest) == 0
    }

    /// Returns the bytes of a numeric address, for an IPv4-mapped IPv6 address those of the IPv4 address; nil for other
    /// text.
    private static func bytes(of text: String) -> [UInt8]? {
        var v4 = in_addr()
        if inet_pton(AF_INET, text, &v4) == 1 { return withUnsafeBytes(of: v4) { Array($0) } }
        var v6 = in6_addr()
        guard inet_pton(AF_INET6, text, &v6) == 1 else { return nil }
        let bytes = withUnsafeBytes(of: v6) { Array($0) }
        let isMapped = bytes[..<10].allSatisfy { $0 == 0 } && bytes[10] == 0xff && bytes[11] == 0xff
        return isMapped ? Array(bytes[12...]) : bytes
    }

    /// Returns whether a text is a numeric address.
    package static func isAddress(_ text: String) -> Bool { bytes(of: text) != nil }
}
