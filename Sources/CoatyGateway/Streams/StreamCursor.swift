/// A place in what a source has said, to resume behind it: `<epoch>-<position>`.
///
/// The epoch is that of a source while the gateway observes it without a break of its own; where it is another one now,
/// nobody knows what was missed.
struct StreamCursor: Sendable, Hashable, CustomStringConvertible {
    let epoch: UInt64
    /// Counts what the source has said, from 1; 0 is before all of it.
    let position: UInt64

    init(epoch: UInt64, position: UInt64) {
        self.epoch = epoch
        self.position = position
    }

    /// Reads a cursor as it stands in a frame; nil where the text is none.
    init?(_ text: String) {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        guard text.utf8.count <= 40, parts.count == 2, let epoch = UInt64(parts[0], radix: 36),
            let position = UInt64(parts[1])
        else { return nil }
        self.init(epoch: epoch, position: position)
    }

    /// The place behind what comes next.
    var next: StreamCursor { StreamCursor(epoch: epoch, position: position + 1) }

    var description: String { String(epoch, radix: 36) + "-" + String(position) }
}
