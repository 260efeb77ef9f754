/// What the broker has stated about a connection when it accepted it.
public struct ConnectionProperties: Sendable, Hashable {
    /// The version of the protocol, such as "5"; nil if the binding has only one.
    public var protocolVersion: String?
    /// Maximum size of a packet with a publication, in bytes; nil if there is no limit. Larger publications are refused with
    /// ``CommunicationError/exceedsBrokerLimit(size:limit:)``.
    public var maximumPacketSize: Int?
    /// The keepalive that the broker demands instead of that of the options, in seconds; nil if it demands none.
    public var keepAlive: Int?
    /// Whether the broker keeps retained messages.
    public var isRetainAvailable = true
    /// Whether the broker accepts topic filters with wildcards.
    public var areWildcardsAvailable = true

    /// Creates the properties of a broker that has stated nothing.
    public init() {}
}
