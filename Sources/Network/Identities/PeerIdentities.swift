package import Cluster
package import Coaty
import Synchronization

/// The identities that clients have at the gateways of a cluster, so that each exists at one gateway only.
///
/// Before a client resumes its identity at this gateway, the gateway that has it must release it. If that gateway does
/// not answer, it releases the identity when it receives this gateway's record.
///
/// Its lock is a leaf.
package final class PeerIdentities: PeerPart {
    /// What the gateways know about an identity.
    struct Record: TakenOver {
        /// How often it was resumed.
        let takeovers: Int
    }

    private struct Question: Codable {
        let identity: String
    }

    private struct State {
        var records = PeerRecords<Record>()
        /// The identities of this gateway.
        weak var identities: ClientIdentities?
        var observation: Subscription?
    }

    /// Maximum time that another gateway has to release an identity.
    private static let timeout = Duration.seconds(2)

    package let name = "identities"
    private let peers: Peers
    private let state = Mutex(State())

    package init(peers: Peers) { self.peers = peers }

    /// Sets the identities of this gateway, and observes other agents. Call it before the start.
    package func start(_ identities: ClientIdentities, _ manager: CommunicationManager) {
        let observation = manager.subscribe(.deadvertise) { [weak self] in self?.receive($0) }
        state.withLock { ($0.identities, $0.observation) = (identities, observation) }
    }

    // MARK: - Own identities

    /// Announces an identity of this gateway, or that it is leaving.
    ///
    /// - Returns: false if a client has resumed the identity at another gateway at the same time, which keeps it.
    @discardableResult
    func set(_ id: CoatyUUID, _ record: Record?) -> Bool {
        let live = peers.live
        let (isFirst, isTaken) = state.withLock { state in
            let isFirst = state.records.set(id, record)
            return (isFirst, live.contains { state.records.isTaken(id, by: $0, from: peers.id) })
        }
        if isFirst { peers.noteChange(of: name) }
        return !isTaken
    }

    /// Returns how often an identity was resumed, as far as this gateway knows.
    func takeovers(of id: CoatyUUID) -> Int { state.withLock { $0.records.takeovers(of: id) } }

    package func takeWhole() -> [[UInt8]] { state.withLock { $0.records.takeWhole() } }

    package func takeChanges() -> [[UInt8]] { state.withLock { $0.records.takeChanges() } }

    /// Advertises a resumed identity again, if the agent that had it before deadvertises it.
    private func receive(_ event: DeadvertiseEvent) {
        let (ids, identities) = state.withLock { state in
            let own = state.records.own
            guard !own.isEmpty else { return ([CoatyUUID](), state.identities) }
            return (event.data.objectIds.filter { own[$0]?.takeovers ?? 0 > 0 }, state.identities)
        }
        for id in ids { identities?.advertise(id) }
    }

    // MARK: - Identities of others

    /// Asks the gateways that have an identity to release it. A gateway that does not answer releases it later.
    func release(_ id: CoatyUUID) async {
        let live = peers.live
        let gateways = state.withLock { state in live.filter { state.records.others[$0]?[id] != nil } }
        for gateway in gateways {
            guard let question = try? PayloadCoder.encodeBytes(Question(identity: id.string)) else { return }
            _ = try? await peers.ask(gateway, name, question, timeout: Self.timeout)
        }
    }

    package func receive(question: JSONView, from peer: CoatyUUID, answer: @escaping @Sendable ([UInt8]) -> Void) {
        guard let question = try? PayloadCoder.decode(Question.self, from: question) else { return }
        let identities = state.withLock(\.identities)
        Task {
            await identities?.release(CoatyUUID(wire: question.identity))
            answer(Array("{}".utf8))
        }
    }

    package func receive(_ piece: JSONView, replacesAll: Bool, from peer: CoatyUUID) {
        let (taken, identities) = state.withLock { state in
            state.records.receive(piece, replacesAll: replacesAll, from: peer)
            return (state.records.taken(by: peer, from: peers.id), state.identities)
        }
        for id in taken { Task { await identities?.release(id) } }
    }

    package func handle(_ change: PeerTable.Change) {
        let known = peers.known
        state.withLock { state in
            _ = state.records.handle(change, known: known)
            // Only its client can take an identity over.
            if case .left(let id) = change { state.records.others[id] = nil }
            state.records.removeEmptyOrphans()
        }
    }
}
