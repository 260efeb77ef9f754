/// Initial content of a subscription.
package struct SubscriptionStart: Sendable {
    /// Cursor after which the client can resume before the first event arrives; nil if it can't.
    var cursor: FeedCursor?
    /// Gap before the first delivered event, if events are missing there.
    var gap: QueuedItem?
    /// The last events of the objects or IO sources.
    var latest: LatestSnapshot?
    /// Objects currently in the network.
    var snapshot: ObjectSnapshot?
    /// Events from before the start of the subscription, or from the time of the snapshot's delivery.
    var replay: Replay?
}
