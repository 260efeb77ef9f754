import Coaty
import Synchronization

/// The status of many subscriptions, each by a name.
final class Standing: Sendable {
    private let statuses = Mutex<[String: SubscriptionStatus]>([:])

    /// Returns what records the status of a subscription.
    func observer(of name: String) -> @Sendable (SubscriptionStatus) -> Void {
        { status in self.statuses.withLock { $0[name] = status } }
    }

    /// The number of subscriptions that stand.
    var count: Int { count(.standing) }

    /// The number of subscriptions of a status.
    func count(_ status: SubscriptionStatus) -> Int { statuses.withLock { $0.values.count { $0 == status } } }

    /// The status of a subscription; nil where it is not yet known.
    func status(of name: String) -> SubscriptionStatus? { statuses.withLock { $0[name] } }
}
