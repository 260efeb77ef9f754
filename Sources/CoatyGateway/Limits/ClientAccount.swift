import HTTPServer
import Synchronization

/// What one client holds: memory, and its share of each resource.
///
/// A client is a token, or for clients without one their address. Places and the accounts of connections keep it.
final class ClientAccount: Sendable {
    /// Whose account it is.
    let client: ClientKey
    /// The bytes that the gateway holds for the client.
    let memory: MemoryAccount
    /// The work that is done for the client.
    let work: WorkRate
    private let published = Atomic(0)
    private let publishedSize = Atomic(0)
    private let levels = RateLevels()
    /// Of the requests from the client's address, also of those with credentials.
    private let arrivals = RateLevels()
    /// The outbound queues that wait because of the rate of ``Rate/Kind/bytesOut``.
    let line = Mutex(SendLine())
    /// Releases the outbound queues in the line.
    let ticket = JobTicket(isUrgent: false)
    private let tallies: [Tally]
    private let totals: [Tally]
    private let refusals: Refusals
    /// The least that a publication counts in the outbox.
    private let minimumOutbox: Int
    /// Maximum bytes of the events that one of the client's connections queues.
    let queuedBytes: Int
    /// Maximum bytes of the responses to one request, and of those that a connection queues.
    let responseBytes: Int
    /// Maximum number of replies to frames that one of the client's connections queues.
    let queuedReplies: Int

    init(
        _ client: ClientKey,
        in memory: MemoryAccount,
        _ totals: [Tally],
        _ work: WorkBucket,
        _ limits: Limits,
        _ refusals: Refusals
    ) {
        self.client = client
        self.refusals = refusals
        self.totals = totals
        self.work = WorkRate(within: work)
        minimumOutbox = limits.outboxBytesPerPublication
        (queuedBytes, responseBytes) = (limits.queuedBytes, limits.responseBytes)
        queuedReplies = limits.queuedReplies
        let quota = limits.memoryQuota
        self.memory = MemoryAccount(within: memory, limit: quota.perClient, guaranteed: quota.guaranteed)
        tallies = Resource.allCases.map { resource in
            let quota = limits.quota(of: resource)
            return Tally(within: totals[resource.rawValue], limit: quota.perClient, guaranteed: quota.guaranteed)
        }
    }

    /// Takes a part of a resource until the place is released.
    ///
    /// - Throws: `Problem` with status 429 if the client has its share already, or 503 if nothing is left.
    func take(_ resource: Resource, _ amount: Int = 1) throws(Problem) -> Place {
        let tally = tallies[resource.rawValue]
        if let reason = tally.take(amount) {
            refusals.count(.resource(resource), reason, client)
            throw Problems.exhausted(resource, reason)
        }
        return Place(of: self, tally, amount)
    }

    /// Takes a part of the client's share of a resource whose total is bounded elsewhere.
    ///
    /// - Throws: `Problem` with status 429 if the client has its share already.
    func takeOwn(_ resource: Resource) throws(Problem) -> Place {
        let (tally, total) = (tallies[resource.rawValue], totals[resource.rawValue])
        if let reason = tally.take(1, below: total, finish: { _ in nil }) {
            refusals.count(.resource(resource), reason, client)
            throw Problems.exhausted(resource, reason)
        }
        return Place(of: self, tally, 1, below: total)
    }

    /// Takes a part of the outbox for an event.
    ///
    /// - Parameters:
    ///   - bytes: those of the payload.
    ///   - publications: the number of names that the event is published under, each with the payload.
    /// - Throws: as ``take(_:_:)``.
    func takeOutbox(_ bytes: Int, publications: Int = 1) throws(Problem) -> Place {
        try take(.outbox, publications * max(bytes, minimumOutbox))
    }

    /// Counts a publication of the client, with the bytes of its payload.
    func countPublication(_ bytes: Int) {
        published.add(1, ordering: .relaxed)
        publishedSize.add(bytes, ordering: .relaxed)
    }

    /// The publications of the client so far.
    var publications: Int { published.load(ordering: .relaxed) }

    /// The bytes of their payloads.
    var publishedBytes: Int { publishedSize.load(ordering: .relaxed) }

    /// Charges memory until the charge is released.
    ///
    /// - Throws: `Problem` with status 429 if the client holds as much as it may, or 503 if nothing is left.
    func charge(_ bytes: Int) throws(Problem) -> Charge {
        do throws(MemoryAccount.NoRoom) {
            return try memory.charged(bytes)
        } catch {
            refusals.count(.memory, error.reason, client)
            throw Problems.memoryExhausted(error.reason)
        }
    }

    /// Takes an amount from what the client may do now.
    ///
    /// - Throws: `Problem` with status 429 if it may not do as much now.
    func take(_ kind: Rate.Kind, _ amount: Int, at rate: Rate, _ now: Int64 = WorkBucket.now()) throws(Problem) {
        guard let wait = levels.take(kind, amount, at: rate, now) else { return }
        refusals.count(.rate(kind), .own, client)
        throw Problems.rateLimited(kind, rate, wait: wait)
    }

    /// Takes a request from what may come from the client's address, whoever sends it.
    ///
    /// - Throws: `Problem` with status 429 if it comes too early.
    func takeArrival(at rate: Rate, _ now: Int64 = WorkBucket.now()) throws(Problem) {
        guard let wait = arrivals.take(.requests, 1, at: rate, now) else { return }
        refusals.count(.addressRate, .own, client)
        var problem = Problems.rateLimited(.requests, rate, wait: wait)
        problem.detail = "The requests from your address exceed the allowed rate. Wait for retryAfter milliseconds."
        throw problem
    }

    /// Checks whether the client owes too much for another HTTP request.
    ///
    /// - Throws: `Problem` with status 429 if it owes more than ``RateLevels/requestCredit``.
    func checkDebt(_ kind: Rate.Kind, at rate: Rate, _ now: Int64 = WorkBucket.now()) throws(Problem) {
        guard let wait = levels.take(kind, 0, at: rate, credit: RateLevels.requestCredit, now) else { return }
        refusals.count(.rate(kind), .own, client)
        throw Problems.rateLimited(kind, rate, wait: wait)
    }

    /// Returns how long the client has to wait because it owes something, in nanoseconds; nil if it does not.
    func wait(_ kind: Rate.Kind, at rate: Rate, _ now: Int64 = WorkBucket.now()) -> Int64? {
        levels.take(kind, 0, at: rate, now)
    }

    /// Counts that something was refused that is not taken from the account.
    func countRefusal(_ kind: Refusals.Kind, _ exhaustion: Tally.Exhaustion) {
        refusals.count(kind, exhaustion, client)
    }

    /// Counts that events and responses for the client wait.
    func countWait(_ kind: Rate.Kind) { refusals.countWait(kind, client) }

    /// Takes an amount from what the client may do, whether it may do as much now or not.
    func spend(_ kind: Rate.Kind, _ amount: Int, at rate: Rate, _ now: Int64 = WorkBucket.now()) {
        levels.spend(kind, amount, at: rate, now)
    }

    /// Creates the account of one of the client's connections.
    func connection() -> MemoryAccount { MemoryAccount(within: memory, limit: .max, owner: self) }

    /// Changes how much of each resource the client may have.
    func change(shares limits: Limits) {
        for resource in Resource.allCases {
            tallies[resource.rawValue].change(limit: limits.quota(of: resource).perClient)
        }
    }

    /// How much of a resource the client has.
    func used(_ resource: Resource) -> Int { tallies[resource.rawValue].used }

    /// Whether the client holds nothing, owes no work, and may do as much as ever.
    var isEmpty: Bool {
        let now = WorkBucket.now()
        return memory.used == 0 && work.isIdle(at: now) && levels.isIdle(at: now) && arrivals.isIdle(at: now)
            && tallies.allSatisfy { $0.used == 0 }
    }
}
