/// Topic filters suspected of having caused lost connections, and those refused because of it.
struct SuspectFilters {
    typealias Key = MQTTSubscriptions.Key

    private struct Record {
        var strikes = 0
        /// Number of retries that have failed.
        var retries = 0
        /// When to ask again; nil if not any more, or not yet refused.
        var retryAt: ContinuousClock.Instant?
        var isRefused = false
    }

    /// Number of lost connections after which a filter is refused.
    static let maximumStrikes = 2
    /// When a refused filter is asked for again: bad luck does not last. Then no more.
    static let retryIntervals: [Duration] = [.seconds(60), .seconds(600), .seconds(3600)]
    /// Maximum number of filters that are remembered, also when nobody subscribes to them any more.
    static let maximumRecords = 1_000

    private var records: [Key: Record] = [:]

    /// Whether a suspect is refused; nil if the filter is none.
    func isRefused(_ key: Key) -> Bool? { records[key]?.isRefused }

    /// Makes a filter a suspect, unless it is one.
    mutating func suspect(_ key: Key) {
        guard records[key] == nil else { return }
        if records.count >= Self.maximumRecords,
            let other = (records.first { !$0.value.isRefused } ?? records.first)?.key
        {
            records[other] = nil
        }
        records[key] = Record()
    }

    /// Forgets a filter: the broker has answered it.
    mutating func acquit(_ key: Key) { records[key] = nil }

    mutating func acquitAllThatAreNotRefused() { records = records.filter(\.value.isRefused) }

    /// Notes that a connection was lost while a suspect was unanswered.
    ///
    /// - Returns: whether it is refused from now on.
    mutating func strike(_ key: Key, _ now: ContinuousClock.Instant) -> Bool {
        guard var record = records[key] else { return false }
        record.strikes += 1
        if record.isRefused { record.retries += 1 }
        if record.strikes >= Self.maximumStrikes {
            record.isRefused = true
            record.retryAt =
                record.retries < Self.retryIntervals.count ? now + Self.retryIntervals[record.retries] : nil
        }
        records[key] = record
        return record.isRefused
    }

    /// The refused filters to ask for again.
    func due(_ now: ContinuousClock.Instant) -> [Key] {
        records.filter { $0.value.isRefused && $0.value.retryAt.map { $0 <= now } ?? false }.map(\.key)
    }
}
