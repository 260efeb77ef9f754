import Foundation

/// One of the addresses to try: the name of a broker, and an address family.
///
/// libmosquitto uses the first address of a name without waiting for the result, so a broker that may be reachable only
/// by the other family has two entries.
struct BrokerAddress: Hashable {
    enum Family: Hashable {
        case any, ipv4, ipv6

        /// A wildcard address: binding the socket to it makes libmosquitto use only addresses of this family.
        var wildcardAddress: String? {
            switch self {
            case .any: nil
            case .ipv4: "0.0.0.0"
            case .ipv6: "::"
            }
        }
    }

    let host: String
    let port: UInt16
    let family: Family

    /// Host and port, for people.
    var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }

    /// Returns the addresses of a broker, one per family, in the order of the system's preference. Blocks for name
    /// resolution.
    ///
    /// - Returns: an empty array if the name can't be resolved.
    static func resolve(_ host: String, _ port: UInt16) -> [BrokerAddress] {
        var hints = addrinfo()
        #if os(Linux)
            hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        #else
            hints.ai_socktype = SOCK_STREAM
        #endif
        var list: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(host, nil, &hints, &list) == 0 else { return [] }
        defer { freeaddrinfo(list) }
        var families: [Family] = []
        var next = list
        while let info = next?.pointee {
            next = info.ai_next
            let family: Family? = info.ai_family == AF_INET ? .ipv4 : info.ai_family == AF_INET6 ? .ipv6 : nil
            if let family, !families.contains(family) { families.append(family) }
        }
        if families.count == 1 { families = [.any] }
        return families.map { BrokerAddress(host: host, port: port, family: $0) }
    }
}
