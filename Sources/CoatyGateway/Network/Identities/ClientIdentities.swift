import Coaty
import Coordination
import HTTPServer
import Logging
import Synchronization

/// Client identity: an agent with its own broker connection and last will.
struct ClientIdentity: Sendable {
    let manager: CommunicationManager
    /// Stops the agent and releases its place within the limit.
    let leave: @Sendable () async -> Void

    /// The client's reserved place, until the identity has left.
    let place: Place?

    /// The identity object as JSON text.
    var identity: ArraySlice<UInt8> { manager.identityEvent.payload.json["object"]?.bytes ?? [] }
}

/// Client identities of WebSocket connections. Each exists as long as its connection is open.
final class ClientIdentities: Component {
    /// Maximum time to wait for the broker in ``join(_:)``.
    static let joinTimeout = Duration.seconds(5)

    private struct State {
        var identities: [CoatyUUID: ClientIdentity] = [:]
        /// Number of identities that are being created.
        var creating = 0
        var isStopped = false
    }

    /// The messages of all identities, including those that have left.
    var messageCounts: MessageCounts { options.messageCounts }

    private let options: CommunicationOptions
    private let limit: Int
    private let logger: Logger
    private let state = Mutex(State())

    /// - Parameters:
    ///   - options: communication options of the agents.
    ///   - limit: maximum number of identities.
    init(options: CommunicationOptions, limit: Int, logger: Logger) {
        self.options = options
        self.limit = limit
        self.logger = logger
    }

    func start() async {}

    /// Stops all agents concurrently. The binding bounds the time that each of them takes.
    func stop() async {
        let identities = state.withLock { state in
            state.isStopped = true
            return state.identities.values
        }
        await withTaskGroup { group in
            for identity in identities { group.addTask { await identity.manager.stop() } }
        }
    }

    /// Creates a client identity, whose agent starts to join the network.
    ///
    /// - Throws: `Problem` if the limit is reached or the gateway stops; any error of `CommunicationManager.init`.
    func agent(name: String, place: Place? = nil) throws -> ClientIdentity {
        try state.withLock { state in
            guard !state.isStopped, state.identities.count + state.creating < limit else {
                throw Problems.tooManyIdentities(limit)
            }
            state.creating += 1
        }
        defer { state.withLock { $0.creating -= 1 } }
        var logger = logger
        let identity = Identity(name: name)
        logger[metadataKey: "identity"] = "\(identity.objectId)"
        let manager = try CommunicationManager(identity: identity, options: options, logger: logger)
        let clientIdentity = ClientIdentity(
            manager: manager,
            leave: { [weak self] in await self?.leave(manager) },
            place: place
        )
        try state.withLock { state in
            guard !state.isStopped else { throw Problems.tooManyIdentities(limit) }
            state.identities[manager.identityId] = clientIdentity
            // Inside the lock, so that `stop()` finds only started agents. Starting does not block.
            manager.start()
        }
        return clientIdentity
    }

    /// Waits until the identity is advertised, at most ``joinTimeout``.
    ///
    /// - Returns: false if the time is over; the caller must then call ``ClientIdentity/leave``.
    func join(_ identity: ClientIdentity) async -> Bool {
        await identity.manager.hasJoined(within: Self.joinTimeout, by: ContinuousClock())
    }

    private func leave(_ manager: CommunicationManager) async {
        await manager.stop()
        _ = state.withLock { $0.identities.removeValue(forKey: manager.identityId) }
    }
}

extension Problems {
    static func tooManyIdentities(_ limit: Int) -> Problem {
        Problem(
            type: typePrefix + "too-many-identities",
            title: "Too many identities",
            status: 503,
            detail: "At most \(limit) clients can have an identity at a time."
        )
    }
}
