package import Coaty
import Coordination
import Dispatch
package import Logging
import Synchronization

/// The gateway as a member of a cluster: exchanges messages with the other gateways that have the same
/// ``ClusterKey``, over a channel of the broker.
///
/// It knows which gateways are there (``PeerTable``), copies the state of their parts (``PeerPart``), and asks single
/// gateways questions. A message that the broker loses is noticed with the next sign of life.
package final class Peers: Component {
    /// The interval of signs of life.
    package static let interval = Duration.seconds(2)
    /// How long a peer may be silent.
    package static let timeout = Duration.seconds(10)
    /// Maximum interval at which passed time is noticed, and minimum interval of replies.
    static let tick = Duration.milliseconds(250)
    /// The interval of probes of a silent peer.
    static let probeInterval = Duration.seconds(10)
    /// Minimum interval of requests for a part, and of its transmission as a whole.
    static let wholeInterval = Duration.seconds(1)

    /// The reason why a question has no answer.
    package enum Failure: Error {
        case noAnswer
    }

    /// The id of this gateway's identity.
    package var id: CoatyUUID { manager.identityId }
    package let session: PeerMessage.Session
    let manager: CommunicationManager
    let seal: Seal
    /// How long a peer that has left is remembered.
    let memory: Duration
    let logger: Logger
    private let started = ContinuousClock.now
    let queue = DispatchQueue(label: "peers")
    /// Requests to silent peers block it.
    let probes = DispatchQueue(label: "peer probes")
    let state: Mutex<State>
    let unreadable = Atomic(0)

    /// - Parameters:
    ///   - manager: the gateway's own agent.
    ///   - memory: how long a gateway that has left is remembered, so that its cursors can be used.
    package init(manager: CommunicationManager, key: ClusterKey, memory: Duration, logger: Logger) {
        self.manager = manager
        self.memory = memory
        self.logger = logger
        seal = Seal(key: key.derived(.messages))
        var random = SystemRandomNumberGenerator()
        let session = (0..<2).map { _ in String(random.next() | 1 << 63, radix: 16) }.joined()
        self.session = session
        state = Mutex(State(table: PeerTable(session: session)))
    }

    /// Adds a part. Call it before the start.
    package func add(_ part: any PeerPart) { state.withLock { $0.parts[part.name] = Part(part: part) } }

    /// Announces where the others may reach this gateway.
    ///
    /// - Parameter find: returns the URL; may block. Called now and whenever the gateway comes online.
    package func announceURL(_ find: @escaping @Sendable () -> String?) {
        state.withLock { $0.findURL = find }
        findURL()
    }

    func findURL() {
        probes.async { [weak self] in
            guard let self, let find = state.withLock(\.findURL) else { return }
            let url = find()
            state.withLock { $0.url = url }
        }
    }

    func start() async throws {
        let observations = [
            manager.subscribe(try .channel(PeerMessage.channelId)) { [weak self] event in self?.receive(event) },
            manager.subscribe(.deadvertise) { [weak self] event in self?.receive(event) },
        ]
        let task = Task { [weak self] in
            while (try? await Task.sleep(for: Self.tick)) != nil {
                guard let self else { return }
                queue.async { self.advance() }
            }
        }
        state.withLock { state in
            state.observations = observations
            state.task = task
        }
    }

    /// Announces that this gateway leaves, and fails all questions.
    func stop() async {
        await withCheckedContinuation { done in
            queue.async { [self] in
                state.withLock { $0.isStopping = true }
                sendState()
                let ended = state.withLock { state in
                    state.task?.cancel()
                    defer { (state.observations, state.questions) = ([], [:]) }
                    return (state.observations, state.questions)
                }
                for question in ended.1.values { question.continuation.resume(throwing: Failure.noAnswer) }
                done.resume()
            }
        }
    }

    // MARK: - Reading

    /// The time since the start of this gateway, in the clock of its messages.
    package var now: Duration { .now - started }

    /// The ids of the other gateways that this one can rely on.
    package var live: Set<CoatyUUID> { state.withLock { Set($0.table.live.map(\.id)) } }

    /// Returns whether an agent is, or recently was, another gateway of the cluster.
    package func knows(_ id: CoatyUUID) -> Bool { state.withLock { $0.table.peers.values.contains { $0.id == id } } }

    /// The ids of the gateways that are, or recently were, in the cluster.
    package var known: Set<CoatyUUID> { state.withLock { Set($0.table.peers.values.map(\.id)) } }

    /// Number of messages that this gateway could not read, because another key or program has written them.
    package var unreadableMessages: Int { unreadable.load(ordering: .relaxed) }

    /// The known gateways and the number of own messages that came back twice.
    package var table: PeerTable { state.withLock(\.table) }

    /// Translates a time of another gateway's messages; nil if no session, or more than one, has this tag.
    ///
    /// - Parameter tag: the last 16 bits of the session.
    package func localTime(_ time: Duration, ofSessionTagged tag: UInt16) -> Duration? {
        let peers = state.withLock { state in
            state.table.peers.values.filter { $0.presence != .seen && Self.tag($0.session) == tag }
        }
        return peers.count == 1 ? peers.first.map { time + $0.offset } : nil
    }

    /// Returns the difference of the clock of this gateway and that of another one, in milliseconds; nil if that is
    /// unknown.
    package func offset(of gateway: CoatyUUID) -> Int64? {
        state.withLock { state in
            state.table.peers.values.first { $0.id == gateway }.map { Int64($0.offset / .milliseconds(1)) }
        }
    }

    /// Returns the tag of a session, for cursors.
    package static func tag(_ session: PeerMessage.Session) -> UInt16 { UInt16(session.suffix(4), radix: 16) ?? 0 }

    // MARK: - Sending

    /// Sends the changes of a part soon.
    package func noteChange(of part: String) {
        queue.async { [self] in
            guard let changes = state.withLock({ $0.parts[part]?.part })?.takeChanges() else { return }
            for change in changes { send(.change, part, change) }
        }
    }

    /// Asks another gateway.
    ///
    /// - Returns: the answer, a JSON text.
    /// - Throws: ``Failure/noAnswer`` if there is none in time.
    package func ask(_ peer: CoatyUUID, _ part: String, _ question: [UInt8], timeout: Duration) async throws -> [UInt8]
    {
        try await withCheckedThrowingContinuation { continuation in
            queue.async { [self] in
                let (session, number) = state.withLock { state in
                    state.lastQuestion += 1
                    let session = state.table.live.first { $0.id == peer }?.session
                    let number = state.lastQuestion
                    if session != nil {
                        let timer = Deadline(after: timeout) { [weak self] in self?.end(number, nil) }
                        state.questions[number] = Question(continuation: continuation, timer: timer)
                    }
                    return (session, number)
                }
                guard let session else { return continuation.resume(throwing: Failure.noAnswer) }
                send(.question, part, question, to: session, number)
            }
        }
    }

    func end(_ number: UInt64, _ answer: [UInt8]?) {
        let question = state.withLock { $0.questions.removeValue(forKey: number) }
        question?.continuation.resume(with: answer.map(Result.success) ?? .failure(Failure.noAnswer))
    }

    func sendState() { send(.state, nil, []) }

    /// Sends a message; while there is no connection, does nothing: the next sign of life shows what is missing.
    func send(
        _ content: PeerMessage.Content,
        _ part: String?,
        _ body: [UInt8],
        to: PeerMessage.Session? = nil,
        _ question: UInt64? = nil
    ) {
        let now = now
        state.withLock { state in
            if let part, content == .change || content == .whole { state.parts[part]?.revision += 1 }
            guard manager.isConnected else { return }
            state.sequence += 1
            if content == .state {
                state.lastSent = now
                state.isDue = false
            }
            let head = PeerMessage.Head(
                from: id,
                session: session,
                sequence: state.sequence,
                time: Int64(now / .milliseconds(1)),
                sees: state.table.seen,
                url: content == .state ? state.url : nil,
                isStopping: state.isStopping,
                revisions: state.parts.mapValues(\.revision),
                content: content,
                part: part,
                to: to,
                question: question
            )
            do {
                // Under the lock, so that messages are sent in the order of their numbers.
                let event = try PeerMessage(head, body: body).event(seal, namespace: manager.namespace)
                try manager.publishChannel(event)
            } catch {
                logger.debug("a message to other gateways was not sent", metadata: ["error": "\(error)"])
            }
        }
    }

    func sendWhole(_ name: String) {
        guard let part = state.withLock({ $0.parts[name]?.part }) else { return }
        for (index, piece) in part.takeWhole().enumerated() { send(index == 0 ? .whole : .change, name, piece) }
    }
}
