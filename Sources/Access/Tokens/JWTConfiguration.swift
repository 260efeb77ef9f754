import Coaty

/// The `access.jwt` mapping of the configuration file: the issuer of valid tokens, and the use of their claims.
package struct JWTConfiguration: Sendable, Equatable {
    /// The location of the keys.
    package enum Keys: Sendable, Hashable {
        /// PEM, or a JWK Set.
        case file(String)
        /// The HTTPS URL of a JWK Set; HTTP only on loopback addresses.
        case url(String, authorities: String?)
    }

    /// A claim, as the names of the members on the path to it.
    typealias Path = [String]

    private static let maximumAudiences = 10
    private static let maximumText = 2048
    private static let maximumAttributes = 100
    /// Claims about the token rather than the user. As attributes, they would give each token different permissions.
    static let tokenClaims: Set<String> = [
        "iss", "sub", "aud", "exp", "nbf", "iat", "jti", "sid", "session_state", "auth_time", "nonce", "at_hash",
        "c_hash",
    ]

    package let issuer: String
    /// The accepted audiences.
    let audiences: [String]
    package let keys: Keys
    let algorithms: Set<SignatureAlgorithm>
    /// The claim that contains the names of roles; nil if no token has roles.
    let roles: Path?
    /// The claims that conditions test as attributes; nil for all except ``tokenClaims``.
    let attributes: [String]?
    /// The name in the claim of roles that grants the built-in role `admin`; nil if none does.
    let admin: String?

    /// Reads the mapping.
    ///
    /// - Throws: `PayloadError` with a pointer to the error.
    init(_ view: JSONView) throws(PayloadError) {
        try view.refuseMembers(besides: [
            "issuer", "audience", "keys", "keys-ca-file", "algorithms", "roles", "attributes", "admin",
        ])
        try view.refuseDuplicates()
        issuer = try Self.text(try view.required("issuer"))
        audiences = try Self.texts(try view.required("audience"), atMost: Self.maximumAudiences)
        keys = try Self.readKeys(try view.required("keys"), authorities: view["keys-ca-file"])
        if let view = view["algorithms"] {
            var algorithms: Set<SignatureAlgorithm> = []
            for (element, text) in try view.nonEmptyStrings() {
                guard let algorithm = SignatureAlgorithm(rawValue: text) else {
                    let names = SignatureAlgorithm.allCases.map(\.rawValue).joined(separator: ", ")
                    throw element.invalid("must be one of \(names)")
                }
                algorithms.insert(algorithm)
            }
            self.algorithms = algorithms
        } else {
            algorithms = SignatureAlgorithm.asymmetric
        }
        if case .url = keys, algorithms.contains(.hs256) {
            throw (view["algorithms"] ?? view).invalid(
                "must not have HS256 with keys from a URL: a secret is in a file"
            )
        }
        if let view = view["roles"] { roles = try Self.readPath(view) } else { roles = nil }
        if let view = view["attributes"] {
            attributes = try Self.texts(view, atMost: Self.maximumAttributes)
        } else {
            attributes = nil
        }
        if let admin = view["admin"] {
            guard roles != nil else { throw admin.invalid("needs roles, the claim in which this name is") }
            self.admin = try Self.text(admin)
        } else {
            admin = nil
        }
    }

    private static func readKeys(_ view: JSONView, authorities: JSONView?) throws(PayloadError) -> Keys {
        let location = try text(view)
        guard location.contains("://") else {
            if let authorities { throw authorities.invalid("only with keys from a URL") }
            return .file(location)
        }
        guard KeyURL(location) != nil else {
            throw view.invalid(
                "must be a file, an https URL, or an http URL of a loopback address; without user information"
            )
        }
        return .url(location, authorities: try authorities.map(text))
    }

    /// Reads `claims.a.b`, or a list of names, which may contain dots.
    private static func readPath(_ view: JSONView) throws(PayloadError) -> Path {
        if view.kind == .array { return try texts(view, atMost: 10) }
        let names = try text(view).split(separator: ".", omittingEmptySubsequences: false).map(String.init)
        guard names.count >= 2, names[0] == "claims", !names.contains("") else {
            throw view.invalid("must be claims.NAME, claims.NAME.NAME, or a list of names")
        }
        return Array(names.dropFirst())
    }

    private static func text(_ view: JSONView) throws(PayloadError) -> String {
        guard let text = view.string, !text.isEmpty, text.utf8.count <= maximumText,
            text.unicodeScalars.allSatisfy(WireName.isTextual)
        else { throw view.invalid("must be a text of 1 to \(maximumText) bytes without control characters") }
        return text
    }

    /// Reads one text or a list.
    private static func texts(_ view: JSONView, atMost maximum: Int) throws(PayloadError) -> [String] {
        guard view.kind == .array else { return [try text(view)] }
        let elements = Array(view.elements)
        guard (1...maximum).contains(elements.count) else { throw view.invalid("must have 1 to \(maximum) elements") }
        return try elements.map { element throws(PayloadError) in try text(element) }
    }
}

/// A URL from which keys are fetched.
struct KeyURL: Sendable {
    let scheme: String
    let isLoopback: Bool

    /// Returns nil if the URL is neither HTTPS, nor HTTP at a loopback address.
    init?(_ text: String) {
        guard let end = text.range(of: "://") else { return nil }
        scheme = text[..<end.lowerBound].lowercased()
        let authority = text[end.upperBound...].prefix { !"/?#".contains($0) }
        guard !authority.contains("@"), !authority.contains("\\"), text.utf8.allSatisfy({ 0x21...0x7E ~= $0 }),
            let host = HostName(authority: String(authority))
        else { return nil }
        let name = host.text.hasPrefix("[") ? String(host.text.dropFirst().dropLast()) : host.text
        isLoopback = name == "localhost" || HostName.isLoopback(name)
        guard scheme == "https" || scheme == "http" && isLoopback else { return nil }
    }
}
