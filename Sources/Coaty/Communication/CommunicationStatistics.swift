/// What a communication manager has done, and how its link stands.
///
/// Counters only grow, from the moment at which the manager was made. They count MQTT messages: an Advertise or Update event of
/// an object type of its own goes out as two.
public struct CommunicationStatistics: Sendable, Hashable {
    /// Whether the link is up.
    public let state: CommunicationState
    /// Since when, in milliseconds since 1970; since the manager was made, where the link has never been up.
    public let since: CoatyTimestamp
    /// How often the link came up again.
    public let reconnects: Int
    /// The messages that came in, also those that were dropped.
    public let received: Int
    /// The messages that were dropped because they are not what their topic says, or longer than the binding takes.
    public let invalid: Int
    /// The publications that were written to the link.
    public let published: Int
    /// The publications that were taken while the link was down, also those that have gone out since.
    public let deferred: Int
    /// The publications that wait now, deferred or about to be written.
    public let waiting: Int
    /// Their bytes, with their topics.
    public let waitingBytes: Int
}
