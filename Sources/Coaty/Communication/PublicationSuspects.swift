import DequeModule

/// Finds the publications because of which a broker closes the connection: larger than it accepts, or denied.
///
/// The binding reports what the broker has read. When the broker closes the connection, what it may have read since then is
/// suspected, and so are later publications of the same clients and kinds, and larger ones. A ``Quarantine`` publishes
/// suspects. It learns which of them the broker accepts, and which are proven to be the cause. Others like these are refused
/// to their client, and stay suspects if another client publishes them.
///
/// This is a value without side effects.
struct PublicationSuspects: Sendable {
    typealias Instant = ContinuousClock.Instant
    typealias Kind = RefusedPublication.Kind

    private enum Subject: Hashable {
        case client(ObjectIdentifier?)
        case kind(Kind)
    }

    private struct Suspicion {
        var until: Instant
        /// Number of publications that have passed since.
        var passed = 0
        var isProven = false
        /// Keeps the client's id from being used again.
        let client: (any PublicationClient)?
    }

    private struct Refused: Hashable {
        /// Nil for the agent itself.
        let client: ObjectIdentifier?
        /// Nil for a size.
        let kind: Kind?
    }

    private struct Refusal {
        var until: Instant
        /// For how long it is refused; doubled if it is proven again.
        var time: Duration
        /// The smallest proven size; nil for a kind.
        var size: Int?
        let client: (any PublicationClient)?
    }

    private struct Record {
        let kind: Kind
        let size: Int
        let client: (any PublicationClient)?
        /// Whether it announces the agent, which can't do without it.
        let isAnnouncement: Bool
        /// The publication, if it is retained.
        var retained: Publication?

        init(_ publication: Publication) {
            (kind, size, client) = (Kind(publication), publication.size, publication.client)
            isAnnouncement = publication.isAnnouncement
        }
    }

    /// What a lost connection leaves.
    struct Loss {
        /// Number of publications that are suspected to be the cause, which may be lost.
        var suspected = 0
        /// The last unconfirmed retained message of each topic, in order.
        var retained: [Publication] = []
    }

    /// Size in bytes from which a publication's size may be the cause.
    static let largeSize = 16 << 10
    /// How long suspicions last.
    static let suspicionTime = Duration.seconds(600)
    /// Number of publications that must pass to end a suspicion that was never proven.
    static let acquittingPasses = 32
    /// For how long a proven kind or size is refused to its client at first, and at most.
    static let refusalTime = (first: Duration.seconds(60), longest: Duration.seconds(3600))
    /// The number of connections that the broker may close within ``lossTime`` before everything is suspected for as long.
    static let maximumLosses = 3
    static let lossTime = Duration.seconds(60)
    /// Maximum number of stored unconfirmed publications. The oldest are forgotten: the broker has most likely read them.
    static let maximumUnconfirmed = 4096
    /// Maximum size of the stored unconfirmed retained messages, in bytes. Those beyond are not published again.
    static let maximumRetainedBytes = 8 << 20
    /// Maximum number of clients and kinds that are suspected, kinds that are refused, and kinds that have passed on a
    /// connection. If more would be suspected, everything is.
    static let maximumSubjects = 1000

    /// Number of publications that were proven.
    private(set) var proven = 0
    private var unconfirmed = Deque<Record>()
    /// Size of the retained messages among them, in bytes.
    private var retainedBytes = 0
    /// Number of the oldest unconfirmed publications that are no longer stored.
    private var forgotten = 0
    private var suspicions: [Subject: Suspicion] = [:]
    private var suspectedSize: (size: Int, until: Instant)?
    /// When the suspicion of everything ends.
    private var allUntil: Instant?
    /// When the last suspicion or refusal ends; nil if there is none.
    private var activeUntil: Instant?
    private var refusals: [Refused: Refusal] = [:]
    /// The subjects that were suspected when the last connection was lost, and not before.
    private var accused: [Subject] = []
    /// When the broker has closed the last connections.
    private var losses: [Instant] = []
    /// The kinds of which the broker has confirmed a publication on this connection.
    private var passed: Set<Kind> = []

    /// Whether there is any suspicion or refusal. It may have ended.
    var isActive: Bool { activeUntil != nil }

    /// What is suspected and refused now.
    var summary: (clients: Int, kinds: Int, size: Int?, refusals: Int) {
        let now = Instant.now
        let current = suspicions.filter { now < $0.value.until }.keys
        let clients = current.count { if case .client = $0 { true } else { false } }
        let size = suspectedSize.flatMap { now < $0.until ? $0.size : nil }
        return (clients, current.count - clients, size, refusals.values.count { now < $0.until })
    }

    /// Returns why a publication is refused; nil if it is not.
    func refusal(of publication: Publication, now: Instant) -> CommunicationError? {
        let client = publication.client.map(ObjectIdentifier.init)
        if let refusal = refusals[Refused(client: client, kind: nil)], now < refusal.until, let size = refusal.size,
            publication.size >= size
        {
            return .exceedsBrokerLimit(size: publication.size, limit: size - 1)
        }
        guard let refusal = refusals[Refused(client: client, kind: Kind(publication))], now < refusal.until else {
            return nil
        }
        return .closesConnection
    }

    /// Returns whether a publication may be the cause of a lost connection.
    func isSuspect(_ publication: Publication, now: Instant) -> Bool {
        guard let activeUntil, now < activeUntil else { return false }
        if let allUntil, now < allUntil { return true }
        if let (size, until) = suspectedSize, publication.size >= size, now < until { return true }
        let kind = Kind(publication)
        if let until = suspicions[.kind(kind)]?.until, now < until { return true }
        let client = publication.client.map(ObjectIdentifier.init)
        if client != nil, let until = suspicions[.client(client)]?.until, now < until { return true }
        // It is tried again after its refusal.
        guard let refusal = refusals[Refused(client: client, kind: nil)], let size = refusal.size,
            publication.size >= size
        else { return refusals[Refused(client: client, kind: kind)] != nil }
        return true
    }

    /// Returns whether the broker must confirm a deferred publication before the next one is written, so that those behind
    /// it arrive whatever the broker does.
    func isConfirmedAlone(deferred publication: Publication) -> Bool {
        publication.size > Self.largeSize || !passed.contains(Kind(publication))
    }

    /// Records a publication that was written entirely.
    mutating func written(_ publication: Publication) {
        var record = Record(publication)
        if publication.isRetained, retainedBytes + publication.size <= Self.maximumRetainedBytes {
            record.retained = publication
            record.retained?.holding = nil
            retainedBytes += publication.size
        }
        unconfirmed.append(record)
        guard unconfirmed.count > Self.maximumUnconfirmed else { return }
        _ = removeOldest()
        forgotten += 1
    }

    private mutating func removeOldest() -> Record {
        let record = unconfirmed.removeFirst()
        if record.retained != nil { retainedBytes -= record.size }
        return record
    }

    /// Whether the broker has read everything that was written.
    var isConfirmed: Bool { unconfirmed.isEmpty }

    /// Returns whether a client's publications were written and may not be read.
    ///
    /// - Parameter client: nil for the agent itself.
    func hasUnconfirmed(of client: (any PublicationClient)?) -> Bool {
        unconfirmed.contains { $0.client === client }
    }

    /// Records that the broker has read the oldest publications that were written.
    mutating func confirmed(_ count: Int) {
        let skipped = min(forgotten, count)
        forgotten -= skipped
        for _ in 0..<min(count - skipped, unconfirmed.count) {
            let record = removeOldest()
            if passed.count < Self.maximumSubjects { passed.insert(record.kind) }
        }
    }

    /// Records that the connection has ended.
    ///
    /// - Parameters:
    ///   - partly: the publication that was being written.
    ///   - byBroker: whether the broker has closed the connection, possibly because of a publication.
    mutating func connectionLost(partly: Publication?, byBroker: Bool, now: Instant) -> Loss {
        var loss = Loss(retained: unconfirmedRetained)
        let candidates = (unconfirmed + (partly.map { [Record($0)] } ?? [])).filter { !$0.isAnnouncement }
        (unconfirmed, retainedBytes, forgotten, passed, accused) = ([], 0, 0, [], [])
        guard byBroker, !candidates.isEmpty else { return loss }
        loss.suspected = candidates.count
        suspicions = suspicions.filter { now < $0.value.until }
        losses = losses.filter { now < $0 + Self.lossTime } + [now]
        if losses.count >= Self.maximumLosses { suspectAll(until: now + Self.lossTime) }
        for record in candidates {
            if let client = record.client { suspect(.client(ObjectIdentifier(client)), client, now) }
            suspect(.kind(record.kind), nil, now)
        }
        if let size = candidates.map(\.size).filter({ $0 > Self.largeSize }).min() { suspect(size: size, now) }
        return loss
    }

    private var unconfirmedRetained: [Publication] {
        guard retainedBytes > 0 else { return [] }
        var topics: Set<Kind> = []
        return unconfirmed.reversed()
            .compactMap { record in topics.insert(record.kind).inserted ? record.retained : nil }
            .reversed()
    }

    /// Records that the broker can't be reached since the connection was lost, so that no publication was the cause.
    mutating func brokerIsGone() {
        guard !accused.isEmpty else { return }
        for subject in accused where suspicions[subject]?.isProven == false { suspicions[subject] = nil }
        if suspicions.isEmpty, refusals.isEmpty { forgetAll() }
        (accused, losses) = ([], losses.dropLast())
    }

    /// Records that the broker has confirmed a suspect.
    mutating func passed(_ publication: Publication) {
        let (kind, client) = (Kind(publication), publication.client.map(ObjectIdentifier.init))
        if passed.count < Self.maximumSubjects { passed.insert(kind) }
        for subject in [Subject.kind(kind), .client(client)] {
            guard var suspicion = suspicions[subject], !suspicion.isProven else { continue }
            suspicion.passed += 1
            suspicions[subject] = suspicion.passed < Self.acquittingPasses ? suspicion : nil
        }
        if let (size, _) = suspectedSize, publication.size >= size { suspectedSize = nil }
        refusals[Refused(client: client, kind: kind)] = nil
        if let size = refusals[Refused(client: client, kind: nil)]?.size, publication.size >= size {
            refusals[Refused(client: client, kind: nil)] = nil
        }
    }

    /// Records that a publication is the cause of a lost connection.
    mutating func prove(_ publication: Publication, now: Instant) {
        proven += 1
        suspicions = suspicions.filter { now < $0.value.until }
        // Longer than it was refused, so that the next refusal is longer.
        refusals = refusals.filter { now < $0.value.until + Self.refusalTime.longest }
        let (kind, client) = (Kind(publication), publication.client)
        if let client { suspect(.client(ObjectIdentifier(client)), client, now, isProven: true) }
        let isLarge = publication.size > Self.largeSize
        if isLarge { suspect(size: publication.size, now) } else { suspect(.kind(kind), nil, now, isProven: true) }
        let refused = Refused(client: client.map(ObjectIdentifier.init), kind: isLarge ? nil : kind)
        let former = refusals[refused]
        guard former != nil || refusals.count < Self.maximumSubjects else { return }
        let time = former.map { min($0.time * 2, Self.refusalTime.longest) } ?? Self.refusalTime.first
        refusals[refused] = Refusal(
            until: now + time,
            time: time,
            size: isLarge ? min(publication.size, former?.size ?? .max) : nil,
            client: client
        )
        // Until then, it is known how long it was refused.
        stayActive(until: now + Self.refusalTime.longest)
    }

    /// Forgets everything if all of it is over, so that nothing more is looked up.
    mutating func forgetExpired(now: Instant) {
        if let activeUntil, now >= activeUntil { forgetAll() }
    }

    /// Forgets everything: it was learned from another broker, or with other limits.
    mutating func forgetAll() {
        (suspicions, suspectedSize, allUntil, activeUntil) = ([:], nil, nil, nil)
        (refusals, accused, losses) = ([:], [], [])
    }

    private mutating func suspect(
        _ subject: Subject,
        _ client: (any PublicationClient)?,
        _ now: Instant,
        isProven: Bool = false
    ) {
        let until = now + Self.suspicionTime
        stayActive(until: until)
        let former = suspicions[subject]
        guard former != nil || suspicions.count < Self.maximumSubjects else {
            // One client can prove as many: its publications are suspects anyway.
            return isProven ? () : suspectAll(until: until)
        }
        if former == nil, !isProven { accused.append(subject) }
        suspicions[subject] = Suspicion(until: until, isProven: isProven || former?.isProven ?? false, client: client)
    }

    private mutating func suspect(size: Int, _ now: Instant) {
        suspectedSize = (min(size, suspectedSize?.size ?? .max), now + Self.suspicionTime)
        stayActive(until: now + Self.suspicionTime)
    }

    private mutating func suspectAll(until: Instant) {
        allUntil = max(until, allUntil ?? until)
        stayActive(until: until)
    }

    private mutating func stayActive(until: Instant) { activeUntil = max(until, activeUntil ?? until) }
}
