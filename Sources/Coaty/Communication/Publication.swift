/// Bytes that a binding carries to a destination.
public struct Publication: Sendable {
    /// Where a publication goes.
    public enum Destination: Sendable {
        /// To everybody who observes the event.
        case event(EventAddress)
        /// To the IO actors on a route that the binding has made or accepted.
        case ioRoute(String)
        /// To a topic outside of Coaty. A retained message is kept by the broker for later subscribers.
        case raw(topic: String, isRetained: Bool)
    }

    /// Where it goes.
    public let destination: Destination
    /// The bytes.
    public let payload: [UInt8]
    /// The request that the publication belongs to and is withdrawn with; nil where it belongs to none.
    let request: UInt64?
    /// What it does to the objects that the agent shares; nil where it does nothing.
    let sharing: Sharing?
    /// Whether it announces the agent and is made again for each connection.
    let isJoinEvent: Bool
    /// Released when the publication is written or given up.
    var holding: (any AnyObject & Sendable)?
    /// Released when the agent does not advertise the object again after the next connect, or ever.
    var keeping: (any AnyObject & Sendable)?
    /// When it was queued first; nil before.
    var queuedSince: ContinuousClock.Instant?
    /// How often the connection was lost while this was being written.
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

    /// The same publication after the connection was lost while it was being written.
    func attempted() -> Publication {
        var publication = self
        publication.attempts += 1
        return publication
    }

    /// The same publication as one that is made again for each connection.
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

/// What became of a publication.
///
/// Neither case says that the broker has it: Coaty publishes with QoS 0, which has no receipt.
public enum Delivery: Sendable, Hashable {
    /// The agent is connected, and the publication is written to the connection in its turn. If the connection is lost before it
    /// was written, it waits for the next connection, as if it were deferred. What was written and had not reached the
    /// broker when the connection broke is lost.
    case sent
    /// The agent is not connected. The publication waits for the next connection, unless its request ends or the
    /// communication manager stops before that.
    case deferred
}

/// A message that a binding received.
public struct InboundMessage: Sendable {
    /// What a binding knows about a message.
    public enum Origin: Sendable {
        /// An event, from the agent's own namespace or from an observed one.
        case event(EventAddress)
        /// A message outside of Coaty or an IO value.
        ///
        /// - Parameters:
        ///   - topic: the name that the sender used, or the name that was subscribed where the broker changes names.
        ///   - selectors: the subscriptions that it matches: `raw` and `ioRoute`.
        ///   - sourceId: the IO source; nil where the binding does not know it.
        case raw(topic: String, selectors: [EventSelector], sourceId: CoatyUUID?)
    }

    /// What is known about it.
    public let origin: Origin
    /// The bytes.
    public let payload: [UInt8]
    /// What the binding's protocol calls its source or destination; for logs and for who watches the traffic.
    public let label: String

    /// Creates a message.
    public init(_ origin: Origin, payload: [UInt8], label: String) {
        self.origin = origin
        self.payload = payload
        self.label = label
    }
}
