import DequeModule

/// Finds the publications because of which a broker closes the connection: larger than it accepts, or denied.
///
/// The binding reports what the broker has read. When the broker closes the connection, what it may have read since then
/// is suspected. Later publications of these kinds are written one at a time, each confirmed before the next is written.
/// A suspect that was the only unconfirmed publication when the broker closes the connection again is proven: it is given
/// up, and others like it are refused for a time. So each cause ends two connections.
///
/// This is a value without side effects.
struct PublicationSuspects: Sendable {
    typealias Instant = ContinuousClock.Instant

    /// What a broker may deny: a topic without the ids in it.
    enum Kind: Hashable, Sendable {
        case event(CommunicationEventType, name: EventName?)
        case topic(String)

        init(_ publication: Publication) {
            self =
                switch publication.destination {
                case .event(let address): .event(address.eventType, name: address.name)
                case .ioRoute(let name), .raw(let name, _): .topic(name)
                }
        }
    }

    /// A publication that was given up.
    struct Proven: Sendable, Equatable {
        let kind: Kind
        let size: Int
        /// The advertised object; nil if there is none, or it is not advertised again.
        let objectId: CoatyUUID?
    }

    private struct Record {
        let kind: Kind
        let size: Int
        let objectId: CoatyUUID?
        /// Whether it may be given up: it was written alone, and the agent can do without it.
        let mayBeProven: Bool

        init(_ publication: Publication) {
            kind = Kind(publication)
            size = publication.size
            objectId = publication.sharedObjectId
            mayBeProven = publication.isWrittenAlone && (!publication.isJoinEvent || objectId != nil)
        }
    }

    private struct Refusal {
        var until: Instant
        /// For how long it is refused; doubled if it is proven again.
        var time: Duration
    }

    /// Size in bytes from which a publication's size may be the cause.
    static let largeSize = 16 << 10
    /// For how long publications of a suspected kind are confirmed one at a time.
    static let suspicionTime = Duration.seconds(600)
    /// For how long a proven kind is refused at first, and at most.
    static let refusalTime = (first: Duration.seconds(60), longest: Duration.seconds(3600))
    /// Maximum number of stored unconfirmed publications. The oldest are forgotten: the broker has most likely read them.
    static let maximumUnconfirmed = 4096
    /// Maximum number of kinds that are suspected, refused, or have passed on a connection; others are not stored.
    static let maximumKinds = 1000

    /// Number of publications that were proven.
    private(set) var proven = 0
    private var unconfirmed = Deque<Record>()
    /// Number of the oldest unconfirmed publications that are no longer stored.
    private var forgotten = 0
    private var suspected: [Kind: Instant] = [:]
    private var suspectedSize: (size: Int, until: Instant)?
    private var refused: [Kind: Refusal] = [:]
    private var refusedSize: (size: Int, refusal: Refusal)?
    /// The kinds of which the broker has confirmed a publication on this connection.
    private var passed: Set<Kind> = []

    /// Whether there is any suspect or refusal.
    var isActive: Bool { !suspected.isEmpty || suspectedSize != nil || !refused.isEmpty || refusedSize != nil }

    /// Returns why a publication is refused; nil if it is not.
    func refusal(of publication: Publication, now: Instant) -> CommunicationError? {
        if let (size, refusal) = refusedSize, publication.size >= size, now < refusal.until {
            return .exceedsBrokerLimit(size: publication.size, limit: size - 1)
        }
        guard let refusal = refused[Kind(publication)], now < refusal.until else { return nil }
        return .closesConnection
    }

    /// Returns whether a publication is confirmed before the next one is written.
    func isWrittenAlone(_ publication: Publication, now: Instant) -> Bool {
        let kind = Kind(publication)
        if publication.isDeferred, publication.size > Self.largeSize || !passed.contains(kind) { return true }
        if let until = suspected[kind], now < until { return true }
        if let (size, until) = suspectedSize, publication.size >= size, now < until { return true }
        // After the refusal is over, it is tried alone.
        return refused[kind] != nil || refusedSize.map { publication.size >= $0.size } ?? false
    }

    /// Records a publication that was written entirely.
    mutating func written(_ publication: Publication) {
        unconfirmed.append(Record(publication))
        guard unconfirmed.count > Self.maximumUnconfirmed else { return }
        unconfirmed.removeFirst()
        forgotten += 1
    }

    /// Records that the broker has read the oldest publications that were written.
    mutating func confirmed(_ count: Int) {
        let skipped = min(forgotten, count)
        forgotten -= skipped
        for _ in 0..<min(count - skipped, unconfirmed.count) {
            let record = unconfirmed.removeFirst()
            if passed.count < Self.maximumKinds { passed.insert(record.kind) }
            guard isActive else { continue }
            suspected[record.kind] = nil
            if record.size >= suspectedSize?.size ?? .max { suspectedSize = nil }
            refused[record.kind] = nil
            if record.size >= refusedSize?.size ?? .max { refusedSize = nil }
        }
    }

    /// Records that the connection has ended.
    ///
    /// - Parameters:
    ///   - partly: the publication that was being written.
    ///   - byBroker: whether the broker has closed the connection.
    /// - Returns: the publication that is proven to be the cause.
    mutating func connectionLost(partly: Publication?, byBroker: Bool, now: Instant) -> Proven? {
        let candidates = unconfirmed + (partly.map { [Record($0)] } ?? [])
        (unconfirmed, forgotten, passed) = ([], 0, [])
        suspected = suspected.filter { now < $0.value }
        guard byBroker, let first = candidates.first else { return nil }
        if candidates.count == 1, first.mayBeProven, isSuspected(first, now) { return prove(first, now) }
        for record in candidates where suspected.count < Self.maximumKinds {
            suspected[record.kind] = now + Self.suspicionTime
        }
        if let size = candidates.map(\.size).filter({ $0 > Self.largeSize }).min() {
            suspectedSize = (min(size, suspectedSize?.size ?? .max), now + Self.suspicionTime)
        }
        return nil
    }

    /// Forgets what is refused: it was learned from another broker, or with other limits.
    mutating func forgetRefusals() { (refused, refusedSize) = ([:], nil) }

    private func isSuspected(_ record: Record, _ now: Instant) -> Bool {
        if suspected[record.kind] != nil || refused[record.kind] != nil { return true }
        let size = min(suspectedSize?.size ?? .max, refusedSize?.size ?? .max)
        return record.size >= size
    }

    private mutating func prove(_ record: Record, _ now: Instant) -> Proven {
        proven += 1
        func next(_ former: Refusal?) -> Refusal {
            let time = former.map { min($0.time * 2, Self.refusalTime.longest) } ?? Self.refusalTime.first
            return Refusal(until: now + time, time: time)
        }
        if record.size > Self.largeSize {
            let refusal = next(refusedSize?.refusal)
            refusedSize = (min(record.size, refusedSize?.size ?? .max), refusal)
            (suspectedSize, suspected[record.kind]) = (nil, nil)
        } else if refused[record.kind] != nil || refused.count < Self.maximumKinds {
            refused[record.kind] = next(refused[record.kind])
            suspected[record.kind] = nil
        }
        return Proven(kind: record.kind, size: record.size, objectId: record.objectId)
    }
}
