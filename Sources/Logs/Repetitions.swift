import Access
import Logging

/// Decides which messages are written: those that repeat within an interval are counted instead.
///
/// Messages are equal if label, level and text are equal. Their fields may differ: the first ``maximumVariants``
/// different ones are written, because each can contain another cause.
struct Repetitions: Sendable {
    static let interval = Duration.seconds(10)
    /// Maximum number of stored messages; a further one replaces the oldest.
    static let maximumMessages = 256
    /// Maximum number of lines of one message within ``interval``.
    static let maximumVariants = 8

    struct Message: Hashable, Sendable {
        let label: LogLabel
        let level: Logger.Level
        let text: String
    }

    /// A message that was counted instead of written.
    struct Summary: Equatable, Sendable {
        let message: Message
        let count: Int
        /// The time of the last one.
        let last: ContinuousClock.Instant
    }

    private struct Entry {
        let since: ContinuousClock.Instant
        var variants: Set<Int>
        var count = 0
        var last: ContinuousClock.Instant
    }

    private var entries: [Message: Entry] = [:]

    /// Whether there is a message that was counted and whose summary has not been returned.
    var hasCounted: Bool { entries.values.contains { $0.count > 0 } }

    /// Handles a message.
    ///
    /// - Parameter variant: a hash of its fields.
    /// - Returns: whether it must be written, and the summaries to write before it, of messages whose interval is over.
    mutating func take(
        _ message: Message,
        variant: Int,
        at now: ContinuousClock.Instant
    ) -> (isWritten: Bool, ended: [Summary]) {
        if var entry = entries[message], now - entry.since < Self.interval {
            let isWritten = entry.variants.count < Self.maximumVariants && entry.variants.insert(variant).inserted
            if !isWritten {
                entry.count += 1
                entry.last = now
            }
            entries[message] = entry
            return (isWritten, [])
        }
        var ended: [Summary] = []
        if let entry = entries.removeValue(forKey: message) {
            ended += Self.summary(message, entry)
        } else if entries.count >= Self.maximumMessages {
            ended += expire(at: now)
            if entries.count >= Self.maximumMessages, let oldest = entries.min(by: { $0.value.since < $1.value.since })
            {
                entries[oldest.key] = nil
                ended += Self.summary(oldest.key, oldest.value)
            }
        }
        entries[message] = Entry(since: now, variants: [variant], last: now)
        return (true, ended)
    }

    /// Removes the messages whose interval is over; without a time, removes all.
    mutating func expire(at now: ContinuousClock.Instant?) -> [Summary] {
        let over = entries.filter { entry in now.map { $0 - entry.value.since >= Self.interval } ?? true }
        for message in over.keys { entries[message] = nil }
        return over.sorted { $0.value.since < $1.value.since }.flatMap { Self.summary($0.key, $0.value) }
    }

    private static func summary(_ message: Message, _ entry: Entry) -> [Summary] {
        entry.count > 0 ? [Summary(message: message, count: entry.count, last: entry.last)] : []
    }
}
