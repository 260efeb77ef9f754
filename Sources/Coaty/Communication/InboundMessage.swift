/// A message that a binding received.
public struct InboundMessage: Sendable {
    /// The origin of a message.
    public enum Origin: Sendable {
        /// An event, from the agent's own namespace or from an observed one.
        case event(EventAddress)
        /// A message outside of Coaty or an IO value.
        ///
        /// - Parameters:
        ///   - topic: the name that the sender used, or the subscribed name if the broker changes names.
        ///   - selectors: the subscriptions that match the message: `raw` and `ioRoute`.
        ///   - sourceId: the IO source; nil if the binding does not know it.
        case raw(topic: String, selectors: [EventSelector], sourceId: CoatyUUID?)

        /// The sender of an event, or the IO source of a value; nil if it is not known.
        var sourceId: CoatyUUID? {
            switch self {
            case .event(let address): address.sourceId
            case .raw(_, _, let sourceId): sourceId
            }
        }
    }

    /// The origin.
    public let origin: Origin
    /// The bytes.
    public let payload: [UInt8]
    /// The protocol's name for the source or destination, such as the MQTT topic; for logs and traffic observers.
    public let label: String
    /// Whether the broker had kept the message, and delivered it because of a new subscription.
    public let isRetained: Bool

    /// Creates a message.
    public init(_ origin: Origin, payload: [UInt8], label: String, isRetained: Bool = false) {
        self.origin = origin
        self.payload = payload
        self.label = label
        self.isRetained = isRetained
    }
}
