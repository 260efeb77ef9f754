/// The costs of a client, for principals that may see other clients.
package struct ClientCost: Sendable {
    package let client: ClientKey
    /// Steps of work so far.
    package let work: Int
    /// Publications so far, and the bytes of their payloads.
    package let publications, publishedBytes: Int
    /// Bytes that are charged to it now.
    package let memory: Int
    package let connections, subscriptions, pendingRequests: Int
    /// Whether its work is currently held back in favour of other clients.
    package let isDelayed: Bool
}

extension Accounts {
    /// Maximum number of clients in ``topClients``.
    package static let maximumTopClients = 20

    /// The most expensive clients, in turn by work, memory and publications. For work, clients that have recently
    /// exceeded their guaranteed part come first, then those with the most work so far.
    package var topClients: [ClientCost] {
        let now = WorkBucket.now()
        // Read once: values must not change while they are sorted.
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
