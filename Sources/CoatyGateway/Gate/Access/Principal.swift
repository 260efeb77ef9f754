/// A client of the gateway: who asks for an operation. Found once per request or connection.
///
/// It is only an identity. What it may do is looked up in the current ``Policy`` by its subject, so that a change of the access
/// configuration applies to open connections too.
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

    init(_ subject: Subject, address: String) {
        self.subject = subject
        self.address = address
    }

    /// The name in the audit log and in `/v1/access`; nil for anonymous clients.
    var name: String? {
        if case .token(let name) = subject { name } else { nil }
    }
}
