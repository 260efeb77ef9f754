import HTTPServer
import Synchronization

/// What all connections of clients share.
final class ClientServices: Sendable {
    let gate: Gate
    /// Counts the bytes queued for all clients.
    let memory: QueueMemory
    /// What each client holds.
    let accounts: Accounts
    let connections: ClientConnections
    let authenticator: Authenticator
    /// Maximum timeout of a request, in milliseconds.
    let maximumTimeout: Int
    /// Maximum number of connections that have not authenticated, in all and of one address.
    static let maximumUnauthenticated = 1000
    static let maximumUnauthenticatedOfAddress = 100

    /// The number of connections that have not authenticated, by address.
    private let unauthenticated = Mutex<[String: Int]>([:])
    /// The requests that the clients with a token may answer, by the token's subject.
    private let rights = Mutex<[Principal.Subject: AnswerRights]>([:])

    init(
        gate: Gate,
        memory: QueueMemory,
        accounts: Accounts,
        connections: ClientConnections,
        authenticator: Authenticator,
        maximumTimeout: Int
    ) {
        self.gate = gate
        self.memory = memory
        self.accounts = accounts
        self.connections = connections
        self.authenticator = authenticator
        self.maximumTimeout = maximumTimeout
    }

    /// Returns the requests that a principal may answer. The connections of a token share them; an anonymous connection gets its
    /// own.
    func answerRights(of principal: Principal) -> AnswerRights {
        // A request of this gateway waits no longer than this, and an agent is expected not to, either.
        let window = Duration.milliseconds(maximumTimeout)
        guard principal.subject != .anonymous else { return AnswerRights(window: window) }
        return rights.withLock { rights in
            if let known = rights[principal.subject] { return known }
            let new = AnswerRights(window: window)
            rights[principal.subject] = new
            return new
        }
    }

    /// Returns whether one more connection of an address may be opened that has not authenticated.
    func mayAwaitAuthentication(from address: String) -> Bool {
        unauthenticated.withLock { counts in
            counts[address, default: 0] < Self.maximumUnauthenticatedOfAddress
                && counts.values.reduce(0, +) < Self.maximumUnauthenticated
        }
    }

    func beginAwaiting(from address: String) { unauthenticated.withLock { $0[address, default: 0] += 1 } }

    func endAwaiting(from address: String) {
        unauthenticated.withLock { counts in
            counts[address, default: 0] -= 1
            if counts[address] == 0 { counts[address] = nil }
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
