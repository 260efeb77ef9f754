import Foundation

/// One of the addresses to try.
///
/// libmosquitto uses the first address of a name without waiting for the result, so each address of the name is an
/// entry of its own.
struct BrokerAddress: Hashable {
    /// The name or the numeric address that was configured or discovered. With TLS, the broker's certificate must be
    /// for it.
    let host: String
    let port: UInt16
    /// The numeric address of the name; nil if `host` is a numeric address.
    let numeric: String?
    /// Whether the name has further addresses.
    let isOneOfSeveral: Bool

    /// Maximum number of addresses of a name; further ones are not tried.
    static let maximumAddresses = 32

    init(host: String, port: UInt16, numeric: String? = nil, isOneOfSeveral: Bool = false) {
        self.host = host
        self.port = port
        self.numeric = numeric
        self.isOneOfSeveral = isOneOfSeveral
    }

    /// Host and port, for people.
    var description: String {
        let name = host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
        guard isOneOfSeveral, let numeric else { return name }
        return "\(name) (\(numeric))"
    }

    /// Returns the addresses of a broker, in the order of the system's preference. Blocks for name resolution.
    ///
    /// - Parameter lookUp: returns the numeric addresses of a name.
    /// - Returns: an empty array if the name can't be resolved.
    static func resolve(_ host: String, _ port: UInt16, lookUp: (String) -> [String] = lookUp) -> [BrokerAddress] {
        if numeric(host) != nil { return [BrokerAddress(host: host, port: port)] }
        var addresses: [String] = []
        for address in lookUp(host) where !addresses.contains(address) && addresses.count < maximumAddresses {
            addresses.append(address)
        }
        return addresses.map {
            BrokerAddress(host: host, port: port, numeric: $0, isOneOfSeveral: addresses.count > 1)
        }
    }

    /// Returns the numeric addresses of a name by the system; empty if it has none. Blocks.
    static func lookUp(_ name: String) -> [String] {
        addresses(of: name, flags: 0)
    }

    /// Returns the usual text of a numeric address; nil for a name. Does not look it up.
    static func numeric(_ host: String) -> String? { addresses(of: host, flags: AI_NUMERICHOST).first }

    private static func addresses(of host: String, flags: Int32) -> [String] {
        var hints = addrinfo()
        hints.ai_flags = flags
        #if os(Linux)
            hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        #else
            hints.ai_socktype = SOCK_STREAM
        #endif
        var list: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(host, nil, &hints, &list) == 0 else { return [] }
        defer { freeaddrinfo(list) }
        var addresses: [String] = []
        var next = list
        while let info = next?.pointee {
            next = info.ai_next
            guard info.ai_family == AF_INET || info.ai_family == AF_INET6 else { continue }
            var text = [CChar](repeating: 0, count: Int(NI_MAXHOST))
            guard
                getnameinfo(info.ai_addr, info.ai_addrlen, &text, socklen_t(text.count), nil, 0, NI_NUMERICHOST) == 0
            else { continue }
            addresses.append(String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self))
        }
        return addresses
    }
}

/// The addresses that are tried in turn.
struct AddressRound {
    /// The time after which the addresses of names are looked up again: those of a headless service change with its
    /// nodes.
    static let lifetime = Duration.seconds(30)

    private var rest: ArraySlice<BrokerAddress> = []
    private var last: BrokerAddress?
    private var end: ContinuousClock.Instant?

    /// Whether all addresses were tried.
    var isEmpty: Bool { rest.isEmpty }

    /// Returns whether the round is over. Removes the rest of an old round.
    mutating func isOver(now: ContinuousClock.Instant) -> Bool {
        if let end, now > end, !rest.isEmpty { rest = [] } else if rest.isEmpty { last = nil }
        return rest.isEmpty
    }

    /// Begins a round. If the rest of an old one was removed, the address that was tried last is the last again.
    mutating func begin(_ addresses: [BrokerAddress], now: ContinuousClock.Instant) {
        rest = (addresses.filter { $0 != last } + addresses.filter { $0 == last })[...]
        end = now + Self.lifetime
    }

    /// Removes and returns the next address.
    mutating func next() -> BrokerAddress? {
        last = rest.popFirst() ?? last
        return last
    }
}
