package import Coaty

/// The other gateways of a cluster, as this one sees them. Times are passed in: durations since the start of this
/// gateway.
///
/// A peer is live only while its latest message names this gateway's session as seen: then each receives the messages
/// of the other, and messages that were recorded before this gateway's start have no effect. Messages that were recorded
/// later have no effect either, because sequence numbers must increase and old messages do not count.
package struct PeerTable: Sendable {
    /// Maximum number of sessions, including those that have left.
    static let maximumPeers = 128
    /// How long a deadvertised peer has to send a sign of life. Any agent can deadvertise it, and its broker connection
    /// may be lost only for a moment.
    static let suspicionTime = Duration.milliseconds(500)
    /// The maximum age of a message.
    static let maximumAge = Duration.seconds(10)
    /// The clocks of two processes drift apart, so the offset is the minimum of this time and the one before.
    private static let offsetTime = Duration.seconds(60)
    /// Number of own messages that must come back twice within ``offsetTime``. Any agent can repeat a single one.
    private static let minimumLoops = 3

    package enum Presence: String, Sendable {
        /// It is not known yet whether its messages are recent, or whether it receives those of this gateway.
        case seen
        case live
        /// It will leave soon.
        case stopping
        /// No message arrives, but it was not deadvertised: it is frozen, or the broker does not deliver its messages.
        case missing
        /// It is missing, but ready: the broker does not deliver its messages.
        case partitioned
        /// It was deadvertised, and has sent no sign of life since.
        case left

        /// Whether its messages have stopped without a farewell.
        var isSilent: Bool { self == .missing || self == .partitioned }
    }

    package struct Peer: Sendable {
        /// The id of its identity.
        package let id: CoatyUUID
        let session: PeerMessage.Session
        package var presence = Presence.seen
        var sequence: UInt64 = 0
        package var lastHeard: Duration
        /// Where it can be reached; nil if that is not known.
        var url: String?
        /// When it was last probed.
        fileprivate var lastProbe: Duration?
        /// When it was deadvertised, without a sign of life since.
        var deadvertised: Duration?
        /// The time here minus the time there, and the duration of the fastest message: the minimum of the current
        /// period, which began at `offsetStart`, and that of the period before.
        fileprivate var offsets: (current: Duration, previous: Duration)
        fileprivate var offsetStart: Duration

        var offset: Duration { min(offsets.current, offsets.previous) }
    }

    package enum Change: Sendable, Equatable {
        case joined(CoatyUUID), stopping(CoatyUUID), missing(CoatyUUID), left(CoatyUUID)
    }

    struct Reception {
        /// Whether the message counts.
        var isAccepted = false
        /// Whether the sender does not know yet that this gateway sees it.
        var needsReply = false
        var changes: [Change] = []
    }

    let session: PeerMessage.Session
    package private(set) var peers: [PeerMessage.Session: Peer] = [:]
    /// The highest sequence number of own messages that came back through the broker.
    private var lastEcho: UInt64 = 0
    package private(set) var loops = 0
    private var recentLoops: (count: Int, since: Duration) = (0, .zero)

    init(session: PeerMessage.Session) { self.session = session }

    /// The peers that this gateway can rely on.
    var live: [Peer] { peers.values.filter { $0.presence == .live } }

    /// The short forms of sessions for the heads of messages.
    var seen: [String] {
        peers.values.filter { $0.presence != .left && !$0.presence.isSilent }.map {
            PeerMessage.shortForm(of: $0.session)
        }
        .sorted()
    }

    /// Whether the broker delivers messages repeatedly.
    func hasLoop(at now: Duration) -> Bool {
        recentLoops.count >= Self.minimumLoops && now - recentLoops.since < Self.offsetTime * 2
    }

    // MARK: - Messages

    mutating func receive(_ head: PeerMessage.Head, at now: Duration) -> Reception {
        guard head.session != session else {
            receiveEcho(head.sequence, at: now)
            return Reception()
        }
        let offset = now - .milliseconds(head.time)
        guard peers[head.session] != nil || makeRoom() else { return Reception() }
        var peer =
            peers[head.session]
            ?? Peer(
                id: head.from,
                session: head.session,
                lastHeard: now,
                offsets: (offset, offset),
                offsetStart: now
            )
        guard head.sequence > peer.sequence, head.from == peer.id, offset - peer.offset <= Self.maximumAge else {
            return Reception()
        }
        peer.sequence = head.sequence
        peer.lastHeard = now
        peer.deadvertised = nil
        peer.url = head.url ?? peer.url
        if now - peer.offsetStart > Self.offsetTime {
            peer.offsets = (offset, peer.offsets.current)
            peer.offsetStart = now
        }
        peer.offsets.current = min(peer.offsets.current, offset)
        var reception = Reception()
        reception.isAccepted = head.sees.contains(PeerMessage.shortForm(of: session))
        reception.needsReply = !reception.isAccepted
        let former = peer.presence
        peer.presence = !reception.isAccepted ? .seen : head.isStopping ? .stopping : .live
        switch (former, peer.presence) {
        case (.live, .live), (.stopping, .stopping): break
        case (_, .live): reception.changes = [.joined(peer.id)]
        case (_, .stopping): reception.changes = [.stopping(peer.id)]
        // It no longer receives this gateway's messages.
        case (.live, .seen), (.stopping, .seen): reception.changes = [.missing(peer.id)]
        default: break
        }
        peers[head.session] = peer
        return reception
    }

    private mutating func receiveEcho(_ sequence: UInt64, at now: Duration) {
        guard sequence <= lastEcho else {
            lastEcho = sequence
            return
        }
        loops += 1
        if now - recentLoops.since > Self.offsetTime { recentLoops = (0, now) }
        recentLoops.count += 1
    }

    /// Removes a session that is not live, if there are too many.
    ///
    /// - Returns: false if all are live.
    private mutating func makeRoom() -> Bool {
        guard peers.count >= Self.maximumPeers else { return true }
        let former = peers.values.filter { $0.presence != .live && $0.presence != .stopping }
        guard let oldest = former.min(by: { $0.lastHeard < $1.lastHeard }) else { return false }
        peers[oldest.session] = nil
        return true
    }

    // MARK: - Silence

    /// Returns the silent peers to probe now. The URL of a live peer is not that of a silent one any more.
    mutating func takeProbes(at now: Duration, interval: Duration) -> [(session: PeerMessage.Session, url: String)] {
        let urls = Set(live.compactMap(\.url))
        return peers.values.filter { $0.presence.isSilent }.compactMap { peer in
            guard let url = peer.url, !urls.contains(url), peer.lastProbe.map({ now - $0 > interval }) ?? true else {
                return nil
            }
            peers[peer.session]?.lastProbe = now
            return (peer.session, url)
        }
    }

    /// Records whether a silent peer could be reached.
    ///
    /// - Returns: the id of its identity, if the brokers seem to be partitioned and did not before.
    mutating func setReachable(_ session: PeerMessage.Session, _ isReachable: Bool) -> CoatyUUID? {
        guard let peer = peers[session], peer.presence.isSilent else { return nil }
        peers[session]?.presence = isReachable ? .partitioned : .missing
        return isReachable && peer.presence == .missing ? peer.id : nil
    }

    // MARK: - Departures

    /// Handles that an identity was deadvertised. If the peer is alive, it sends a sign of life at once.
    mutating func suspect(_ id: CoatyUUID, at now: Duration) {
        for peer in peers.values where peer.id == id && peer.presence != .left {
            peers[peer.session]?.deadvertised = peer.deadvertised ?? now
        }
    }

    /// Handles the passage of time.
    ///
    /// - Parameters:
    ///   - timeout: how long a peer may be silent.
    ///   - online: when this gateway has last come online; nil while it is offline.
    ///   - memory: how long a silent session is remembered, so that its cursors can be used.
    mutating func advance(to now: Duration, timeout: Duration, online: Duration?, memory: Duration) -> [Change] {
        // While this gateway is offline, it receives nothing.
        guard let online else { return [] }
        var changes: [Change] = []
        for peer in peers.values {
            let silence = now - max(peer.lastHeard, online)
            if let deadvertised = peer.deadvertised, peer.presence != .left, peer.presence != .seen,
                now - max(deadvertised, online) > Self.suspicionTime
            {
                peers[peer.session]?.presence = .left
                changes.append(.left(peer.id))
            } else if silence > timeout, peer.presence == .live || peer.presence == .stopping {
                peers[peer.session]?.presence = .missing
                changes.append(.missing(peer.id))
            }
            if silence > memory, peer.presence == .left || peer.presence == .seen { peers[peer.session] = nil }
        }
        return changes
    }
}
