import Base
import Cluster
import Coaty
import Synchronization

/// Announces the feeds of this gateway's clients to the other gateways of a cluster, and mirrors theirs.
///
/// The mirror of an observation stays for the resume window after the last gateway that announces it has left, because
/// its clients come then.
package final class PeerFeeds: PeerPart {
    let name = "feeds"
    /// Maximum number of observations that a gateway announces. Clients of others get a gap at other gateways.
    static let maximumAnnounced = 10_000
    /// Maximum size of a message's text, in bytes.
    static let maximumPiece = 32 << 10
    /// The interval of announcements.
    private static let interval = Duration.seconds(1)

    fileprivate struct Peer {
        var announced: Set<Observation> = []
        /// Whether the gateway has joined and not left.
        var isPresent = true
    }

    fileprivate struct State {
        /// What this gateway has announced.
        var announced: Set<Observation> = []
        var peers: [CoatyUUID: Peer] = [:]
        /// The number of present gateways that announce an observation.
        var users: [Observation: Int] = [:]
        /// When observations end that no present gateway announces.
        var ends: [Observation: ContinuousClock.Instant] = [:]
        /// The observations for which there are too many mirrors.
        var refused: Set<Observation> = []
    }

    private let hub: FeedHub
    private let state = Mutex(State())
    private let onChange: @Sendable () -> Void

    /// - Parameter onChange: called when there are changes to announce, at most once in an interval.
    package init(_ hub: FeedHub, onChange: @escaping @Sendable () -> Void) {
        (self.hub, self.onChange) = (hub, onChange)
        Task { [weak self] in
            while (try? await Task.sleep(for: Self.interval)) != nil {
                guard let self else { return }
                onChange()
                advance(to: .now)
            }
        }
    }

    // MARK: - Own observations

    func takeWhole() -> [[UInt8]] {
        _ = hub.takeChangedObservations()
        let own = hub.ownObservations.prefix(Self.maximumAnnounced)
        state.withLock { $0.announced = Set(own) }
        let pieces = Self.pieces(added: Array(own), removed: [])
        return pieces.isEmpty ? [Array("{}".utf8)] : pieces
    }

    func takeChanges() -> [[UInt8]] {
        let changed = hub.takeChangedObservations()
        guard !changed.isEmpty else { return [] }
        return state.withLock { state in
            let removed = changed.filter { !$0.isUsed }.map(\.0).filter { state.announced.remove($0) != nil }
            let added = changed.filter(\.isUsed).map(\.0).filter { request in
                state.announced.count < Self.maximumAnnounced && state.announced.insert(request).inserted
            }
            return Self.pieces(added: added, removed: removed)
        }
    }

    /// Returns JSON texts with the names of observations.
    static func pieces(added: [Observation], removed: [Observation]) -> [[UInt8]] {
        var pieces: [[UInt8]] = []
        for (member, requests) in [("removed", removed), ("added", added)] {
            var text: [UInt8] = []
            for request in requests {
                guard let name = request.peerName else { continue }
                text += text.isEmpty ? Array(#"{"\#(member)":["#.utf8) : [UInt8(ascii: ",")]
                JSONText.append(name, to: &text)
                if text.count > maximumPiece - 2 * Observation.maximumPeerName {
                    pieces.append(text + "]}".utf8)
                    text = []
                }
            }
            if !text.isEmpty { pieces.append(text + "]}".utf8) }
        }
        return pieces
    }

    // MARK: - Observations of other gateways

    func receive(_ piece: JSONView, replacesAll: Bool, from id: CoatyUUID) {
        func observations(_ member: StaticString) -> [Observation] {
            piece[member].map { $0.elements.compactMap { $0.string.flatMap(Observation.init(peerName:)) } } ?? []
        }
        let (removed, added) = (observations("removed"), observations("added"))
        let begun = state.withLock { state in
            var peer = state.peers[id] ?? Peer()
            defer { state.peers[id] = peer }
            let gone = replacesAll ? peer.announced.subtracting(added) : peer.announced.intersection(removed)
            peer.announced.subtract(gone)
            let new = added.filter { request in
                peer.announced.count < Self.maximumAnnounced && peer.announced.insert(request).inserted
            }
            guard peer.isPresent else { return [Observation]() }
            state.end(gone, at: .now + hub.resumeWindow)
            return state.begin(new)
        }
        mirror(begun)
    }

    func handle(_ change: PeerTable.Change) {
        switch change {
        case .joined(let id):
            let begun = state.withLock { state -> [Observation] in
                guard var peer = state.peers[id], !peer.isPresent else { return [] }
                peer.isPresent = true
                state.peers[id] = peer
                return state.begin(peer.announced)
            }
            mirror(begun)
        case .stopping: break
        case .missing(let id): noteAbsence(of: id)
        case .left(let id):
            noteAbsence(of: id)
            state.withLock { $0.peers[id] = nil }
        }
    }

    private func noteAbsence(of id: CoatyUUID) {
        state.withLock { state in
            guard var peer = state.peers[id], peer.isPresent else { return }
            peer.isPresent = false
            state.peers[id] = peer
            state.end(peer.announced, at: .now + hub.resumeWindow)
        }
    }

    private func mirror(_ requests: [Observation]) {
        for request in requests where !hub.mirror(request) {
            state.withLock { state in _ = state.refused.insert(request) }
        }
    }

    /// Ends the mirrors whose time is over, and begins those for which there is room now.
    func advance(to now: ContinuousClock.Instant) {
        let (ended, waiting) = state.withLock { state in
            let ended = state.ends.filter { $0.value <= now }.map(\.key)
            for request in ended {
                state.ends[request] = nil
                state.refused.remove(request)
            }
            defer { state.refused = [] }
            return (ended, Array(state.refused))
        }
        for request in ended { hub.endMirror(request) }
        mirror(waiting)
    }
}

extension PeerFeeds.State {
    /// Counts one more gateway that announces observations.
    ///
    /// - Returns: those that none has announced before.
    fileprivate mutating func begin(_ requests: some Sequence<Observation>) -> [Observation] {
        requests.filter { request in
            users[request, default: 0] += 1
            return users[request] == 1 && ends.removeValue(forKey: request) == nil
        }
    }

    /// Counts one gateway less.
    fileprivate mutating func end(_ requests: some Sequence<Observation>, at time: ContinuousClock.Instant) {
        for request in requests {
            users[request, default: 0] -= 1
            guard users[request] == 0 else { continue }
            users[request] = nil
            ends[request] = time
        }
    }
}

extension Observation {
    /// Maximum size of the names that gateways send each other, in bytes.
    static let maximumPeerName = WireName.maximumLength + 16

    /// The name of an observation that gateways mirror for each other; nil for others.
    var peerName: String? {
        switch self {
        case .advertise(.core(let coreType)): "coreType:\(coreType.rawValue)"
        case .advertise(.object(let objectType)): "objectType:\(objectType.text)"
        case .deadvertise: "deadvertise"
        case .channel(let id): "channelId:\(id.text)"
        default: nil
        }
    }

    /// Reads ``peerName``; nil if it is none.
    init?(peerName: String) {
        let parts = peerName.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        switch (parts[0], parts.count > 1 ? parts[1] : nil) {
        case ("deadvertise", nil): self = .deadvertise
        case ("coreType", let name?):
            guard let coreType = CoreType(rawValue: name) else { return nil }
            self = .advertise(.core(coreType))
        case ("objectType", let name?) where WireName.isPublishable(name): self = .advertise(.object(WireName(name)))
        case ("channelId", let name?) where WireName.isPublishable(name): self = .channel(WireName(name))
        default: return nil
        }
    }
}
