package import Base
import Coaty

/// The `access.limits` mapping of the configuration file: `{roles?, anonymous?, address?}`.
package struct RateConfiguration: Sendable, Equatable {
    private var roles: [String: Rates] = [:]
    /// The rates of each address of clients without credentials, instead of the rates of their roles.
    private var anonymous: Rates?
    /// The rate of requests from one address, for all clients together; nil for no limit.
    package private(set) var address: Rate?

    /// Reads the mapping.
    ///
    /// - Parameter isRole: returns whether there is a role with a name.
    /// - Throws: `PayloadError` with a pointer to the error.
    init(_ view: JSONView, isRole: (String) -> Bool) throws(PayloadError) {
        try view.refuseMembers(besides: ["roles", "anonymous", "address"])
        try view.refuseDuplicates()
        if let anonymous = view["anonymous"] { self.anonymous = try Self.rates(anonymous) }
        if let address = view["address"] {
            // Before authentication, only the address of a client is known.
            try address.refuseMembers(besides: [Rate.Kind.requests.name])
            self.address = try Self.rates(address)[.requests]
        }
        guard let roles = view["roles"] else { return }
        guard roles.kind == .object else { throw roles.invalid("must be an object") }
        try roles.refuseDuplicates()
        for (key, value) in roles.members {
            let role = key.string ?? ""
            guard isRole(role) else { throw value.invalid("is not for a role; define \(role) in roles") }
            self.roles[role] = try Self.rates(value)
        }
    }

    private static func rates(_ view: JSONView) throws(PayloadError) -> Rates {
        try view.refuseMembers(besides: Set(Rate.Kind.allCases.map(\.name)))
        try view.refuseDuplicates()
        var rates = Rates()
        for kind in Rate.Kind.allCases {
            guard let member = view[kind.key] else { continue }
            do throws(Rate.Malformed) {
                rates[kind] = try Rate(member.string ?? "", of: kind)
            } catch {
                throw member.invalid(error.reason)
            }
        }
        return rates
    }

    /// Returns the rates of a client with some roles: for each kind, the largest rate among the roles.
    package func rates(roles names: [String], isAnonymous: Bool) -> Rates {
        if isAnonymous, let anonymous { return anonymous }
        var rates = Rates()
        for name in names { if let role = roles[name] { rates.formUnion(role) } }
        return rates
    }
}
