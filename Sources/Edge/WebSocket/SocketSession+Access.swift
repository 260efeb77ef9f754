import Access
import Base
import Coaty
import Feeds
import ProblemDetails

extension SocketSession {
    /// The memory of a connection without its queue, in bytes.
    static let cost = 8 << 10
    /// Maximum length of a frame before the client has authenticated, in bytes: a token, and the rest of the frame.
    var maximumUnauthenticatedLength: Int { services.accounts.limits.tokenSize + 1024 }

    /// Uses a principal for all operations from now on.
    func use(_ principal: Principal) {
        let rights = services.answerRights(of: principal)
        outbound.note(deliveriesIn: rights)
        let deadline = store.state.withLock { state in
            state.rights = rights
            return state.authenticationDeadline.take()
        }
        deadline?.cancel()
        client.use(principal)
    }

    /// Disconnects the client if it does not authenticate in time.
    func awaitAuthentication() {
        let deadline = Deadline(after: .seconds(services.accounts.limits.handshakeTimeout)) { [weak self] in
            self?.disconnect(.notAuthenticated, "not authenticated in time")
        }
        store.state.withLock { $0.authenticationDeadline = deadline }
    }

    /// Handles `{"op":"authenticate","id":…,"token":…}`, as the first frame or later with a new token of the same
    /// subject.
    func authenticate(_ frame: ClientFrame) throws {
        try frame.json.refuseMembers(besides: ClientFrame.members.union(["token"]))
        let token = try FrameParameters(frame: frame.json, limits: services.accounts.limits).required("token")
        let current = principal
        guard !services.authenticator.access.policy.isOpen else { return outbound.reply(.ok, id: frame.id) }
        let principal: Principal
        do throws(Problem) {
            principal = try services.authenticator.principal(token: token, address: record.address)
        } catch {
            guard current == nil else { throw error }
            fail(frame.op, id: frame.id, error)
            // The same token may be valid later.
            if error.status == 503 { return disconnect(.tryAgainLater, "keys not loaded") }
            if error.isTokenNotYetValid { return disconnect(.tryAgainLater, "token not yet valid") }
            return disconnect(.notAuthenticated, "wrong token")
        }
        // A client without a token keeps its subscriptions and requests when it authenticates, which it may do only
        // once.
        guard current?.subject.isAmbient ?? true || current?.subject == principal.subject else {
            throw Problems.otherSubject
        }
        try move(to: principal)
        use(principal)
        outbound.reply(.authenticated(principal.validity), id: frame.id)
    }

    /// Counts the connection for the principal instead of its address.
    ///
    /// - Throws: `Problem` if the principal has reached its limit of connections.
    private func move(to principal: Principal) throws(Problem) {
        let account = services.accounts.account(of: principal)
        guard let places = store.state.withLock(\.places), places.account !== account || !places.isAuthenticated else {
            return
        }
        let moved = try Places(account, encryption: places.encryption)
        store.state.withLock { if $0.places != nil { $0.places = moved } }
        outbound.move(to: account)
        connection.budget = outbound.memory
    }

    /// Disconnects the client, whose principal has no permissions any more.
    func expel(_ problem: Problem) {
        if problem.isExpiry {
            disconnect(.tokenExpired, "token expired", .denied)
        } else {
            disconnect(.accessRemoved, "access removed", .denied)
        }
    }

    /// Ends the connection, and discards its queued frames.
    ///
    /// - Parameter outcome: the outcome of its subscriptions and requests; nil if it depends on whether they have begun.
    func disconnect(_ code: CloseCode, _ reason: String, _ outcome: OperationCounts.Outcome? = nil) {
        // The identity and the requests end when the connection has closed.
        outbound.close(outcome)
        connection.close(code, reason)
    }
}

extension SocketSession {
    /// The reserved places of a client's connection.
    struct Places: Sendable {
        let account: ClientAccount
        /// The memory of the connection's encryption, in bytes.
        let encryption: Int
        private let connection: Place
        private let unauthenticated: Place?
        private let charge: Charge

        var isAuthenticated: Bool { unauthenticated == nil }

        init(_ account: ClientAccount, isAuthenticated: Bool = true, encryption: Int) throws(Problem) {
            self.account = account
            self.encryption = encryption
            unauthenticated = isAuthenticated ? nil : try account.take(.unauthenticated)
            connection = try account.take(.connections)
            charge = try account.charge(SocketSession.cost + encryption)
        }

        /// - Parameter principal: nil if the client must authenticate first.
        init(of principal: Principal?, address: String, encryption: Int, in accounts: Accounts) throws(Problem) {
            if let principal {
                try self.init(accounts.account(of: principal), encryption: encryption)
            } else {
                try self.init(accounts.account(ofAddress: address), isAuthenticated: false, encryption: encryption)
            }
        }
    }
}

extension Problems {
    static let otherSubject = Problem(
        type: typePrefix + "forbidden",
        title: "Forbidden",
        status: 403,
        detail: "The token belongs to another subject than this connection. Open a new connection for it."
    )
}
