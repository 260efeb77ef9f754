import Coaty
import Synchronization

/// The status of many subscriptions, by name.
final class Standing: Sendable {
    private let statuses = Mutex<[String: SubscriptionStatus]>([:])

    /// Returns a function that records the status of a subscription.
    func observer(of name: String) -> @Sendable (SubscriptionStatus) -> Void {
        { status in self.statuses.withLock { $0[name] = status } }
    }

    /// The number of active subscriptions.
    var count: Int { count(.standing) }

    /// Returns the number of subscriptions with a status.
    func count(_ status: SubscriptionStatus) -> Int { statuses.withLock { $0.values.count { $0 == status } } }

    /// Returns the status of a subscription; nil if it is not known yet.
    func status(of name: String) -> SubscriptionStatus? { statuses.withLock { $0[name] } }
}
