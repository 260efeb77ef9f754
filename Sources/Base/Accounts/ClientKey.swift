import Glibc

/// The key of a shared account: the clients with one token, those of one user of an identity provider, or those without
/// a token from one address.
package enum ClientKey: Hashable, Sendable, CustomStringConvertible {
    case token(String)
    case user(issuer: String, name: String)
    case certificate(String)
    case address(ClientAddress)

    package var description: String {
        switch self {
        case .token(let name): "token \(name)"
        case .user(let issuer, let name): "user \(name) of \(issuer)"
        case .certificate(let name): "certificate \(name)"
        case .address(let address): "address \(address)"
        }
    }
}

/// An IPv4 address, or the /64 network of an IPv6 address: a client can usually choose any address in its /64.
package enum ClientAddress: Hashable, Sendable, CustomStringConvertible {
    case v4(UInt32)
    case v6(UInt64)
    /// Clients without an IP address.
    case other

    package init(_ address: String) {
        var v4 = in_addr()
        var v6 = in6_addr()
        if inet_pton(AF_INET, address, &v4) == 1 {
            self = .v4(v4.s_addr)
        } else if inet_pton(AF_INET6, address, &v6) == 1 {
            self = .v6(withUnsafeBytes(of: v6) { $0.loadUnaligned(as: UInt64.self) })
        } else {
            self = .other
        }
    }

    package var description: String {
        switch self {
        case .v4(let address): return withUnsafeBytes(of: address) { $0.map { "\($0)" }.joined(separator: ".") }
        case .v6(let network):
            let bytes = withUnsafeBytes(of: network) { Array($0) }
            let groups = stride(from: 0, to: 8, by: 2).map {
                String(Int(bytes[$0]) << 8 | Int(bytes[$0 + 1]), radix: 16)
            }
            return groups.joined(separator: ":") + "::/64"
        case .other: return "unknown"
        }
    }
}
