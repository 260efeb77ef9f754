/// Topic filters that are suspected of having caused lost connections, and those that are refused because of it.
struct SuspectFilters {
    typealias Key = MQTTSubscriptions.Key

    private struct Record {
        var strikes = 0
        /// Number of retries that have failed.
        var retries = 0
        /// When to request it again; nil if it is not requested any more, or not yet refused.
        var retryAt: ContinuousClock.Instant?
        var isRefused = false
    }

    /// Number of lost connections after which a filter is refused.
    static let maximumStrikes = 2
    /// The times after which a refused filter is requested again, because the cause may have been something else. After
    /// the last time, it is not requested any more.
    static let retryIntervals: [Duration] = [.seconds(60), .seconds(600), .seconds(3600)]
    /// Maximum number of stored filters, including filters without subscriptions.
    static let maximumRecords = 1_000

    private var records: [Key: Record] = [:]

    /// Returns whether a suspect is refused; nil if the filter is not a suspect.
    func isRefused(_ key: Key) -> Bool? { records[key]?.isRefused }

    /// Makes a filter a suspect unless it already is.
    mutating func suspect(_ key: Key) {
        guard records[key] == nil else { return }
        if records.count >= Self.maximumRecords,
            let other = (records.first { !$0.value.isRefused } ?? records.first)?.key
        {
            records[other] = nil
        }
        records[key] = Record()
    }

    /// Removes a filter, because the broker has answered it.
    mutating func acquit(_ key: Key) { records[key] = nil }

    mutating func acquitAllThatAreNotRefused() { records = records.filter(\.value.isRefused) }

    /// Records that a connection was lost while a suspect was unanswered.
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

    /// Returns the refused filters to request again.
    func due(_ now: ContinuousClock.Instant) -> [Key] {
        records.filter { $0.value.isRefused && $0.value.retryAt.map { $0 <= now } ?? false }.map(\.key)
    }
}
