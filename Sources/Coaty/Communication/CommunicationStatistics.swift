/// The counters of a communication manager and the state of its connection.
///
/// Counters only increase, starting when the manager is created. They count messages of the binding's protocol: over
/// MQTT, an Advertise or Update event with a custom object type is sent as two messages.
public struct CommunicationStatistics: Sendable, Hashable {
    /// Whether the agent is online.
    public let state: CommunicationState
    /// When the current connection came up or the last one was lost, in milliseconds since 1970. If the manager has
    /// never been connected, when it was created.
    public let since: CoatyTimestamp
    /// Number of connections after the first.
    public let reconnects: Int
    /// The reason why the agent is not connected; nil if it is connected, or no attempt has failed yet.
    public let connectionError: ConnectionError?
    /// What the broker has stated about the current connection, or about the last one.
    public let properties: ConnectionProperties
    /// Number of subscriptions that the broker refuses.
    public let refusedSubscriptions: Int
    /// Number of publications that were given up because the broker closes the connection when it receives them.
    public let provenPublications: Int
    /// What the agent has learned about publications that the broker may not accept.
    public let suspects: SuspectStatistics
    /// Number of received messages, including dropped ones.
    public let received: Int
    /// Number of messages that were dropped because their content does not match their address, or because they exceed
    /// the binding's size limit.
    public let invalid: Int
    /// Number of events whose content could not be read, by sender; for at most 100 senders.
    public let invalidBySender: [CoatyUUID: Int]
    /// Number of publications that were written to the connection.
    public let published: Int
    /// Number of publications that were accepted while the agent was not connected, including those that were sent
    /// since.
    public let deferred: Int
    /// Number of publications that are queued now: deferred, or about to be written.
    public let queued: Int
    /// Size of these in bytes, with their addresses.
    public let queuedBytes: Int
    /// When the oldest of them was queued; nil if there is none.
    public let oldestQueued: ContinuousClock.Instant?
}

/// What an agent has learned from connections that the broker has closed. Suspected publications have their own connection.
public struct SuspectStatistics: Sendable, Hashable {
    /// Number of clients all of whose publications are suspected.
    public let clients: Int
    /// Number of event types, with their names, and topics that are suspected.
    public let kinds: Int
    /// The size in bytes from which publications are suspected; nil if none is.
    public let size: Int?
    /// Number of kinds and sizes that are refused to a client.
    public let refusals: Int
    /// Number of suspected publications that are queued.
    public let queued: Int

    init(_ core: borrowing Session.Core) {
        (clients, kinds, size, refusals) = core.suspects.summary
        queued = core.quarantine?.queued.publications ?? 0
    }
}

/// The publications and operations that are queued for the connection.
public struct QueuedPublications: Sendable, Hashable {
    /// Number of publications.
    public let publications: Int
    /// Size of these in bytes, with their addresses.
    public let bytes: Int
    /// Number of all operations, including changes of subscriptions.
    public let operations: Int
}

extension QueuedPublications {
    init(_ outbox: Outbox) {
        self.init(publications: outbox.publications, bytes: outbox.bytes, operations: outbox.operations)
    }
}
