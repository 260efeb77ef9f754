/// A position in a feed after which a client can resume: `<epoch>-<position>`.
///
/// A feed has one epoch for its lifetime. If the epoch differs from that of the current feed, the number of events between the
/// two is unknown.
struct FeedCursor: Sendable, Hashable, CustomStringConvertible {
    let epoch: UInt64
    /// The number of the record in its feed, from 1; 0 is before the first record.
    let position: UInt64

    init(epoch: UInt64, position: UInt64) {
        self.epoch = epoch
        self.position = position
    }

    /// Parses the text form of a cursor; nil if the text is not a cursor.
    init?(_ text: String) {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        guard text.utf8.count <= 40, parts.count == 2, let epoch = UInt64(parts[0], radix: 36),
            let position = UInt64(parts[1])
        else { return nil }
        self.init(epoch: epoch, position: position)
    }

    /// The cursor of the next record.
    var next: FeedCursor { FeedCursor(epoch: epoch, position: position + 1) }

    var description: String { String(epoch, radix: 36) + "-" + String(position) }
}
