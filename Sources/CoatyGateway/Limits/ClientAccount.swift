import HTTPServer

/// What one client holds: memory, and its share of each resource.
///
/// A client is a token, or for clients without one their address. Places and the accounts of connections keep it.
final class ClientAccount: Sendable {
    /// Whose account it is.
    let client: ClientKey
    /// The bytes that the gateway holds for the client.
    let memory: MemoryAccount
    private let tallies: [Tally]
    private let refusals: Refusals

    init(_ client: ClientKey, in memory: MemoryAccount, _ totals: [Tally], _ limits: Limits, _ refusals: Refusals) {
        self.client = client
        self.refusals = refusals
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

    /// Creates the account of one of the client's connections.
    ///
    /// - Parameter limit: the most bytes that the connection holds.
    func connection(limit: Int = .max) -> MemoryAccount { MemoryAccount(within: memory, limit: limit, owner: self) }

    /// How much of a resource the client has.
    func used(_ resource: Resource) -> Int { tallies[resource.rawValue].used }

    /// Whether the client holds nothing.
    var isEmpty: Bool { memory.used == 0 && tallies.allSatisfy { $0.used == 0 } }
}
