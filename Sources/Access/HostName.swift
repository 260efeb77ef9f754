import Glibc

/// The host of a `Host` field or an origin (RFC 3986, section 3.2.2), in lower case, without a final dot.
package struct HostName: Hashable, Sendable {
    package let text: String
    /// Whether no public DNS name can be this host: a loopback name, an IP address, a name without a dot, or a name
    /// under a domain that is reserved for local use (RFC 6761, RFC 6762, RFC 8375 and ICANN's `internal`).
    let isPrivate: Bool

    /// Returns nil if the text is not a host with an optional port.
    package init?(authority: some StringProtocol) {
        // Processes bytes, because this runs for each request.
        let authority = authority.utf8.map { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) ? $0 | 0x20 : $0 }
        var host = authority[...]
        if let colon = authority.lastIndex(of: UInt8(ascii: ":")), !authority[colon...].contains(UInt8(ascii: "]")) {
            let port = authority[colon...].dropFirst()
            guard port.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }),
                port.isEmpty || UInt16(String(decoding: port, as: UTF8.self)) ?? 0 > 0
            else { return nil }
            host = authority[..<colon]
        }
        // With a final dot, a name without other dots is a top-level domain, and therefore public.
        let isRooted = host.last == UInt8(ascii: ".")
        if isRooted { host.removeLast() }
        let text = String(decoding: host, as: UTF8.self)
        guard host.first != UInt8(ascii: "."), !host.isEmpty, host.allSatisfy(Self.isNameByte) || Self.isIPv6(text)
        else {
            return nil
        }
        self.text = text
        isPrivate =
            !host.contains(UInt8(ascii: ".")) && (!isRooted || text == "localhost") || host.first == UInt8(ascii: "[")
            || Self.isIPv4(text) || [".localhost", ".local", ".internal", ".home.arpa"].contains { text.hasSuffix($0) }
    }

    /// Returns whether an address to listen on is a loopback address.
    package static func isLoopback(_ address: String) -> Bool {
        var v4 = in_addr()
        if inet_pton(AF_INET, address, &v4) == 1 { return UInt32(bigEndian: v4.s_addr) >> 24 == 127 }
        var v6 = in6_addr()
        guard inet_pton(AF_INET6, address, &v6) == 1 else { return false }
        return withUnsafeBytes(of: v6) { $0.dropLast().allSatisfy { $0 == 0 } && $0.last == 1 }
    }

    private static func isIPv4(_ text: String) -> Bool {
        var address = in_addr()
        return inet_pton(AF_INET, text, &address) == 1
    }

    private static func isIPv6(_ host: String) -> Bool {
        guard host.hasPrefix("["), host.hasSuffix("]") else { return false }
        var address = in6_addr()
        return inet_pton(AF_INET6, String(host.dropFirst().dropLast()), &address) == 1
    }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"),
            UInt8(ascii: "_"), UInt8(ascii: "."):
            true
        default: false
        }
    }
}
