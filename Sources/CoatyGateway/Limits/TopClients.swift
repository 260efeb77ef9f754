/// What a client costs, for those who may see other clients.
struct ClientCost: Sendable {
    let client: ClientKey
    /// Steps of work so far.
    let work: Int
    /// Publications so far, and the bytes of their payloads.
    let publications, publishedBytes: Int
    /// Bytes that are held for it now.
    let memory: Int
    let connections, subscriptions, pendingRequests: Int
    /// Whether its further work waits for that of others.
    let isDelayed: Bool
}

extension Accounts {
    /// Maximum number of clients in ``topClients``.
    static let maximumTopClients = 20

    /// The clients that cost most, by turns in work, memory and publications. In work, those come first that have used more than their
    /// guaranteed part lately, then those that have used most so far.
    var topClients: [ClientCost] {
        let now = WorkBucket.now()
        // Read once: an order must not change while it is sorted by.
        let all = clients.map { account in
            (
                account: account, excess: account.work.excess(at: now), work: account.work.spent,
                memory: account.memory.used, publications: account.publications
            )
        }
        let orders = [
            all.indices.sorted { (all[$0].excess, all[$0].work) > (all[$1].excess, all[$1].work) },
            all.indices.sorted { all[$0].memory > all[$1].memory },
            all.indices.sorted { all[$0].publications > all[$1].publications },
        ]
        var chosen: [Int] = []
        for rank in all.indices {
            for order in orders where !chosen.contains(order[rank]) && chosen.count < Self.maximumTopClients {
                chosen.append(order[rank])
            }
            if chosen.count == Self.maximumTopClients { break }
        }
        return chosen.map { index in
            let entry = all[index]
            return ClientCost(
                client: entry.account.client,
                work: entry.work,
                publications: entry.publications,
                publishedBytes: entry.account.publishedBytes,
                memory: entry.memory,
                connections: entry.account.used(.connections),
                subscriptions: entry.account.used(.subscriptions),
                pendingRequests: entry.account.used(.requests),
                isDelayed: entry.account.work.isOverdrawn(at: now)
            )
        }
    }
}
