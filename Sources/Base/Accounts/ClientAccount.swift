package import Coaty
package import ProblemDetails
import Synchronization

/// The resources of one client: its memory, and its share of each resource.
///
/// A client is a token or, without a token, an address. Places and the accounts of connections keep a reference to it.
package final class ClientAccount: PublicationClient {
    /// The client that the account belongs to.
    package let client: ClientKey
    /// The bytes that the gateway holds for the client.
    package let memory: MemoryAccount
    /// The work that is performed for the client.
    package let work: WorkRate
    private let published = Atomic(0)
    private let publishedSize = Atomic(0)
    private let levels = RateLevels()
    /// The rate of the requests from the client's address, including those with credentials.
    private let arrivals = RateLevels()
    /// The outbound queues that are held back because of the rate of ``Rate/Kind/bytesOut``.
    let line = Mutex(SendLine())
    /// Releases the outbound queues in the line.
    package let ticket = JobTicket(isUrgent: false)
    private let tallies: [Tally]
    private let totals: [Tally]
    private let refusals: Refusals
    /// Minimum number of bytes that a publication counts in the outbox.
    private let minimumOutbox: Int
    /// Maximum number of bytes of queued events on one of the client's connections.
    package let queuedBytes: Int
    /// Maximum number of bytes of the responses to one request, and of queued responses on a connection.
    package let responseBytes: Int
    /// Maximum number of queued replies on one of the client's connections.
    package let queuedReplies: Int

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

    package var label: String { "\(client)" }

    package func publicationWasRefused(_ publication: RefusedPublication) {
        refusals.brokerRefused(publication, of: client)
    }

    /// Takes a part of a resource until the place is released.
    ///
    /// - Throws: `Problem` with status 429 if the client's share is used up, or 503 if the resource is used up.
    package func take(_ resource: Resource, _ amount: Int = 1) throws(Problem) -> Place {
        let tally = tallies[resource.rawValue]
        if let reason = tally.take(amount) {
            refusals.count(.resource(resource), reason, client)
            throw Problems.exhausted(resource, reason)
        }
        return Place(of: self, tally, amount)
    }

    /// Takes a part of the client's share of a resource whose total is bounded elsewhere.
    ///
    /// - Throws: `Problem` with status 429 if the client's share is used up.
    package func takeOwn(_ resource: Resource) throws(Problem) -> Place {
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
    ///   - bytes: the size of the payload.
    ///   - publications: the number of names that the event is published under, each with the payload.
    /// - Throws: as ``take(_:_:)``.
    package func takeOutbox(_ bytes: Int, publications: Int = 1) throws(Problem) -> Place {
        try take(.outbox, publications * max(bytes, minimumOutbox))
    }

    /// Counts a publication of the client, with the bytes of its payload.
    package func countPublication(_ bytes: Int) {
        published.add(1, ordering: .relaxed)
        publishedSize.add(bytes, ordering: .relaxed)
    }

    /// The publications of the client so far.
    var publications: Int { published.load(ordering: .relaxed) }

    /// The bytes of their payloads.
    package var publishedBytes: Int { publishedSize.load(ordering: .relaxed) }

    /// Charges memory until the charge is released.
    ///
    /// - Throws: `Problem` with status 429 if the client's memory limit is reached, or 503 if no memory is left.
    package func charge(_ bytes: Int) throws(Problem) -> Charge {
        do throws(MemoryAccount.NoRoom) {
            return try memory.charged(bytes)
        } catch {
            refusals.count(.memory, error.reason, client)
            throw Problems.memoryExhausted(error.reason)
        }
    }

    /// Takes an amount from the client's current allowance.
    ///
    /// - Throws: `Problem` with status 429 if the allowance is too small.
    package func take(
        _ kind: Rate.Kind,
        _ amount: Int,
        at rate: Rate,
        _ now: Int64 = WorkBucket.now()
    ) throws(Problem) {
        guard let wait = levels.take(kind, amount, at: rate, now) else { return }
        refusals.count(.rate(kind), .own, client)
        throw Problems.rateLimited(kind, rate, wait: wait)
    }

    /// Takes a request from the allowance of the client's address, whoever sends it.
    ///
    /// - Throws: `Problem` with status 429 if it arrives too early.
    package func takeArrival(at rate: Rate, _ now: Int64 = WorkBucket.now()) throws(Problem) {
        guard let wait = arrivals.take(.requests, 1, at: rate, now) else { return }
        refusals.count(.addressRate, .own, client)
        var problem = Problems.rateLimited(.requests, rate, wait: wait)
        problem.detail = "The requests from your address exceed the allowed rate. Wait for retryAfter milliseconds."
        throw problem
    }

    /// Checks whether the client's debt is too large for another HTTP request.
    ///
    /// - Throws: `Problem` with status 429 if the debt exceeds ``RateLevels/requestCredit``.
    package func checkDebt(_ kind: Rate.Kind, at rate: Rate, _ now: Int64 = WorkBucket.now()) throws(Problem) {
        guard let wait = levels.take(kind, 0, at: rate, credit: RateLevels.requestCredit, now) else { return }
        refusals.count(.rate(kind), .own, client)
        throw Problems.rateLimited(kind, rate, wait: wait)
    }

    /// Returns the time until the client's debt is paid, in nanoseconds; nil if it has none.
    package func wait(_ kind: Rate.Kind, at rate: Rate, _ now: Int64 = WorkBucket.now()) -> Int64? {
        levels.take(kind, 0, at: rate, now)
    }

    /// Counts a refusal of something that is not taken from the account.
    package func countRefusal(_ kind: Refusals.Kind, _ exhaustion: Tally.Exhaustion) {
        refusals.count(kind, exhaustion, client)
    }

    /// Counts that events and responses for the client are held back.
    package func countWait(_ kind: Rate.Kind) { refusals.countWait(kind, client) }

    /// Takes an amount from the client's allowance, even if the allowance is too small.
    package func spend(_ kind: Rate.Kind, _ amount: Int, at rate: Rate, _ now: Int64 = WorkBucket.now()) {
        levels.spend(kind, amount, at: rate, now)
    }

    /// Creates the account of one of the client's connections.
    package func connection() -> MemoryAccount { MemoryAccount(within: memory, limit: .max, owner: self) }

    /// Changes the client's share of each resource.
    func change(shares limits: Limits) {
        for resource in Resource.allCases {
            tallies[resource.rawValue].change(limit: limits.quota(of: resource).perClient)
        }
    }

    /// Returns the amount of a resource that the client uses.
    func used(_ resource: Resource) -> Int { tallies[resource.rawValue].used }

    /// Whether the client uses no resources, has no unpaid work, and has its full allowance.
    var isEmpty: Bool {
        let now = WorkBucket.now()
        return memory.used == 0 && work.isIdle(at: now) && levels.isIdle(at: now) && arrivals.isIdle(at: now)
            && tallies.allSatisfy { $0.used == 0 }
    }
}
