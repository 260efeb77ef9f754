/// What a communication manager has done, and how its connection is.
///
/// Counters only grow, from the moment at which the manager was made. They count messages of the binding's protocol: over MQTT
/// an Advertise or Update event of an object type of its own goes out as two.
public struct CommunicationStatistics: Sendable, Hashable {
    /// Whether the agent is online.
    public let state: CommunicationState
    /// When the present connection came up or the last one was lost, in milliseconds since 1970; when the manager was made, if
    /// it has never been connected.
    public let since: CoatyTimestamp
    /// Number of connections after the first.
    public let reconnects: Int
    /// Why the agent is not connected; nil if it is, or no attempt has failed yet.
    public let connectionError: ConnectionError?
    /// Number of subscriptions that the broker refuses.
    public let refusedSubscriptions: Int
    /// Number of messages that came in, dropped ones included.
    public let received: Int
    /// Number of messages that were dropped because they are not what their address says, or longer than the binding takes.
    public let invalid: Int
    /// Number of publications that were written to the connection.
    public let published: Int
    /// Number of publications that were accepted while the agent was not connected, those sent since then included.
    public let deferred: Int
    /// Number of publications that are queued now, deferred or about to be written.
    public let queued: Int
    /// Size of these in bytes, with their addresses.
    public let queuedBytes: Int
    /// When the oldest of them was queued; nil if there is none.
    public let oldestQueued: ContinuousClock.Instant?
}

/// What is queued for the connection.
public struct QueuedPublications: Sendable, Hashable {
    /// Number of publications.
    public let publications: Int
    /// Size of these in bytes, with their addresses.
    public let bytes: Int
    /// Number of all operations, changes of subscriptions among them.
    public let operations: Int
}
