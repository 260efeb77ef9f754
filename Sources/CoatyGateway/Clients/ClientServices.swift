import HTTPServer
import Synchronization

/// What all connections of clients share.
final class ClientServices: Sendable {
    let gate: Gate
    /// What each client holds.
    let accounts: Accounts
    /// Do the work of outbound queues.
    let workers: WorkerPool
    let connections: ClientConnections
    let authenticator: Authenticator
    /// The requests that the clients with a token may answer, by the token's subject.
    private let rights = Mutex<[Principal.Subject: AnswerRights]>([:])

    init(
        gate: Gate,
        accounts: Accounts,
        workers: WorkerPool,
        connections: ClientConnections,
        authenticator: Authenticator
    ) {
        self.gate = gate
        self.accounts = accounts
        self.workers = workers
        self.connections = connections
        self.authenticator = authenticator
    }

    /// Returns the requests that a principal may answer. The connections of a token share them; an anonymous connection gets its
    /// own.
    func answerRights(of principal: Principal) -> AnswerRights {
        // A request of this gateway waits no longer than this, and an agent is expected not to, either.
        let window = Duration.milliseconds(accounts.limits.timeout)
        let limit = accounts.limits.answerableRequestsPerClient
        guard principal.subject != .anonymous else { return AnswerRights(window: window, limit: limit) }
        return rights.withLock { rights in
            if let known = rights[principal.subject] { return known }
            let new = AnswerRights(window: window, limit: limit)
            rights[principal.subject] = new
            return new
        }
    }

    /// Judges a pending request whenever the access policy changes.
    ///
    /// - Parameter onEnd: called with the problem if the request is no longer allowed.
    /// - Returns: a function that ends this.
    func judges(
        _ request: PermittedRequest,
        by principal: Principal,
        _ onEnd: @escaping @Sendable (Problem) -> Void
    ) -> @Sendable () -> Void {
        let gate = gate
        let observer: @Sendable () -> Void = {
            do throws(Problem) {
                try gate.judge(request, by: principal)
            } catch {
                onEnd(error)
            }
        }
        let ignore = gate.access.observe(observer)
        // The policy may have changed between the decision and this.
        observer()
        return ignore
    }
}
