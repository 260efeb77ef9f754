/// Bytes that a binding carries to a destination.
public struct Publication: Sendable {
    /// The destination of a publication.
    public enum Destination: Sendable {
        /// All observers of the event.
        case event(EventAddress)
        /// The IO actors on a route that the binding has made or accepted.
        case ioRoute(String)
        /// A topic outside of Coaty. The broker keeps a retained message for later subscribers.
        case raw(topic: String, isRetained: Bool)
    }

    /// The destination.
    public let destination: Destination
    /// The bytes.
    public let payload: [UInt8]
    /// The request that the publication belongs to and is withdrawn with; nil if it belongs to none.
    let request: UInt64?
    /// The effect on the objects that the agent shares; nil if there is none.
    let sharing: Sharing?
    /// Whether the publication announces the agent and is sent again on each connection.
    let isJoinEvent: Bool
    /// Released when the publication is written or given up.
    var holding: (any AnyObject & Sendable)?
    /// Released when the agent no longer advertises the object again after a reconnect.
    var keeping: (any AnyObject & Sendable)?
    /// When the publication was first queued; nil before.
    var queuedSince: ContinuousClock.Instant?
    /// Number of connections that were lost while the publication was being written.
    private(set) var attempts = 0

    init(
        _ destination: Destination,
        payload: [UInt8],
        request: UInt64? = nil,
        sharing: Sharing? = nil,
        isJoinEvent: Bool = false
    ) {
        self.destination = destination
        self.payload = payload
        self.request = request
        self.sharing = sharing
        self.isJoinEvent = isJoinEvent
    }

    /// Returns the same publication, after the connection was lost while it was being written.
    func attempted() -> Publication {
        var publication = self
        publication.attempts += 1
        return publication
    }

    /// Returns the same publication as a join event, which is sent again on each connection.
    func asJoinEvent() -> Publication {
        Publication(destination, payload: payload, isJoinEvent: true)
    }

    /// Number of bytes that count against the limits of the outbox.
    var size: Int {
        switch destination {
        case .event(let address): address.size + payload.count
        case .ioRoute(let name), .raw(let name, _): name.utf8.count + payload.count
        }
    }
}

/// The outcome of publishing an event.
///
/// Neither case means that the broker has received it: Coaty publishes with QoS 0, which has no acknowledgement.
public enum Delivery: Sendable, Hashable {
    /// The agent is connected, and the publication is written to the connection in its turn. If the connection is lost
    /// earlier, the publication is queued for the next connection, as if it were deferred. A publication that was
    /// written but has not reached the broker when the connection breaks is lost.
    case sent
    /// The agent is not connected. The publication is queued for the next connection, unless its request ends or the
    /// communication manager stops earlier.
    case deferred
}

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
    }

    /// The origin.
    public let origin: Origin
    /// The bytes.
    public let payload: [UInt8]
    /// The protocol's name for the source or destination, such as the MQTT topic; for logs and traffic observers.
    public let label: String

    /// Creates a message.
    public init(_ origin: Origin, payload: [UInt8], label: String) {
        self.origin = origin
        self.payload = payload
        self.label = label
    }
}
