package import Access
package import Base
package import Feeds
package import Gate
package import HTTPServer
import ProblemDetails
import Synchronization

/// The services that all connections of clients share.
package final class ClientServices: Sendable {
    let gate: Gate
    /// The resources that each client holds.
    let accounts: Accounts
    /// The threads that do the work of outbound queues.
    let workers: WorkerPool
    package let connections: ClientConnections
    package let authenticator: Authenticator
    let requestLog: RequestLog
    /// The requests that authenticated clients may answer.
    private let rights = Mutex(SharedRights())

    package init(
        gate: Gate,
        accounts: Accounts,
        workers: WorkerPool,
        connections: ClientConnections,
        authenticator: Authenticator,
        requestLog: RequestLog
    ) {
        self.gate = gate
        self.accounts = accounts
        self.workers = workers
        self.connections = connections
        self.authenticator = authenticator
        self.requestLog = requestLog
    }

    /// Charges a principal for the bytes of a request's body.
    func charge(_ principal: Principal, forBody bytes: Int) {
        accounts.spend(.bytesIn, bytes, of: principal, under: authenticator.access.policy)
    }

    /// Charges the principal of a request for the bytes of its response, and of a body that was discarded. Outbound queues
    /// charge for the bytes that they write to streams.
    package func charge(_ request: borrowing EndedRequest) {
        let policy = authenticator.access.policy
        guard policy.limits != nil, let principal = request.context as? Principal else { return }
        if request.discardedBytes > 0 { accounts.spend(.bytesIn, request.discardedBytes, of: principal, under: policy) }
        guard !request.isStream || !Self.queuedPaths.contains(request.pathTemplate ?? "") else { return }
        accounts.spend(.bytesOut, request.responseBytes, of: principal, under: policy)
    }

    /// Templates of the routes whose streams are outbound queues.
    private static let queuedPaths = TwoWayResource.paths.union([EventStreamResource.path])

    /// Returns the requests that a principal may answer. The connections of a token share them; an anonymous connection
    /// gets its own.
    func answerRights(of principal: Principal) -> AnswerRights {
        // Requests of this gateway wait at most this long, and agents are expected to do the same.
        let window = Duration.milliseconds(accounts.limits.timeout)
        let limits = accounts.limits
        func make() -> AnswerRights {
            AnswerRights(
                window: window,
                limit: limits.answerableRequestsPerClient,
                discoverAnswers: limits.discoverAnswers
            )
        }
        guard principal.subject != .anonymous else { return make() }
        return rights.withLock { $0.rights(of: principal.subject, make) }
    }
}

/// The rights to answer that the connections of each authenticated client share. Unused entries are removed, because an
/// identity provider can have any number of users.
private struct SharedRights: Sendable {
    private static let minimumSweep = 64

    private var rights: [Principal.Subject: AnswerRights] = [:]
    /// The number of entries at which unused ones are removed.
    private var sweep = minimumSweep

    mutating func rights(of subject: Principal.Subject, _ make: () -> AnswerRights) -> AnswerRights {
        if let known = rights[subject] { return known }
        if rights.count >= sweep { removeUnused() }
        let new = make()
        rights[subject] = new
        return new
    }

    /// Removes unused entries. No other thread can get a reference meanwhile: the owner has locked this.
    private mutating func removeUnused() {
        rights.removeUnused { $0.isEmpty }
        sweep = max(Self.minimumSweep, 2 * rights.count)
    }
}
