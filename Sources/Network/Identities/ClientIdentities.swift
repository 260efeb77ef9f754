package import Access
package import Base
package import Coaty
import Coordination
package import Logging
import ProblemDetails
import Synchronization

/// Client identity: an agent with its own broker connection and last will.
package struct ClientIdentity: Sendable {
    package let manager: CommunicationManager
    /// With this token the client can resume the identity on another connection.
    package let resumeToken: String
    /// Stops the agent and releases its place within the limit.
    package let leave: @Sendable () async -> Void

    /// The identity object as JSON text.
    package var identity: ArraySlice<UInt8> { manager.identityEvent.payload.json["object"]?.bytes ?? [] }
}

/// Client identities of WebSocket connections. Each exists as long as its connection is open.
package final class ClientIdentities: Component {
    /// The client that asks for an identity.
    package struct Client: Sendable {
        let subject: Principal.Subject
        /// Reserves the client's place, which is kept until the identity has left.
        let takePlace: @Sendable () throws -> Place?
        /// Whether the connection is open. Called under a lock.
        let isOpen: @Sendable () -> Bool
        /// Ends the connection, because the identity was resumed on another one. Must not block.
        let disconnect: @Sendable () -> Void

        package init(
            subject: Principal.Subject,
            takePlace: @escaping @Sendable () throws -> Place?,
            isOpen: @escaping @Sendable () -> Bool,
            disconnect: @escaping @Sendable () -> Void
        ) {
            self.subject = subject
            self.takePlace = takePlace
            self.isOpen = isOpen
            self.disconnect = disconnect
        }
    }

    /// Maximum time to wait for the broker in ``join(_:resuming:for:)``.
    private static let joinTimeout = Duration.seconds(5)

    private struct Entry {
        let manager: CommunicationManager
        let place: Place?
        let disconnect: @Sendable () -> Void
        /// Whether an earlier agent of this identity has left, and is not yet deadvertised.
        let hasLeftBefore: Bool
        var isLeaving = false
    }

    private struct State {
        var entries: [CoatyUUID: Entry] = [:]
        /// The identities that are being created.
        var creating: Set<CoatyUUID> = []
        var isStopped = false
    }

    /// The messages of all identities, including those that have left.
    package var messageCounts: MessageCounts { options.messageCounts }

    private let options: CommunicationOptions
    private let limit: Int
    private let tokens: ResumeTokens
    private let peers: PeerIdentities?
    private let farewells: LateFarewells?
    private let logger: Logger
    private let state = Mutex(State())

    /// - Parameters:
    ///   - options: communication options of the agents.
    ///   - limit: maximum number of identities.
    ///   - peers: the identities at the other gateways; nil if the gateway is in no cluster.
    ///   - farewells: deadvertises identities that leave while the broker can't be reached.
    package init(
        options: CommunicationOptions,
        limit: Int,
        tokens: ResumeTokens,
        peers: PeerIdentities? = nil,
        farewells: LateFarewells? = nil,
        logger: Logger
    ) {
        (self.options, self.limit, self.tokens, self.peers) = (options, limit, tokens, peers)
        (self.farewells, self.logger) = (farewells, logger)
    }

    func start() async {}

    /// Stops all agents concurrently. The binding bounds the time that each of them takes.
    func stop() async {
        let managers = state.withLock { state in
            state.isStopped = true
            return state.entries.values.map(\.manager)
        }
        await withTaskGroup { group in
            for manager in managers { group.addTask { await manager.stop() } }
        }
    }

    /// Creates a client identity, and waits until it is advertised, at most ``joinTimeout``.
    ///
    /// - Parameter token: the token of the identity to resume. If it still exists, at any gateway of the cluster, it is
    ///   ended there first.
    /// - Throws: `Problem` if the token is invalid, there are too many identities, the broker can't be reached, or the
    ///   gateway stops; any error of `CommunicationManager.init`.
    package func join(name: String, resuming token: String?, for client: Client) async throws -> ClientIdentity {
        guard let token else {
            return try await join(ResumableIdentity(id: CoatyUUID(), takeovers: 0), name, for: client)
        }
        guard var identity = tokens.identity(token, for: client.subject) else { throw Problems.unknownResumeToken }
        // The client may have a later token that got lost.
        identity.takeovers = max(identity.takeovers, peers?.takeovers(of: identity.id) ?? 0) + 1
        await release(identity.id)
        return try await join(identity, name, for: client)
    }

    private func join(_ identity: ResumableIdentity, _ name: String, for client: Client) async throws -> ClientIdentity
    {
        let manager = try await start(identity, name, for: client)
        guard await manager.hasJoined(within: Self.joinTimeout, by: ContinuousClock()) else {
            await leave(manager, hasJoined: false)
            throw Problems.notIdentified
        }
        let isHere = state.withLock { state in
            guard let entry = state.entries[identity.id], entry.manager === manager, !entry.isLeaving, client.isOpen()
            else { return false }
            // Under the lock, so that the announcements are in order.
            return peers?.set(identity.id, PeerIdentities.Record(takeovers: identity.takeovers)) ?? true
        }
        guard isHere else {
            await leave(manager)
            throw Problems.identityInUse
        }
        return ClientIdentity(
            manager: manager,
            resumeToken: tokens.token(identity, for: client.subject),
            leave: { [weak self] in await self?.leave(manager) }
        )
    }

    private func start(
        _ resumable: ResumableIdentity,
        _ name: String,
        for client: Client
    ) async throws -> CommunicationManager {
        let id = resumable.id
        let place = try client.takePlace()
        try state.withLock { state in
            guard !state.isStopped, state.entries.count + state.creating.count < limit else {
                throw Problems.tooManyIdentities(limit)
            }
            guard state.entries[id] == nil, state.creating.insert(id).inserted else { throw Problems.identityInUse }
        }
        defer { state.withLock { _ = $0.creating.remove(id) } }
        await peers?.release(id)
        // It may have taken seconds. Then the client may already have the identity on another connection.
        guard client.isOpen() else { throw Problems.identityInUse }
        var logger = logger
        logger[metadataKey: "identity"] = "\(id)"
        let identity = Identity(name: name, objectId: id)
        let manager = try CommunicationManager(identity: identity, options: options, logger: logger)
        try state.withLock { state in
            guard !state.isStopped else { throw Problems.tooManyIdentities(limit) }
            state.entries[id] = Entry(
                manager: manager,
                place: place,
                disconnect: client.disconnect,
                // Before the start, so that others don't get the Deadvertise event after the Advertise event.
                hasLeftBefore: farewells?.cancel(id) ?? false
            )
            // Inside the lock, so that `stop()` finds only started agents. Starting does not block.
            manager.start()
        }
        return manager
    }

    private func leave(_ manager: CommunicationManager, hasJoined: Bool = true) async {
        let id = manager.identityId
        // First, because the gateway would advertise an identity again that others deadvertise.
        state.withLock { state in
            guard state.entries[id]?.manager === manager else { return }
            state.entries[id]?.isLeaving = true
            peers?.set(id, nil)
        }
        await manager.stop()
        // Before the id is released to a successor, which cancels the event.
        if let farewells, let entry = state.withLock({ $0.entries[id] }), entry.manager === manager {
            var undelivered = manager.takeUndelivered()
            if entry.hasLeftBefore, !hasJoined, !undelivered.contains(id) { undelivered.append(id) }
            farewells.publish(undelivered, holding: entry.place)
        }
        state.withLock { if $0.entries[id]?.manager === manager { $0.entries[id] = nil } }
    }

    /// Ends an identity and the connection of its client, because the identity is resumed on another connection. Returns
    /// when it has left.
    func release(_ id: CoatyUUID) async {
        guard let entry = state.withLock({ $0.entries[id] }) else { return }
        entry.disconnect()
        await leave(entry.manager)
    }

    /// Advertises an identity again that another agent has deadvertised.
    func advertise(_ id: CoatyUUID) {
        guard let manager = state.withLock({ $0.entries[id]?.manager }) else { return }
        do {
            try manager.publishAdvertise(manager.identityEvent)
        } catch {
            logger.debug("an identity is not advertised again", metadata: ["error": "\(error)"])
        }
    }
}

extension Problems {
    static let notIdentified = Problem(
        type: typePrefix + "broker-unavailable",
        title: "Broker unavailable",
        status: 503,
        detail: "The identity could not be advertised in time."
    )

    static let unknownResumeToken = notFound(detail: "No gateway has issued this resume token to this client.")
    static let identityInUse = conflict("Another connection has resumed this identity.")

    static func tooManyIdentities(_ limit: Int) -> Problem {
        Problem(
            type: typePrefix + "too-many-identities",
            title: "Too many identities",
            status: 503,
            detail: "At most \(limit) clients can have an identity at a time."
        )
    }
}
