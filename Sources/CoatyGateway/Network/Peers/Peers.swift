import Coaty
import Coordination
import Dispatch
import Logging
import Synchronization

/// The gateway as a member of a cluster: exchanges messages with the other gateways that have the same
/// ``ClusterKey``, over a channel of the broker.
///
/// It knows which gateways are there (``PeerTable``), copies the state of their parts (``PeerPart``), and asks single
/// gateways questions. A message that the broker loses is noticed with the next sign of life.
final class Peers: Component {
    /// The interval of signs of life.
    static let interval = Duration.seconds(2)
    /// How long a peer may be silent.
    static let timeout = Duration.seconds(10)
    /// Maximum interval at which passed time is noticed, and minimum interval of replies.
    private static let tick = Duration.milliseconds(250)
    /// The interval of probes of a silent peer.
    private static let probeInterval = Duration.seconds(10)
    /// Minimum interval of requests for a part, and of its transmission as a whole.
    private static let wholeInterval = Duration.seconds(1)

    /// The reason why a question has no answer.
    enum Failure: Error {
        case noAnswer
    }

    private struct Copy {
        var revision: UInt64 = 0
        /// The revision of the original, as its gateway has last announced.
        var latest: UInt64 = 0
        var lastWanted: Duration?

        var isComplete: Bool { revision > 0 && revision == latest }
    }

    private struct Part {
        let part: any PeerPart
        var revision: UInt64 = 0
        var lastWhole: Duration?
        var isWanted = false
        /// By session.
        var copies: [PeerMessage.Session: Copy] = [:]
    }

    private struct Question {
        let continuation: CheckedContinuation<[UInt8], any Error>
        let timer: Deadline
    }

    private struct State {
        var table: PeerTable
        var sequence: UInt64 = 0
        var parts: [String: Part] = [:]
        var questions: [UInt64: Question] = [:]
        var lastQuestion: UInt64 = 0
        var lastSent: Duration?
        /// Whether a sign of life must be sent soon.
        var isDue = true
        var isStopping = false
        /// The URL at which the others may reach this gateway.
        var url: String?
        var findURL: (@Sendable () -> String?)?
        /// Whether silent peers are being probed. Otherwise, requests that time out would queue.
        var isProbing = false
        /// When the agent came online; nil while it is offline.
        var online: (period: Int, since: Duration)?
        var observations: [Subscription] = []
        var task: Task<Void, Never>?

        /// Forgets the copies of a gateway that has left. If it comes back, it sends its parts as a whole.
        mutating func forgetCopies(of id: CoatyUUID) {
            for peer in table.peers.values where peer.id == id {
                for name in parts.keys { parts[name]?.copies[peer.session] = nil }
            }
        }
    }

    /// The id of this gateway's identity.
    var id: CoatyUUID { manager.identityId }
    let session: PeerMessage.Session
    private let manager: CommunicationManager
    private let seal: Seal
    /// How long a peer that has left is remembered.
    private let memory: Duration
    private let logger: Logger
    private let started = ContinuousClock.now
    private let queue = DispatchQueue(label: "peers")
    /// Requests to silent peers block it.
    private let probes = DispatchQueue(label: "peer probes")
    private let state: Mutex<State>
    private let unreadable = Atomic(0)

    /// - Parameters:
    ///   - manager: the gateway's own agent.
    ///   - memory: how long a gateway that has left is remembered, so that its cursors can be used.
    init(manager: CommunicationManager, key: ClusterKey, memory: Duration, logger: Logger) {
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
    func add(_ part: any PeerPart) { state.withLock { $0.parts[part.name] = Part(part: part) } }

    /// Announces where the others may reach this gateway.
    ///
    /// - Parameter find: returns the URL; may block. Called now and whenever the gateway comes online.
    func announceURL(_ find: @escaping @Sendable () -> String?) {
        state.withLock { $0.findURL = find }
        findURL()
    }

    private func findURL() {
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
    var now: Duration { .now - started }

    /// The ids of the other gateways that this one can rely on.
    var live: Set<CoatyUUID> { state.withLock { Set($0.table.live.map(\.id)) } }

    /// Returns whether an agent is, or recently was, another gateway of the cluster.
    func knows(_ id: CoatyUUID) -> Bool { state.withLock { $0.table.peers.values.contains { $0.id == id } } }

    /// The ids of the gateways that are, or recently were, in the cluster.
    var known: Set<CoatyUUID> { state.withLock { Set($0.table.peers.values.map(\.id)) } }

    /// Number of messages that this gateway could not read, because another key or program has written them.
    var unreadableMessages: Int { unreadable.load(ordering: .relaxed) }

    /// The known gateways and the number of own messages that came back twice.
    var table: PeerTable { state.withLock(\.table) }

    /// Translates a time of another gateway's messages; nil if no session, or more than one, has this tag.
    ///
    /// - Parameter tag: the last 16 bits of the session.
    func localTime(_ time: Duration, ofSessionTagged tag: UInt16) -> Duration? {
        let peers = state.withLock { state in
            state.table.peers.values.filter { $0.presence != .seen && Self.tag($0.session) == tag }
        }
        return peers.count == 1 ? peers.first.map { time + $0.offset } : nil
    }

    /// Returns the difference of the clock of this gateway and that of another one, in milliseconds; nil if that is
    /// unknown.
    func offset(of gateway: CoatyUUID) -> Int64? {
        state.withLock { state in
            state.table.peers.values.first { $0.id == gateway }.map { Int64($0.offset / .milliseconds(1)) }
        }
    }

    /// Returns the tag of a session, for cursors.
    static func tag(_ session: PeerMessage.Session) -> UInt16 { UInt16(session.suffix(4), radix: 16) ?? 0 }

    // MARK: - Sending

    /// Sends the changes of a part soon.
    func noteChange(of part: String) {
        queue.async { [self] in
            guard let changes = state.withLock({ $0.parts[part]?.part })?.takeChanges() else { return }
            for change in changes { send(.change, part, change) }
        }
    }

    /// Asks another gateway.
    ///
    /// - Returns: the answer, a JSON text.
    /// - Throws: ``Failure/noAnswer`` if there is none in time.
    func ask(_ peer: CoatyUUID, _ part: String, _ question: [UInt8], timeout: Duration) async throws -> [UInt8] {
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

    private func end(_ number: UInt64, _ answer: [UInt8]?) {
        let question = state.withLock { $0.questions.removeValue(forKey: number) }
        question?.continuation.resume(with: answer.map(Result.success) ?? .failure(Failure.noAnswer))
    }

    private func sendState() { send(.state, nil, []) }

    /// Sends a message; while there is no connection, does nothing: the next sign of life shows what is missing.
    private func send(
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

    private func sendWhole(_ name: String) {
        guard let part = state.withLock({ $0.parts[name]?.part }) else { return }
        for (index, piece) in part.takeWhole().enumerated() { send(index == 0 ? .whole : .change, name, piece) }
    }

    // MARK: - Receiving

    private func receive(_ event: ChannelEvent) {
        guard let message = PeerMessage(event, seal, namespace: manager.namespace) else {
            unreadable.wrappingAdd(1, ordering: .relaxed)
            return
        }
        queue.async { self.receive(message) }
    }

    private func receive(_ event: DeadvertiseEvent) {
        let known = known
        let ids = known.isEmpty ? [] : event.data.objectIds.filter(known.contains)
        let isOwn = event.data.objectIds.contains(id)
        guard !ids.isEmpty || isOwn else { return }
        queue.async { [self] in
            let now = now
            for id in ids { state.withLock { $0.table.suspect(id, at: now) } }
            // The will of an earlier connection, or another agent, has deadvertised this gateway. The others expect a
            // sign of life now.
            if isOwn { sendState() }
        }
    }

    private func receive(_ message: PeerMessage) {
        let (head, now) = (message.head, now)
        let (reception, isNewLoop) = state.withLock { state in
            let hadLoop = state.table.hasLoop(at: now)
            let reception = state.table.receive(head, at: now)
            if reception.needsReply { state.isDue = true }
            return (reception, !hadLoop && state.table.hasLoop(at: now))
        }
        if isNewLoop {
            logger.warning("the broker delivers messages of this gateway twice: look for a loop of bridges")
        }
        handle(reception.changes)
        guard reception.isAccepted, head.to == nil || head.to == session else { return }
        switch head.content {
        case .state: compare(head, at: now)
        case .whole, .change:
            apply(message)
            compare(head, at: now)
        case .wanted:
            if let part = head.part { state.withLock { $0.parts[part]?.isWanted = true } }
            advance()
        case .question: answer(message)
        case .answer:
            if let number = head.question { end(number, message.body) }
        }
    }

    private func apply(_ message: PeerMessage) {
        let head = message.head
        guard let name = head.part, let revision = head.revisions[name],
            let document = try? JSONDocument(message.body)
        else { return }
        let part = state.withLock { state -> (any PeerPart)? in
            guard let part = state.parts[name] else { return nil }
            let copy = part.copies[head.session] ?? Copy()
            guard head.content == .whole || copy.revision > 0 && copy.revision + 1 == revision else { return nil }
            state.parts[name]?.copies[head.session] = Copy(revision: revision, latest: revision)
            return part.part
        }
        part?.receive(document.root, replacesAll: head.content == .whole, from: head.from)
    }

    /// Records the revisions of another gateway's parts, and requests those of which a message was missed.
    private func compare(_ head: PeerMessage.Head, at now: Duration) {
        state.withLock { state in
            for name in state.parts.keys {
                guard let revision = head.revisions[name] else { continue }
                state.parts[name]?.copies[head.session, default: Copy()].latest = revision
            }
        }
        requestMissing(of: [head.session], at: now)
    }

    private func requestMissing(of sessions: [PeerMessage.Session], at now: Duration) {
        let wanted = state.withLock { state in
            var wanted: [(part: String, session: PeerMessage.Session)] = []
            for name in state.parts.keys {
                for session in sessions {
                    guard let copy = state.parts[name]?.copies[session], !copy.isComplete,
                        copy.lastWanted.map({ now - $0 > Self.wholeInterval }) ?? true
                    else { continue }
                    state.parts[name]?.copies[session]?.lastWanted = now
                    wanted.append((name, session))
                }
            }
            return wanted
        }
        for (part, session) in wanted { send(.wanted, part, [], to: session) }
    }

    private func answer(_ message: PeerMessage) {
        let head = message.head
        guard let name = head.part, let part = state.withLock({ $0.parts[name]?.part }),
            let document = try? JSONDocument(message.body)
        else { return }
        part.receive(question: document.root, from: head.from) { [weak self] answer in
            guard let self else { return }
            queue.async { self.send(.answer, name, answer, to: head.session, head.question) }
        }
    }

    // MARK: - Time

    private func advance() {
        let (now, period) = (now, manager.onlinePeriod)
        let (changes, isDue, wanted, silent, live, cameOnline) = state.withLock { state in
            let cameOnline = state.online?.period != period
            if cameOnline { state.online = period.map { ($0, now) } }
            let changes = state.table.advance(
                to: now,
                timeout: Self.timeout,
                online: state.online?.since,
                memory: memory
            )
            let age = state.lastSent.map { now - $0 } ?? Self.interval
            let wanted = state.parts.filter { _, part in
                part.isWanted && part.lastWhole.map { now - $0 > Self.wholeInterval } ?? true
            }
            for name in wanted.keys {
                state.parts[name]?.isWanted = false
                state.parts[name]?.lastWhole = now
            }
            let isDue = age >= Self.interval || state.isDue && age >= Self.tick
            let silent = state.isProbing ? [] : state.table.takeProbes(at: now, interval: Self.probeInterval)
            state.isProbing = state.isProbing || !silent.isEmpty
            return (changes, isDue, wanted.keys, silent, state.table.live.map(\.session), cameOnline)
        }
        handle(changes)
        // Not only with the next message, up to two seconds later.
        requestMissing(of: live, at: now)
        if !silent.isEmpty { probe(silent) }
        if cameOnline, period != nil { findURL() }
        for part in wanted { sendWhole(part) }
        if isDue { sendState() }
    }

    /// Finds out which silent peers are ready.
    private func probe(_ silent: [(session: PeerMessage.Session, url: String)]) {
        probes.async { [weak self] in
            for (session, url) in silent {
                let isReady = url != self?.state.withLock(\.url) && PeerProbe.isReady(url)
                guard let id = self?.state.withLock({ $0.table.setReachable(session, isReady) }) else { continue }
                self?.logger.warning(
                    "another gateway of the cluster is reachable, but its messages do not arrive through the broker",
                    metadata: ["agent": "\(id)"]
                )
            }
            self?.state.withLock { $0.isProbing = false }
        }
    }

    private func handle(_ changes: [PeerTable.Change]) {
        guard !changes.isEmpty else { return }
        let parts = state.withLock { state in
            state.isDue = true
            for case .left(let id) in changes { state.forgetCopies(of: id) }
            return state.parts.values.map(\.part)
        }
        for change in changes {
            switch change {
            case .joined(let id):
                logger.info("another gateway is in the cluster", metadata: ["agent": "\(id)"])
            case .missing(let id):
                logger.warning("another gateway of the cluster sends no messages", metadata: ["agent": "\(id)"])
            case .stopping(let id), .left(let id):
                logger.info("another gateway leaves the cluster", metadata: ["agent": "\(id)"])
            }
            for part in parts { part.handle(change) }
        }
    }
}
