import Coaty
import HTTPServer

extension SocketSession {
    /// Maximum length of a frame before the client has authenticated, in bytes.
    static let maximumUnauthenticatedLength = 8 << 10
    /// Time that a client has to authenticate.
    static let authenticationTimeout = Duration.seconds(10)

    /// Uses a principal for all operations from now on.
    func use(_ principal: Principal) {
        let rights = services.answerRights(of: principal)
        outbound.note(deliveriesIn: rights)
        let (isFirst, deadline) = store.state.withLock { state in
            defer {
                state.principal = principal
                state.rights = rights
                state.authenticationDeadline = nil
            }
            return (state.ignoreAccess == nil, state.authenticationDeadline)
        }
        if let deadline {
            deadline.cancel()
            services.endAwaiting(from: address)
        }
        guard isFirst else { return judge() }
        let ignore = services.gate.access.observe { [weak self] in self?.judge() }
        let isClosed = store.state.withLock { state in
            if !state.isClosed { state.ignoreAccess = ignore }
            return state.isClosed
        }
        // The policy may have changed before it was observed.
        if isClosed { ignore() } else { judge() }
    }

    /// Disconnects the client if it does not authenticate in time.
    func awaitAuthentication() {
        services.beginAwaiting(from: address)
        let deadline = Deadline(after: Self.authenticationTimeout) { [weak self] in
            self?.disconnect(.notAuthenticated, "not authenticated in time")
        }
        store.state.withLock { $0.authenticationDeadline = deadline }
    }

    /// `{"op":"authenticate","id":…,"token":…}`: as the first frame, or later with a new token of the same subject.
    func authenticate(_ frame: ClientFrame) throws {
        try frame.json.refuseMembers(besides: ClientFrame.members.union(["token"]))
        let token = try FrameParameters(frame: frame.json).required("token")
        let current = store.state.withLock(\.principal)
        guard !services.authenticator.access.policy.isOpen else { return outbound.reply(.ok, id: frame.id) }
        let principal: Principal
        do throws(Problem) {
            principal = try services.authenticator.principal(token: token, address: address)
        } catch {
            guard current == nil else { throw error }
            outbound.reply(.error(error), id: frame.id)
            return disconnect(.notAuthenticated, "wrong token")
        }
        // What an anonymous client has begun stays its own; it may authenticate once.
        guard current == nil || current?.subject == .anonymous || current?.subject == principal.subject else {
            throw Problems.otherSubject
        }
        use(principal)
        outbound.reply(.ok, id: frame.id)
    }

    /// Judges all subscriptions and requests by the current policy.
    private func judge() {
        let (principal, activities) = store.state.withLock { ($0.principal, Array($0.activities.values)) }
        guard let principal else { return }
        do throws(Problem) {
            _ = try services.gate.access.permissions(of: principal)
        } catch {
            return disconnect(.accessRemoved, "access removed")
        }
        for activity in activities {
            if let observation = activity.subscription.wanted {
                judge(activity.subscription, observation)
            } else if let request = activity.request {
                judge(activity.subscription, request, principal)
            }
        }
    }

    func judge(_ subscription: ClientSubscription, _ observation: Observation) {
        services.gate.judge(subscription, Observe(observation: observation), outbound) { [store] in
            store.state.withLock(\.principal)
        }
    }

    private func judge(_ subscription: ClientSubscription, _ request: PermittedRequest, _ principal: Principal) {
        do throws(Problem) {
            try services.gate.judge(request, by: principal)
        } catch {
            outbound.refuse(subscription, error)
        }
    }

    /// Ends the connection, and discards what is queued for it.
    func disconnect(_ code: CloseCode, _ reason: String) {
        // The identity and the requests end when the connection has closed.
        outbound.close()
        connection.close(code, reason)
    }
}

extension Problems {
    static let otherSubject = Problem(
        type: typePrefix + "forbidden",
        title: "Forbidden",
        status: 403,
        detail: "The token is that of another subject. Open a new connection for it."
    )

    static let tooManyUnauthenticated = Problem(
        type: typePrefix + "too-many-unauthenticated",
        title: "Too many unauthenticated connections",
        status: 503,
        detail: "Too many connections have not authenticated yet.",
        headers: retry
    )
}
