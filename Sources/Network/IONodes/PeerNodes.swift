package import Access
package import Cluster
package import Coaty
import Synchronization

/// The IO nodes that clients have registered at the other gateways of a cluster.
///
/// A client can renew the lease of its node, and withdraw the node, at any gateway. When a gateway has left, and its
/// nodes with it, the remaining gateway with the lowest id registers them again under the same ids, each with a new lease
/// of the same duration.
///
/// Its lock is a leaf.
package final class PeerNodes: PeerPart {
    /// What the gateways know about an IO node.
    package struct Record: TakenOver {
        package let owner: Principal.Subject
        /// The name of the IO context.
        package let context: String
        /// The body of its registration, with all ids.
        let registration: String
        package let takeovers: Int

        var takenOver: Record {
            Record(owner: owner, context: context, registration: registration, takeovers: takeovers + 1)
        }
    }

    /// An operation on a node at another gateway: a renewal for a duration in milliseconds, or a withdrawal.
    private struct Question: Codable {
        let node: String
        var withdraws: Bool?
        var duration: Int64?
    }

    /// The duration of the lease, in milliseconds; nil if the gateway no longer has the node.
    private struct Answer: Codable {
        var duration: Int64?
    }

    /// The functions of the registry of this gateway's nodes.
    package struct Registry: Sendable {
        let register: @Sendable (CoatyUUID, Record) async -> Void
        let renew: @Sendable (CoatyUUID, Duration?) -> Lease?
        let withdraw: @Sendable (CoatyUUID) async -> Bool
        /// Advertises a node again.
        let advertise: @Sendable (CoatyUUID) -> Void
    }

    private struct State {
        var records = PeerRecords<Record>()
    }

    /// Maximum time that another gateway has for its answer.
    private static let timeout = Duration.seconds(5)
    private static let retryInterval = Duration.seconds(1)

    package let name = "nodes"
    private let peers: Peers
    private let objects: ObjectRegistry
    private let registry = Mutex<Registry?>(nil)
    private let state = Mutex(State())
    private let timer = Mutex<Deadline?>(nil)
    private let observation = Mutex<Subscription?>(nil)

    package init(peers: Peers, objects: ObjectRegistry) {
        self.peers = peers
        self.objects = objects
    }

    /// Sets the registry, and observes other agents. Call it before the start.
    package func start(_ registry: Registry, _ manager: CommunicationManager) {
        self.registry.withLock { $0 = registry }
        let observation = manager.subscribe(.deadvertise) { [weak self] in self?.receive($0) }
        self.observation.withLock { $0 = observation }
    }

    private var nodes: Registry? { registry.withLock(\.self) }

    // MARK: - Own records

    /// Announces a node of this gateway, or that it is gone.
    func set(_ id: CoatyUUID, _ record: Record?) {
        if state.withLock({ $0.records.set(id, record) }) { peers.noteChange(of: name) }
    }

    package func takeWhole() -> [[UInt8]] { state.withLock { $0.records.takeWhole() } }

    package func takeChanges() -> [[UInt8]] { state.withLock { $0.records.takeChanges() } }

    // MARK: - Nodes of others

    /// Returns the node with an id at another gateway.
    package func other(_ id: CoatyUUID) -> (gateway: CoatyUUID, record: Record)? {
        let live = peers.live
        return state.withLock { state in
            for gateway in live {
                if let record = state.records.others[gateway]?[id] { return (gateway, record) }
            }
            return nil
        }
    }

    /// Renews the lease of a node at another gateway.
    ///
    /// - Returns: nil if it no longer has the node.
    /// - Throws: ``Peers/Failure``
    package func renew(_ id: CoatyUUID, at gateway: CoatyUUID, for duration: Duration?) async throws -> Lease? {
        let milliseconds = duration.map { Int64($0 / .milliseconds(1)) }
        return try await ask(gateway, Question(node: id.string, duration: milliseconds)).map {
            Lease(.milliseconds($0))
        }
    }

    /// Withdraws a node at another gateway.
    ///
    /// - Returns: false if it no longer has the node.
    /// - Throws: ``Peers/Failure``
    package func withdraw(_ id: CoatyUUID, at gateway: CoatyUUID) async throws -> Bool {
        try await ask(gateway, Question(node: id.string, withdraws: true)) != nil
    }

    private func ask(_ gateway: CoatyUUID, _ question: Question) async throws -> Int64? {
        let text = try await peers.ask(gateway, name, PayloadCoder.encodeBytes(question), timeout: Self.timeout)
        return try PayloadCoder.decode(Answer.self, from: String(decoding: text, as: UTF8.self)).duration
    }

    package func receive(question: JSONView, from peer: CoatyUUID, answer: @escaping @Sendable ([UInt8]) -> Void) {
        guard let question = try? PayloadCoder.decode(Question.self, from: question) else { return }
        let id = CoatyUUID(wire: question.node)
        Task {
            var result = Answer()
            if question.withdraws ?? false {
                result.duration = await nodes?.withdraw(id) ?? false ? 0 : nil
            } else {
                let lease = nodes?.renew(id, question.duration.map { .milliseconds($0) })
                result.duration = lease.map { Int64($0.duration / .milliseconds(1)) }
            }
            answer((try? PayloadCoder.encodeBytes(result)) ?? [])
        }
    }

    package func receive(_ piece: JSONView, replacesAll: Bool, from peer: CoatyUUID) {
        let taken = state.withLock { state in
            state.records.receive(piece, replacesAll: replacesAll, from: peer)
            return state.records.taken(by: peer, from: peers.id)
        }
        // This gateway was cut off, and another one has taken the node over meanwhile.
        for id in taken { Task { _ = await nodes?.withdraw(id) } }
    }

    /// Advertises a node again that this gateway has taken over, if the agent that had it before deadvertises it.
    private func receive(_ event: DeadvertiseEvent) {
        let taken = state.withLock { state in
            guard !state.records.own.isEmpty else { return [CoatyUUID]() }
            return event.data.objectIds.filter { state.records.own[$0]?.takeovers ?? 0 > 0 }
        }
        for id in taken { nodes?.advertise(id) }
    }

    // MARK: - Taking over

    package func handle(_ change: PeerTable.Change) {
        let known = peers.known
        if state.withLock({ $0.records.handle(change, known: known) }) { takeOver() }
    }

    /// Registers the nodes of gateways that have left, as soon as their agents have left, too.
    private func takeOver() {
        guard peers.live.allSatisfy({ peers.id.string < $0.string }) else { return }
        let content = objects.content
        let (orphans, isComplete) = state.withLock { state in
            var orphans: [CoatyUUID: Record] = [:]
            for gateway in state.records.orphaned {
                for (id, record) in state.records.others[gateway] ?? [:] where content.object(id) == nil {
                    orphans[id] = record
                    state.records.others[gateway]?[id] = nil
                }
            }
            state.records.removeEmptyOrphans()
            return (orphans, state.records.orphaned.isEmpty)
        }
        for (id, record) in orphans {
            let next = record.takenOver
            Task { await nodes?.register(id, next) }
        }
        guard !isComplete else { return }
        let next = Deadline(after: Self.retryInterval) { [weak self] in self?.takeOver() }
        timer.withLock { $0 = next }
    }
}
