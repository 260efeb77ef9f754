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
    /// The object that the publication advertises, and that the agent advertises again after a reconnect.
    private(set) var sharedObjectId: CoatyUUID?
    /// Whether the publication was queued when the connection came up.
    var isDeferred = false
    /// Whether the binding must write it when the broker has read all others, and wait until the broker has read it before
    /// it takes the next operation: the broker may close the connection because of it.
    public internal(set) var isWrittenAlone = false
    /// Released when the publication is written or given up.
    var holding: (any PublicationHolder)?
    /// Released when the agent no longer advertises the object again after a reconnect.
    var keeping: (any PublicationHolder)?
    /// The client that publishes; nil for the agent itself.
    var client: (any PublicationClient)?
    /// When the publication was first queued; nil before.
    var queuedSince: ContinuousClock.Instant?
    /// Whether the binding has taken a part of its request before.
    var isPartOfTaken = false
    /// Number of connections that were lost while the publication was being written on them.
    var attempts = 0

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
        if case .advertises(let id, _, _)? = sharing { sharedObjectId = id }
    }

    /// Returns the same publication as a join event, which is sent again on each connection.
    func asJoinEvent() -> Publication {
        var publication = Publication(destination, payload: payload, isJoinEvent: true)
        publication.sharedObjectId = sharedObjectId
        publication.client = client
        return publication
    }

    /// Whether it announces the agent itself or one of its IO nodes.
    var isAnnouncement: Bool { isJoinEvent && sharedObjectId == nil }

    /// Whether it is published again if it may be lost, because it describes a state.
    var isState: Bool { sharedObjectId != nil || isRetained }

    /// Whether the broker is to keep the message for later subscribers.
    var isRetained: Bool {
        if case .raw(_, let isRetained) = destination { isRetained } else { false }
    }

    /// Number of bytes that count against the limits of the outbox.
    var size: Int {
        switch destination {
        case .event(let address): address.size + payload.count
        case .ioRoute(let name), .raw(let name, _): name.utf8.count + payload.count
        }
    }
}
