import Access
package import Base
package import ProblemDetails
import Synchronization

/// Counts for each client the feeds that it has subscriptions to, each feed once.
///
/// The hub limits the total number of feeds, which clients share. The lock is a leaf: no other lock is taken while it
/// is held.
package final class FeedShares: Sendable {
    private struct Key: Hashable, Sendable {
        let client: ClientKey
        let observation: Observation
    }

    private struct Entry {
        let place: Place
        var subscriptions = 1
    }

    private let entries = Mutex<[Key: Entry]>([:])

    package init() {}

    /// Counts a subscription until the returned object is released.
    ///
    /// - Returns: nil if subscriptions of this kind do not share a feed.
    /// - Throws: `Problem` if the client's share of feeds is used up.
    package func take(_ observation: Observation, by account: ClientAccount) throws(Problem) -> (
        any AnyObject & Sendable
    )? {
        switch observation {
        case .ioState, .routing: return nil
        default: break
        }
        let key = Key(client: account.client, observation: observation.shared)
        if addSubscription(key) { return FeedShare(self, key) }
        let place = try account.takeOwn(observation.isTraffic ? .brokerConnections : .feeds)
        entries.withLock { entries in
            // Another thread may have added the entry first.
            if entries[key] == nil { entries[key] = Entry(place: place) } else { entries[key]?.subscriptions += 1 }
        }
        return FeedShare(self, key)
    }

    private func addSubscription(_ key: Key) -> Bool {
        entries.withLock { entries in
            guard entries[key] != nil else { return false }
            entries[key]?.subscriptions += 1
            return true
        }
    }

    private func removeSubscription(_ key: Key) {
        entries.withLock { entries in
            entries[key]?.subscriptions -= 1
            if entries[key]?.subscriptions == 0 { entries[key] = nil }
        }
    }

    /// One subscription of a client to a feed.
    private final class FeedShare: Sendable {
        private let shares: FeedShares
        private let key: Key

        init(_ shares: FeedShares, _ key: Key) {
            self.shares = shares
            self.key = key
        }

        deinit { shares.removeSubscription(key) }
    }
}
