import Access
import Base
import COpenSSL
import HTTPServer
import ProblemDetails

/// Decides on each HTTP request by its head, and determines its principal.
struct RequestAdmission: Sendable {
    let client: ClientAdmission
    let accounts: Accounts
    /// Templates of the routes that need no permission.
    let publicPaths: Set<String>
    /// Templates of the routes that pages of every origin may load.
    let sharedPaths: Set<String>
    /// In seconds; 0 sends no `Strict-Transport-Security`.
    var hstsMaxAge = 0

    func admit(_ head: borrowing HTTPRequestHead) -> HTTPAdmission {
        let origin = head.connection
        var headers: [(name: String, value: String)] = []
        // Browsers ignore it over HTTP (RFC 6797, section 8.1).
        if hstsMaxAge > 0, origin?.isEncrypted == true {
            headers.append(("Strict-Transport-Security", "max-age=\(hstsMaxAge)"))
        }
        let address = client.address(of: head)
        do throws(Problem) {
            let path = head.pathTemplate ?? ""
            let browserPolicy = client.authenticator.access.browserPolicy
            let isShared = sharedPaths.contains(path)
            if let preflight = browserPolicy.preflight(head, isPublic: isShared) { return .answer(preflight) }
            let sender = try browserPolicy.sender(of: head, isPublic: isShared)
            headers += BrowserPolicy.headers(for: sender)
            let isPublic = head.pathTemplate == nil || publicPaths.contains(path)
            let access = client.authenticator.access.policy
            if !isPublic, access.limits?.address != nil, head.method != .options {
                try accounts.takeArrival(from: address, under: access)
            }
            let principal = try isPublic ? nil : self.principal(of: head, from: address, sender, under: access)
            // If clients without a token have no permissions, a foreign page that reaches the gateway has none, either.
            if principal?.subject.isAmbient ?? (access.permissions(of: .anonymous) != nil) {
                try browserPolicy.checkHost(head)
            }
            if let principal { try limit(head, principal, under: access) }
            guard !isPublic, principal == nil else {
                return .admit(
                    headers: headers,
                    context: principal ?? unknownClient(address, of: head),
                    budget: budget(of: head, from: address)
                )
            }
            guard access.permissions(of: .anonymous) != nil || head.method == .options else {
                throw Problems.noToken
            }
            let last = head.connectionState as? ConnectionState
            let anonymous =
                last?.anonymous(at: address, under: access) ?? Principal(.anonymous, address: address, under: access)
            if head.method != .options {
                try hold(head, for: anonymous, nil, under: access)
                try limit(head, anonymous, under: access)
            }
            return .admit(headers: headers, context: anonymous, budget: budget(of: head, from: address))
        } catch {
            var problem = error
            client.authenticator.access.noteRefusal(problem, ofPageFrom: head.header("Origin"))
            problem.headers += headers
            return .answer(problem.response(), context: unknownClient(address, of: head))
        }
    }

    /// Counts a request. Its body and the body of its response are counted after they are transferred, so a client that
    /// has exceeded its rate is refused with its next request.
    ///
    /// - Throws: `Problem` with status 429 if it arrives too early.
    private func limit(_ head: borrowing HTTPRequestHead, _ principal: Principal, under policy: Policy) throws(Problem)
    {
        guard head.method != .options, let rates = principal.rates(under: policy) else { return }
        let account = accounts.account(of: principal)
        switch head.method {
        case .post, .put, .patch: if let rate = rates[.bytesIn] { try account.take(.bytesIn, 0, at: rate) }
        default: break
        }
        if let rate = rates[.bytesOut] { try account.checkDebt(.bytesOut, at: rate) }
        if let rate = rates[.requests] { try account.take(.requests, 1, at: rate) }
    }

    /// Returns the address of the client for the request log; nil if it is that of the connection.
    private func unknownClient(_ address: String, of head: borrowing HTTPRequestHead) -> UnknownClient? {
        address == head.peer ? nil : UnknownClient(address)
    }

    /// Returns the memory account for the request's body: that of the client to which the connection is charged, or of
    /// its address.
    private func budget(of head: borrowing HTTPRequestHead, from address: String) -> MemoryAccount {
        if let state = head.connectionState as? ConnectionState { return state.memory }
        return accounts.account(ofAddress: address).connection()
    }

    /// - Returns: nil if the request has no credentials.
    private func principal(
        of head: borrowing HTTPRequestHead,
        from address: String,
        _ sender: BrowserPolicy.Sender,
        under policy: Policy
    ) throws(Problem) -> Principal? {
        if let last = head.connectionState as? ConnectionState, last.isCurrent(policy),
            head.withHeader("Authorization", last.isSame(as:)) ?? (last.isOfCertificate && ticket(of: head) == nil),
            last.principal.address == address
        {
            return last.principal
        }
        let authorization = head.header("Authorization")
        let principal = try client.principal(of: head, authorization, ticket: ticket(of: head), from: address, sender)
        if let principal { try hold(head, for: principal, authorization, under: policy) }
        return principal
    }

    /// Returns the ticket in the URL. A URL may be logged, so a ticket can only open one stream.
    private func ticket(of head: borrowing HTTPRequestHead) -> String? {
        head.pathTemplate == EventStreamResource.path ? head.queryValue(QueryNames.ticket) : nil
    }

    /// Reserves a place for the connection of a principal. The principal counts one connection as long as it sends the
    /// requests on it.
    ///
    /// - Throws: `Problem` if there is no place. The connection is closed in that case.
    private func hold(
        _ head: borrowing HTTPRequestHead,
        for principal: Principal,
        _ authorization: String?,
        under policy: Policy
    ) throws(Problem) {
        let last = head.connectionState as? ConnectionState
        let held: ConnectionState.Held
        // Clients without a token are counted by their addresses, and a proxy can send requests of several addresses on
        // one connection.
        if let last, last.principal.subject == principal.subject,
            principal.subject != .anonymous || last.principal.address == principal.address
        {
            guard authorization != nil || !last.isCurrent(policy) else { return }
            held = last.held
        } else {
            do throws(Problem) {
                held = try ConnectionState.Held(
                    accounts.account(of: principal),
                    encryption: head.connection?.encryptionCost ?? 0
                )
            } catch {
                var problem = error
                problem.headers.append(("Connection", "close"))
                throw problem
            }
        }
        head.connectionState = ConnectionState(principal, authorization, under: policy, held)
    }
}

/// The principal and the credentials of the last request on a connection, and the client's place for it. Most clients
/// send the same credentials with each request; then the digest of the token is not computed again.
private final class ConnectionState: Sendable {
    /// The resources that a client uses for the connection.
    struct Held {
        /// The memory of a connection without bodies, in bytes. libmicrohttpd's memory for it is added.
        static let cost = 4 << 10

        let place: Place
        let charge: Charge
        /// Charges the bodies of requests.
        let memory: MemoryAccount

        /// - Parameter encryption: the memory of the connection's encryption, in bytes.
        init(_ account: ClientAccount, encryption: Int) throws(Problem) {
            place = try account.take(.connections)
            charge = try account.charge(Self.cost + encryption)
            memory = account.connection()
        }
    }

    let principal: Principal
    let held: Held
    private let authorization: [UInt8]?
    private let policySerial: UInt64

    init(_ principal: Principal, _ authorization: String?, under policy: Policy, _ held: Held) {
        self.principal = principal
        self.held = held
        self.authorization = authorization.map { Array($0.utf8) }
        policySerial = policy.serial
    }

    var memory: MemoryAccount { held.memory }

    /// Whether the principal is that of the connection's certificate, which does not change.
    var isOfCertificate: Bool {
        if case .certificate = principal.subject { true } else { false }
    }

    /// Returns whether the token has not expired and the policy has not been replaced: another policy may not contain
    /// the token.
    func isCurrent(_ policy: Policy) -> Bool { policySerial == policy.serial && principal.isValid }

    /// Returns the principal if it is a client without a token, at this address.
    func anonymous(at address: String, under policy: Policy) -> Principal? {
        principal.subject == .anonymous && principal.address == address && isCurrent(policy) ? principal : nil
    }

    /// Compares in constant time, because the next request may come from another client behind the same proxy.
    func isSame(as other: UnsafeBufferPointer<UInt8>) -> Bool {
        guard let authorization else { return false }
        return other.count == authorization.count
            && CRYPTO_memcmp(other.baseAddress, authorization, other.count) == 0
    }
}
