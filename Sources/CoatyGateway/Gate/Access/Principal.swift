/// A client of the gateway: who asks for an operation. Found once per request or connection.
///
/// It is an identity: what it may do depends on the policy in force, so that a change of the access configuration applies to open
/// connections too.
final class Principal: Sendable {
    /// Who owns what a client creates.
    enum Subject: Hashable, Sendable {
        /// All clients without credentials. They share what they own.
        case anonymous
        /// The clients with the token of this name.
        case token(String)
    }

    let subject: Subject
    /// The IP address of the client, or of the last proxy; empty if it has none.
    let address: String

    /// What it may do under the policy with this ``Policy/serial``. It saves looking that up for each operation.
    private let known: (serial: UInt64, permissions: Permissions?)

    /// - Parameter policy: the policy in force.
    init(_ subject: Subject, address: String, under policy: Policy) {
        self.subject = subject
        self.address = address
        known = (policy.serial, policy.permissions(of: subject))
    }

    /// Returns what it may do; nil if its token does not exist, or if clients without a token have no role.
    func permissions(under policy: Policy) -> Permissions? {
        known.serial == policy.serial ? known.permissions : policy.permissions(of: subject)
    }

    /// The name in the audit log and in `/v1/access`; nil for anonymous clients.
    var name: String? {
        if case .token(let name) = subject { name } else { nil }
    }
}
