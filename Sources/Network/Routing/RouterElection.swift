import Cluster
import Coaty

/// The version of a hosted context and its rules in a cluster.
package struct RoutingVersion: Sendable, Hashable, Comparable, Codable {
    /// Increases whenever another gateway begins to speak.
    package var term: UInt64 = 0
    /// Increases with each change.
    package var counter: UInt64 = 0

    package static func < (one: RoutingVersion, other: RoutingVersion) -> Bool {
        (one.term, one.counter) < (other.term, other.counter)
    }
}

/// Since when a gateway has been receiving the messages of the others without a long interruption.
///
/// Times are passed in: durations since the start of the gateway.
struct ClusterPresence: Sendable {
    private var lastNote: Duration?
    private var offlineSince: Duration?
    /// Nil while the gateway is offline, and before it first was online.
    private(set) var since: Duration?
    private var former: Duration?

    /// Records the passage of time. Must be called more often than a frozen process could.
    ///
    /// - Parameter longest: the longest interruption that does not count.
    mutating func note(_ now: Duration, isOnline: Bool, longest: Duration) {
        let wasFrozen = lastNote.map { now - $0 > longest } ?? false
        lastNote = now
        if wasFrozen { (since, former) = (nil, nil) }
        guard isOnline else {
            offlineSince = offlineSince ?? now
            former = since ?? former
            since = nil
            return
        }
        if let offlineSince, now - offlineSince > longest { former = nil }
        offlineSince = nil
        since = since ?? former ?? now
        former = nil
    }
}

/// Decides which gateway of a cluster speaks for a context that several of them route: publishes its associations, and
/// performs its changes. Each gateway decides for itself; the highest term wins.
struct RouterElection: Sendable {
    /// How long a gateway listens to the others before it may begin to speak.
    static let settlingTime = Peers.interval * 2 + .milliseconds(500)

    /// The announcement of a gateway about a context that it routes.
    struct Claim: Sendable, Hashable, Codable {
        var version = RoutingVersion()
        var speaks = false
        /// Whether it may begin to speak.
        var isReady = false
        /// Whether an agent outside of the cluster routes the context.
        var seesOther = false
    }

    enum Step: Sendable, Hashable {
        /// Nothing changes.
        case stay
        /// Begin to speak.
        case speak
        /// Publish all associations again, because another gateway that spoke too has fallen silent.
        case publishAgain
        /// Adopt the state of another gateway, which speaks.
        case follow(CoatyUUID)
        /// Like ``follow(_:)``, and then fall silent.
        case yield(CoatyUUID)
        /// Fall silent, because other gateways may have begun to speak unnoticed.
        case fallSilent
    }

    /// The circumstances of a decision.
    struct Situation {
        let now: Duration
        /// See ``ClusterPresence/since``.
        let presentSince: Duration?
        /// The other gateways that route the context and can be relied on.
        let others: [CoatyUUID: Claim]
        /// The highest term of all gateways that were ever seen.
        let highestTerm: UInt64
        let seesOther: Bool
    }

    let id: CoatyUUID
    private(set) var claim = Claim()
    private var presentSince: Duration?
    /// The other gateways that speak although this one does.
    private var rivals: Set<CoatyUUID> = []

    init(id: CoatyUUID) { self.id = id }

    /// Decides what to do.
    mutating func step(_ situation: Situation) -> Step {
        let (now, others) = (situation.now, situation.others)
        let isInterrupted = presentSince != nil && presentSince != situation.presentSince
        // A short loss of the connection does not count: the same time returns after it.
        if situation.presentSince != nil { presentSince = situation.presentSince }
        claim.isReady = situation.presentSince.map { now - $0 >= Self.settlingTime } ?? false
        claim.seesOther = situation.seesOther
        let speaker = others.filter(\.value.speaks)
            .max { Self.wins($1.key, $1.value.version.term, over: $0.key, $0.value.version.term) }
        if claim.speaks {
            if isInterrupted, situation.presentSince != nil {
                claim.speaks = false
                rivals = []
                return .fallSilent
            }
            guard situation.presentSince != nil else { return .stay }
            if let speaker, Self.wins(speaker.key, speaker.value.version.term, over: id, claim.version.term) {
                return .yield(speaker.key)
            }
            let former = rivals
            rivals = Set(others.filter(\.value.speaks).keys)
            return former.contains { others[$0].map { !$0.speaks } ?? false } ? .publishAgain : .stay
        }
        if let speaker { return .follow(speaker.key) }
        guard claim.isReady, !claim.seesOther, !others.values.contains(where: \.seesOther),
            !others.contains(where: { isBefore($0, $1, situation) })
        else { return .stay }
        claim.speaks = true
        claim.version.term = max(situation.highestTerm, claim.version.term) + 1
        rivals = []
        return .speak
    }

    /// Records that the state of another gateway was adopted, or that this gateway's own state was loaded.
    mutating func adopt(_ version: RoutingVersion) { claim.version = version }

    /// Records that the context or its rules were changed here.
    mutating func change() { claim.version.counter += 1 }

    /// Records that this gateway has fallen silent.
    mutating func fallSilent() { (claim.speaks, rivals) = (false, []) }

    /// Returns whether another gateway may speak rather than this one: the one with the latest state. If that one is
    /// not ready, it is awaited for a while.
    private func isBefore(_ other: CoatyUUID, _ theirs: Claim, _ situation: Situation) -> Bool {
        if theirs.version == claim.version { return theirs.isReady && other.string < id.string }
        let isAwaited = situation.now - (situation.presentSince ?? .zero) < Self.settlingTime * 3
        return claim.version < theirs.version && (theirs.isReady || isAwaited)
    }

    private static func wins(_ one: CoatyUUID, _ term: UInt64, over other: CoatyUUID, _ otherTerm: UInt64) -> Bool {
        term == otherTerm ? one.string < other.string : term > otherTerm
    }
}
