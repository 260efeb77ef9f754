import Coaty
import Coordination
import HTTPServer
import Logging
import Synchronization

/// An agent of a client's own: an identity with a link to the broker and a will.
struct VirtualAgent: Sendable {
    let manager: CommunicationManager

    /// The identity's JSON text.
    var identity: ArraySlice<UInt8> { manager.identityEvent.payload.json["object"]?.bytes ?? [] }
}

/// The agents of clients on WebSockets, each for as long as its connection is open.
final class VirtualAgents: Component {
    /// How long joining waits for the broker.
    static let joinTimeout = Duration.seconds(5)

    private struct State {
        var agents: [CoatyUUID: VirtualAgent] = [:]
        /// How many are being made.
        var beginning = 0
        var isStopped = false
    }

    private let options: CommunicationOptions
    private let limit: Int
    private let logger: Logger
    private let state = Mutex(State())

    /// - Parameters:
    ///   - options: how the agents take part.
    ///   - limit: the most agents.
    init(options: CommunicationOptions, limit: Int, logger: Logger) {
        self.options = options
        self.limit = limit
        self.logger = logger
    }

    func start() async {}

    /// Lets all agents leave the network at the same time; each is bounded by its binding.
    func stop() async {
        let agents = state.withLock { state in
            state.isStopped = true
            return state.agents.values
        }
        await withTaskGroup { group in
            for agent in agents { group.addTask { await agent.manager.stop() } }
        }
    }

    /// Makes an agent, which begins to join.
    ///
    /// - Throws: `Problem` where there are too many; what a communication manager throws.
    func agent(name: String) throws -> VirtualAgent {
        try state.withLock { state in
            guard !state.isStopped, state.agents.count + state.beginning < limit else {
                throw Problems.tooManyAgents(limit)
            }
            state.beginning += 1
        }
        defer { state.withLock { $0.beginning -= 1 } }
        var logger = logger
        let identity = Identity(name: name)
        logger[metadataKey: "virtual-agent"] = "\(identity.objectId)"
        let manager = try CommunicationManager(identity: identity, options: options, logger: logger)
        let agent = VirtualAgent(manager: manager)
        try state.withLock { state in
            guard !state.isStopped else { throw Problems.tooManyAgents(limit) }
            state.agents[manager.identityId] = agent
            // Under the lock, so that whoever stops the agents finds it started. Starting does not wait.
            manager.start()
        }
        return agent
    }

    /// Waits until an agent is advertised.
    ///
    /// - Returns: false where it is not in time; then it has to leave.
    func join(_ agent: VirtualAgent) async -> Bool {
        await agent.manager.hasJoined(within: Self.joinTimeout, by: ContinuousClock())
    }

    /// Lets an agent leave the network.
    func leave(_ agent: VirtualAgent) async {
        await agent.manager.stop()
        _ = state.withLock { $0.agents.removeValue(forKey: agent.manager.identityId) }
    }
}

extension Problems {
    static func tooManyAgents(_ limit: Int) -> Problem {
        Problem(
            type: typePrefix + "too-many-agents",
            title: "Too many agents",
            status: 503,
            detail: "At most \(limit) clients have an identity of their own at a time."
        )
    }
}
