/// How an agent takes part in a network.
public struct CommunicationOptions: Sendable {
    /// Separates applications that share a broker.
    public var namespace: String
    /// Whether events of all namespaces are observed. What is published goes out in the agent's own.
    public var shouldEnableCrossNamespacing: Bool
    /// How much may wait for the link.
    public var outboxLimits: OutboxLimits

    /// Creates options.
    public init(
        namespace: String = "-",
        shouldEnableCrossNamespacing: Bool = false,
        outboxLimits: OutboxLimits = OutboxLimits()
    ) {
        self.namespace = namespace
        self.shouldEnableCrossNamespacing = shouldEnableCrossNamespacing
        self.outboxLimits = outboxLimits
    }
}

/// How much may wait for the link: what was deferred while offline, and what was handed over and is not yet sent.
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
