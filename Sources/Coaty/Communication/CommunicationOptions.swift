public import Logging

/// How an agent takes part in a network.
public struct CommunicationOptions: Sendable {
    /// Separates applications that share a broker.
    public var namespace: String
    /// Whether events of all namespaces are observed. What is published goes out in the agent's own.
    public var shouldEnableCrossNamespacing: Bool
    /// Whether a container starts the communication manager when it is resolved.
    public var shouldAutoStart: Bool
    /// Limits of what is queued for the connection.
    public var outboxLimits: OutboxLimits
    /// Maximum number of JSON values, names of members included, in an event that is received. An event with more is dropped, and its
    /// observers get a gap.
    public var maximumEventValues = Int.max
    /// Counts the messages of all sessions that are made with these options, the observing sessions of an agent not included.
    package var messageCounts = MessageCounts()
    /// Makes the binding of a communication manager.
    public var binding: @Sendable (Logger) throws -> any Binding

    /// Creates options.
    public init(
        namespace: String = "-",
        shouldEnableCrossNamespacing: Bool = false,
        shouldAutoStart: Bool = false,
        outboxLimits: OutboxLimits = OutboxLimits(),
        binding: @escaping @Sendable (Logger) throws -> any Binding
    ) {
        self.namespace = namespace
        self.shouldEnableCrossNamespacing = shouldEnableCrossNamespacing
        self.shouldAutoStart = shouldAutoStart
        self.outboxLimits = outboxLimits
        self.binding = binding
    }
}

/// Limits of what is queued for the connection: deferred publications, and those that were handed over and are not yet written.
public struct OutboxLimits: Sendable, Hashable {
    /// The number of publications.
    public var publications: Int
    /// Their topics and payloads, in bytes.
    public var bytes: Int

    /// Creates limits; 10,000 publications of 16 MiB in all by default.
    public init(publications: Int = 10_000, bytes: Int = 16 << 20) {
        self.publications = publications
        self.bytes = bytes
    }
}
