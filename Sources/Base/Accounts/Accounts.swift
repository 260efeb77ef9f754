package import Logging
import Synchronization

/// The accounts of all clients.
///
/// Its lock is a leaf: no other lock is taken while it is held.
package final class Accounts: Sendable {
    fileprivate static let minimumSweep = 64

    fileprivate struct Table {
        var accounts: [ClientKey: ClientAccount] = [:]
        /// The shares of new accounts; nil for the initial shares.
        var shares: Limits?
        /// The number of accounts at which unused ones are removed.
        var sweep = Accounts.minimumSweep
    }

    package let limits: Limits
    /// The bytes held for all clients.
    package let memory: MemoryAccount
    package let refusals: Refusals
    private let work: WorkBucket
    private let totals: [Tally]
    private let table = Mutex(Table())

    package init(_ limits: Limits, logger: Logger) {
        self.limits = limits
        memory = MemoryAccount(limits.memoryQuota)
        refusals = Refusals(logger: logger)
        work = WorkBucket(stepsPerSecond: limits.workRate)
        totals = Resource.allCases.map { Tally(limits.quota(of: $0)) }
    }

    /// Returns the account of the clients without a token at an address.
    package func account(ofAddress address: String) -> ClientAccount { account(.address(ClientAddress(address))) }

    /// Returns the account of a client.
    package func account(_ client: ClientKey) -> ClientAccount {
        table.withLock { table in
            if let known = table.accounts[client] { return known }
            if table.accounts.count >= table.sweep { table.removeUnused() }
            let new = ClientAccount(client, in: memory, totals, work, table.shares ?? limits, refusals)
            table.accounts[client] = new
            return new
        }
    }

    /// Changes the shares that one client may have of each resource; the totals stay. Clients keep what they already
    /// have, even if it exceeds the new share.
    package func change(shares: Limits) {
        var shares = shares
        for resource in Resource.allCases { shares[resource].total = limits[resource].total }
        table.withLock { table in
            table.shares = shares
            for account in table.accounts.values { account.change(shares: shares) }
            for resource in Resource.allCases {
                totals[resource.rawValue].change(reserve: shares.quota(of: resource).reserve)
            }
        }
    }

    /// Returns the amount of a resource that all clients use.
    package func used(_ resource: Resource) -> Int { totals[resource.rawValue].used }

    /// The accounts of the clients that use resources, or did so recently.
    package var clients: [ClientAccount] { table.withLock { Array($0.accounts.values) } }
}

extension Accounts.Table {
    /// Removes the accounts without resources, unpaid work and other references. No other thread can get a reference
    /// meanwhile: the table is locked.
    fileprivate mutating func removeUnused() {
        accounts.removeUnused { $0.isEmpty }
        sweep = max(Accounts.minimumSweep, 2 * accounts.count)
    }
}
