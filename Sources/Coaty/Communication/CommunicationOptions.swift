public import Logging

/// The options of an agent's communication.
public struct CommunicationOptions: Sendable {
    /// Separates applications that share a broker.
    public var namespace: String
    /// Whether events of all namespaces are observed. Publications always use the agent's own namespace.
    public var shouldEnableCrossNamespacing: Bool
    /// Whether a container starts the communication manager when it is resolved. Always true for a binding that
    /// discovers its broker, whatever is set (CoatySwift developer guide).
    public var shouldAutoStart: Bool {
        get { isAutoStarted || discoversBroker }
        set { isAutoStarted = newValue }
    }
    private var isAutoStarted: Bool
    /// Whether the binding discovers its broker. The extension of a binding that makes options sets it.
    public var discoversBroker = false
    /// Limits of the publications that are queued for the connection.
    public var outboxLimits: OutboxLimits
    /// Maximum number of JSON values in a received event, including member names. An event with more values is dropped,
    /// and its observers get a gap.
    public var maximumEventValues = Int.max
    /// Counts the messages of all sessions that use these options, except the observing sessions of an agent.
    package var messageCounts = MessageCounts()
    /// Creates the binding of a communication manager.
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
        isAutoStarted = shouldAutoStart
        self.outboxLimits = outboxLimits
        self.binding = binding
    }
}

/// Limits of the publications that are queued for the connection: deferred ones, and those that were handed over and
/// are not yet written.
public struct OutboxLimits: Sendable, Hashable {
    /// Maximum number of publications.
    public var publications: Int
    /// Maximum size of their topics and payloads, in bytes.
    public var bytes: Int

    /// Creates limits; 10,000 publications of 16 MiB in all by default.
    public init(publications: Int = 10_000, bytes: Int = 16 << 20) {
        self.publications = publications
        self.bytes = bytes
    }
}
