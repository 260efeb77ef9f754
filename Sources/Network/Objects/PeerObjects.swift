package import Access
package import Cluster
package import Coaty
package import Logging
import Synchronization

/// What the clients of the other gateways of a cluster have advertised: who owns it, and what to do when its gateway is
/// gone.
///
/// Each gateway announces the owners and lifetimes of its clients' objects, but not the objects: all gateways receive
/// those as events. When a gateway has left, the remaining one with the lowest id advertises its objects again, for the
/// rest of their lifetimes. When the gateway returns, because only its connection was lost, it advertises them itself.
///
/// Its lock is a leaf.
package final class PeerObjects: PeerPart {
    /// What the gateways know about an object of a client.
    package struct Record: Codable, Sendable, Equatable {
        /// Nil if all clients may change it.
        package var owner: Principal.Subject?
        /// The client for whom it is advertised; only if ``isKept``.
        package var keeper: Principal.Subject?
        /// Whether the gateway advertises it again after a reconnect. Only such objects are taken over.
        var isKept: Bool { keeper != nil }
        /// When its lifetime ends, in milliseconds of the sender's clock; nil if it has none.
        var end: Int64?
    }

    private struct State {
        var records = PeerRecords<Record>()
        /// The objects that this gateway has taken over, with the gateways that had advertised them.
        var adopted: [CoatyUUID: CoatyUUID] = [:]
        /// The adopted objects that clients of this gateway have changed or withdrawn since.
        var touched: Set<CoatyUUID> = []
    }

    /// Advertises an object of another gateway's client.
    ///
    /// - Parameter end: in how many milliseconds its lifetime ends; nil if it has none.
    package typealias Adopt = @Sendable (AliveObject, Record, _ end: Int64?) throws -> Void

    /// Maximum number of objects that are taken over at once.
    private static let batch = 200
    private static let batchInterval = Duration.milliseconds(100)

    package let name = "objects"
    private let peers: Peers
    private let objects: ObjectRegistry
    private let logger: Logger
    private let adopt = Mutex<Adopt?>(nil)
    private let state = Mutex(State())
    private let timer = Mutex<Deadline?>(nil)

    package init(peers: Peers, objects: ObjectRegistry, logger: Logger) {
        self.peers = peers
        self.objects = objects
        self.logger = logger
    }

    /// Sets the function that advertises objects of gateways that have left. Call it before the start.
    package func setAdopt(_ adopt: @escaping Adopt) { self.adopt.withLock { $0 = adopt } }

    // MARK: - Own records

    /// Changes the record of an object that a client has advertised or withdrawn.
    func update(_ id: CoatyUUID, _ change: (inout Record) -> Void) {
        let isFirst = state.withLock { state in
            var record = state.records.own[id] ?? Record()
            change(&record)
            if state.adopted[id] != nil { state.touched.insert(id) }
            return state.records.set(id, record == Record() ? nil : record)
        }
        if isFirst { peers.noteChange(of: name) }
    }

    package func takeWhole() -> [[UInt8]] { state.withLock { $0.records.takeWhole() } }

    package func takeChanges() -> [[UInt8]] { state.withLock { $0.records.takeChanges() } }

    // MARK: - Records of others

    /// Returns the owner of an object at another gateway.
    func owner(_ id: CoatyUUID) -> Principal.Subject? {
        state.withLock { state in state.records.others.values.lazy.compactMap { $0[id]?.owner }.first }
    }

    package func receive(_ piece: JSONView, replacesAll: Bool, from peer: CoatyUUID) {
        state.withLock { $0.records.receive(piece, replacesAll: replacesAll, from: peer) }
    }

    package func handle(_ change: PeerTable.Change) {
        let known = peers.known
        let mayAdopt = state.withLock { state in
            state.adopted = state.adopted.filter { known.contains($0.value) }
            return state.records.handle(change, known: known)
        }
        if mayAdopt { adoptNext() }
    }

    // MARK: - Taking over

    /// Takes over some objects, and then more after a while.
    private func adoptNext() {
        let live = peers.live
        guard live.allSatisfy({ peers.id.string < $0.string }) else {
            // Another gateway does. If it leaves before it has, this function is called again.
            return
        }
        let now = Int64(peers.now / .milliseconds(1))
        let content = objects.content
        var batch: [(AliveObject, Record, end: Int64?, from: CoatyUUID)] = []
        let isComplete = state.withLock { state in
            for gateway in state.records.orphaned {
                let offset = peers.offset(of: gateway) ?? 0
                for (id, record) in state.records.others[gateway] ?? [:] {
                    guard batch.count < Self.batch else { return false }
                    state.records.others[gateway]?[id] = nil
                    guard record.isKept, let object = content.known(id), object.owner == gateway,
                        object.parentObjectId != gateway
                    else { continue }
                    let end = record.end.map { $0 + offset - now }
                    guard end ?? 1 > 0 else { continue }
                    batch.append((object, record, end, gateway))
                }
                state.records.others[gateway] = nil
            }
            state.records.removeEmptyOrphans()
            return true
        }
        var failures = 0
        for (object, record, end, gateway) in batch {
            do {
                try adopt.withLock(\.self)?(object, record, end)
                state.withLock { state in
                    state.adopted[object.objectId] = gateway
                    state.touched.remove(object.objectId)
                }
            } catch {
                failures += 1
            }
        }
        if failures > 0 {
            logger.warning(
                "objects of a gateway that has left could not be taken over",
                metadata: ["objects": "\(failures)"]
            )
        }
        guard !isComplete else { return }
        let next = Deadline(after: Self.batchInterval) { [weak self] in self?.adoptNext() }
        timer.withLock { $0 = next }
    }

    /// Decides on an object that was taken over, when the gateway that had advertised it advertises it again.
    ///
    /// - Returns: whether this gateway has a newer version, or has withdrawn the object.
    func isOutdated(_ id: CoatyUUID, from gateway: CoatyUUID) -> Bool {
        state.withLock { state in
            guard state.adopted[id] == gateway else { return false }
            state.adopted[id] = nil
            return state.touched.remove(id) != nil
        }
    }

    /// Returns a time for records.
    func time(after duration: Duration) -> Int64 { Int64((peers.now + duration) / .milliseconds(1)) }

    /// Returns whether an agent is another gateway of the cluster, even if it is only just returning.
    func isGateway(_ id: CoatyUUID) -> Bool { peers.knows(id) }
}

extension Principal.Subject: Codable {
    private enum CodingKeys: String, CodingKey {
        case token, user, certificate, issuer
    }

    package init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: CodingKeys.self)
        if let name = try members.decodeIfPresent(String.self, forKey: .token) {
            self = .token(name)
        } else if let name = try members.decodeIfPresent(String.self, forKey: .user) {
            self = .user(issuer: try members.decode(String.self, forKey: .issuer), name: name)
        } else if let name = try members.decodeIfPresent(String.self, forKey: .certificate) {
            self = .certificate(name)
        } else {
            self = .anonymous
        }
    }

    package func encode(to encoder: any Encoder) throws {
        var members = encoder.container(keyedBy: CodingKeys.self)
        switch self {
        case .anonymous: break
        case .token(let name): try members.encode(name, forKey: .token)
        case .user(let issuer, let name):
            try members.encode(name, forKey: .user)
            try members.encode(issuer, forKey: .issuer)
        case .certificate(let name): try members.encode(name, forKey: .certificate)
        }
    }
}
