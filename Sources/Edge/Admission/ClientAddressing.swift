package import Base

/// Determines the address of a client behind proxies.
///
/// A client can send any header field, and a proxy appends to it. Therefore the field is read from its end, as long as
/// the addresses are those of trusted proxies: the first other address is the client's, because a trusted proxy has
/// written it. Only one field is ever read: a proxy forwards the others as sent by the client.
package struct ClientAddressing: Sendable, Equatable {
    /// The field that the proxies write.
    package enum Field: String, Sendable, CaseIterable {
        case none
        /// RFC 7239.
        case forwarded
        case forwardedFor = "x-forwarded-for"
    }

    package var trustedProxies: [AddressRange] = []
    package var field = Field.none

    package init(trustedProxies: [AddressRange] = [], field: Field = .none) {
        (self.trustedProxies, self.field) = (trustedProxies, field)
    }

    func isTrusted(_ address: String) -> Bool { trustedProxies.contains { $0.contains(address) } }

    /// Returns the name of the field that contains the client's address; nil if the peer is the client.
    func fieldName(forPeer peer: String) -> String? { field != .none && isTrusted(peer) ? field.rawValue : nil }

    /// Returns the address of the client.
    ///
    /// - Parameters:
    ///   - peer: the address of a trusted proxy.
    ///   - value: the value of the field, with all its lines joined by commas; nil if the request has none.
    func client(behind peer: String, _ value: String?) -> String {
        var address = peer
        for element in (value ?? "").split(separator: ",", omittingEmptySubsequences: false).reversed() {
            // Hidden or malformed: the last known proxy counts as the client.
            guard let next = Self.address(field == .forwarded ? Self.forwardedNode(element) : element) else { break }
            address = next
            if !isTrusted(next) { break }
        }
        return address
    }

    /// Returns the value of the parameter `for`.
    private static func forwardedNode(_ element: Substring) -> Substring {
        for pair in element.split(separator: ";") {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2, parts[0].trimmed.lowercased() == "for" else { continue }
            let value = parts[1].trimmed
            return value.count > 1 && value.hasPrefix("\"") && value.hasSuffix("\"")
                ? value.dropFirst().dropLast() : value
        }
        return ""
    }

    /// Returns an address without its port; nil for other text.
    private static func address(_ node: Substring) -> String? {
        let node = node.trimmed
        var text = String(node)
        if node.hasPrefix("["), let end = node.firstIndex(of: "]") {
            text = String(node[node.index(after: node.startIndex)..<end])
        } else if let colon = node.firstIndex(of: ":"), node[node.index(after: colon)...].allSatisfy(\.isNumber),
            node.contains(".")
        {
            text = String(node[..<colon])
        }
        return AddressRange.isAddress(text) ? text : nil
    }
}

extension Substring {
    fileprivate var trimmed: Substring {
        let start = drop { $0 == " " || $0 == "\t" }
        guard let end = start.lastIndex(where: { $0 != " " && $0 != "\t" }) else { return "" }
        return start[...end]
    }
}
