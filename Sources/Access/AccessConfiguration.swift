package import Coaty

/// The `access` mapping of the configuration file: `{tokens?, certificates?, anonymous?, jwt?, roles?, limits?}`.
package struct AccessConfiguration: Sendable, Equatable {
    static let maximumTokens = 1_000
    static let maximumCertificates = 1_000
    static let maximumRoles = 100
    /// Maximum number of grants of one role.
    static let maximumGrants = 100
    /// Maximum number of digests of one token.
    static let maximumDigests = 10
    /// Maximum size of the attributes of a token or certificate as JSON text, in bytes.
    static let maximumAttributes = 4 << 10
    /// Maximum size of the name of a token or role, in bytes.
    package static let maximumName = 256
    /// The role with all permissions. It has no grants.
    package static let admin = "admin"

    /// A token: its name, and the digests that identify it.
    package struct Token: Sendable, Equatable {
        let name: String
        /// A token can have several digests, so that it can be replaced without an interruption.
        let digests: [TokenDigest]
        let roles: [String]
        /// The JSON text of an object.
        let attributes: [UInt8]

        package init(name: String, digests: [TokenDigest], roles: [String], attributes: [UInt8]) {
            self.name = name
            self.digests = digests
            self.roles = roles
            self.attributes = attributes
        }
    }

    /// The client certificates with a given name, or with a name that begins with a given prefix.
    package struct Certificate: Sendable, Equatable {
        let name: NamePattern
        let roles: [String]
        /// The JSON text of an object.
        let attributes: [UInt8]
    }

    package private(set) var tokens: [Token] = []
    /// Longer names first.
    package private(set) var certificates: [Certificate] = []
    /// The roles of clients without a token; empty if they have no permissions.
    private(set) var anonymous: [String] = []
    package private(set) var roles: [String: [Grant]] = [:]
    /// The identity provider whose tokens are valid too; nil if there is none.
    package private(set) var jwt: JWTConfiguration?
    /// The rate limits of clients; nil if there are none.
    private(set) var limits: RateConfiguration?

    /// Returns a configuration with a further token.
    package func adding(_ token: Token) -> AccessConfiguration {
        var configuration = self
        configuration.tokens.append(token)
        return configuration
    }

    /// Creates a configuration from valid parts.
    package init(
        tokens: [Token],
        certificates: [Certificate] = [],
        anonymous: [String],
        roles: [String: [Grant]],
        jwt: JWTConfiguration? = nil
    ) {
        self.jwt = jwt
        self.tokens = tokens
        self.certificates = certificates
        self.anonymous = anonymous
        self.roles = roles
    }

    /// Reads the mapping.
    ///
    /// - Throws: `PayloadError` with a pointer to the error.
    package init(_ view: JSONView) throws(PayloadError) {
        try view.refuseMembers(besides: ["tokens", "certificates", "anonymous", "jwt", "roles", "limits"])
        try view.refuseDuplicates()
        guard view["tokens"] != nil || view["certificates"] != nil || view["anonymous"] != nil || view["jwt"] != nil
        else {
            throw view.invalid("must have tokens, certificates, anonymous or jwt; otherwise no client has access")
        }
        if let jwt = view["jwt"] { self.jwt = try JWTConfiguration(jwt) }
        if let roles = view["roles"] { try readRoles(roles) }
        if let limits = view["limits"] {
            self.limits = try RateConfiguration(limits) { [roles] in $0 == Self.admin || roles[$0] != nil }
        }
        if let anonymous = view["anonymous"] { self.anonymous = try readRoleNames(anonymous) }
        if let certificates = view["certificates"] { try readCertificates(certificates) }
        if let tokens = view["tokens"] { try readTokens(tokens) }
    }

    private mutating func readTokens(_ list: JSONView) throws(PayloadError) {
        var names: Set<String> = []
        var digests: Set<TokenDigest> = []
        for element in try list.nonEmptyElements(atMost: Self.maximumTokens, "tokens") {
            let token = try readToken(element)
            guard names.insert(token.name).inserted else {
                throw .invalid(pointer: element.pointer + "/name", reason: "is the name of another token")
            }
            for digest in token.digests where !digests.insert(digest).inserted {
                throw .invalid(pointer: element.pointer + "/sha256", reason: "has a digest that is there twice")
            }
            tokens.append(token)
        }
    }

    private mutating func readRoles(_ view: JSONView) throws(PayloadError) {
        guard view.kind == .object else { throw view.invalid("must be an object") }
        try view.refuseDuplicates()
        for (key, value) in view.members {
            let role = try Self.checkName(key.string ?? "", value)
            guard !role.utf8.contains(UInt8(ascii: "#")) else { throw value.invalid("has a name with #") }
            guard role != Self.admin else { throw value.invalid("is built in; choose another name") }
            guard roles.count < Self.maximumRoles else {
                throw view.invalid("has more than \(Self.maximumRoles) roles")
            }
            var grants: [Grant] = []
            for element in try value.nonEmptyElements(atMost: Self.maximumGrants, "grants") {
                grants.append(try Grant(element, role: role, number: grants.count + 1))
            }
            guard roles.updateValue(grants, forKey: role) == nil else {
                throw value.invalid("has the name of another role")
            }
        }
    }

    private func readToken(_ view: JSONView) throws(PayloadError) -> Token {
        try view.refuseMembers(besides: ["name", "sha256", "roles", "attributes"])
        try view.refuseDuplicates()
        return Token(
            name: try Self.readName(try view.required("name")),
            digests: try Self.readDigests(try view.required("sha256")),
            roles: try readRoleNames(try view.required("roles")),
            attributes: try Self.readAttributes(view["attributes"])
        )
    }

    private mutating func readCertificates(_ list: JSONView) throws(PayloadError) {
        for view in try list.nonEmptyElements(atMost: Self.maximumCertificates, "certificates") {
            try view.refuseMembers(besides: ["name", "roles", "attributes"])
            try view.refuseDuplicates()
            let name = try view.required("name")
            let text = try Self.readName(name)
            let pattern: NamePattern
            do throws(NamePattern.Malformed) {
                pattern = try NamePattern(text)
            } catch {
                throw name.invalid(error.reason)
            }
            guard !certificates.contains(where: { $0.name == pattern }) else {
                throw name.invalid("is the name of another entry")
            }
            certificates.append(
                Certificate(
                    name: pattern,
                    roles: try readRoleNames(try view.required("roles")),
                    attributes: try Self.readAttributes(view["attributes"])
                )
            )
        }
        // The order in the file must not matter. A whole name comes before the equal prefix.
        func rank(_ name: NamePattern) -> Int { 2 * name.name.text.utf8.count + (name.isWhole ? 1 : 0) }
        certificates.sort { rank($0.name) > rank($1.name) }
    }

    /// Returns the entry with the longest name or prefix that matches a certificate's name; nil if there is none.
    package func certificate(named name: String) -> Certificate? {
        let name = WireName(name)
        return certificates.first { $0.name.covers(name) }
    }

    private static func readAttributes(_ view: JSONView?) throws(PayloadError) -> [UInt8] {
        guard let view else { return Array("{}".utf8) }
        guard view.kind == .object else { throw view.invalid("must be an object") }
        guard view.bytes.count <= maximumAttributes else {
            throw view.invalid("has more than \(maximumAttributes) bytes")
        }
        try view.checkValues()
        return Array(view.bytes)
    }

    /// Reads one digest, or a list of digests.
    private static func readDigests(_ view: JSONView) throws(PayloadError) -> [TokenDigest] {
        let elements = view.kind == .string ? [view] : try view.nonEmptyElements(atMost: maximumDigests, "digests")
        var digests: [TokenDigest] = []
        for element in elements {
            guard let digest = element.string.flatMap(TokenDigest.init(hex:)) else {
                throw element.invalid("must be 64 hexadecimal digits")
            }
            digests.append(digest)
        }
        return digests
    }

    private func readRoleNames(_ view: JSONView) throws(PayloadError) -> [String] {
        var names: [String] = []
        for (element, name) in try view.nonEmptyStrings() {
            guard name == Self.admin || roles[name] != nil else {
                throw element.invalid("is not a role; define it in roles")
            }
            guard !names.contains(name) else { throw element.invalid("is there twice") }
            names.append(name)
        }
        return names
    }

    private static func readName(_ view: JSONView) throws(PayloadError) -> String {
        guard let text = view.string else { throw view.invalid("must be a string") }
        return try checkName(text, view)
    }

    /// Returns a valid name. Names are written to logs and shown in the console.
    private static func checkName(_ name: String, _ view: JSONView) throws(PayloadError) -> String {
        guard isName(name) else {
            throw view.invalid("must have a name of 1 to \(maximumName) bytes without control characters")
        }
        return name
    }

    /// Returns whether a text may be the name of a principal or role.
    static func isName(_ text: String) -> Bool {
        (1...maximumName).contains(text.utf8.count) && text.unicodeScalars.allSatisfy(WireName.isTextual)
    }
}

extension JSONView {
    /// Returns the elements of an array that is not empty.
    fileprivate func nonEmptyElements(atMost maximum: Int, _ what: String) throws(PayloadError) -> [JSONView] {
        guard kind == .array else { throw invalid("must be an array") }
        let elements = Array(elements)
        guard !elements.isEmpty else { throw invalid("must not be empty") }
        guard elements.count <= maximum else { throw invalid("has more than \(maximum) \(what)") }
        return elements
    }

    /// Returns the elements of an array of strings. The array and the strings must not be empty.
    func nonEmptyStrings() throws(PayloadError) -> [(element: JSONView, text: String)] {
        var strings: [(JSONView, String)] = []
        for element in try nonEmptyElements(atMost: Grant.maximumNames, "elements") {
            guard let text = element.string, !text.isEmpty else { throw element.invalid("must be a non-empty string") }
            strings.append((element, text))
        }
        return strings
    }

    /// Checks that an object has no duplicate members.
    func refuseDuplicates() throws(PayloadError) {
        var keys: Set<String> = []
        for (key, value) in members where !keys.insert(key.string ?? "").inserted {
            throw value.invalid("is there twice")
        }
    }
}
