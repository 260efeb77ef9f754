import Base

/// A position in a feed after which a client can resume: `<epoch>-<position>`, or a ``SealedCursor`` if clients can resume
/// at other gateways.
///
/// A feed has one epoch for its lifetime. If the epoch differs from that of the current feed, the number of events
/// between the two is unknown. The position is enciphered in the text: clients must not learn how many events their
/// filter or the access policy hides from them. A cursor is a bookmark and gives no access.
package struct FeedCursor: Sendable, Hashable, CustomStringConvertible {
    let epoch: UInt64
    /// The number of the record in its feed, from 1; 0 is before the first record.
    let position: UInt64
    /// The place that other gateways can find; nil if clients can't resume there.
    let place: RecordPlace?

    init(epoch: UInt64, position: UInt64, place: RecordPlace? = nil) {
        self.epoch = epoch
        self.position = position
        self.place = place
    }

    /// Parses the text form of a cursor; nil if the text is not a cursor.
    init?(_ text: String) {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        guard text.utf8.count <= 40, parts.count == 2, let epoch = UInt64(parts[0], radix: 36),
            let position = UInt64(parts[1])
        else { return nil }
        self.init(epoch: epoch, position: PositionCipher.decipher(position, epoch: epoch))
    }

    /// The cursor of the next record.
    var next: FeedCursor { FeedCursor(epoch: epoch, position: position + 1) }

    package static func == (left: FeedCursor, right: FeedCursor) -> Bool {
        left.epoch == right.epoch && left.position == right.position
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(epoch)
        hasher.combine(position)
    }

    package var description: String {
        if let place { return place.text }
        return String(epoch, radix: 36) + "-" + String(PositionCipher.encipher(position, epoch: epoch))
    }
}

/// The text of a cursor that all gateways of a cluster can open: base64url.
struct SealedCursor: Sendable, Equatable {
    static let length = CursorSeal.tagLength + CursorContent.length

    let bytes: [UInt8]

    /// Returns nil if the text is not base64url, or has another length.
    init?(_ text: String) {
        guard text.utf8.count == (Self.length * 4 + 2) / 3, let bytes = Base64URL.decode(text.utf8) else { return nil }
        self.bytes = bytes
    }
}

/// A cursor that a client sends.
enum ClientCursor: Sendable, Equatable {
    case plain(FeedCursor)
    case sealed(SealedCursor)

    /// Returns nil if the text is not a cursor.
    init?(_ text: String) {
        if let cursor = FeedCursor(text) {
            self = .plain(cursor)
        } else if let cursor = SealedCursor(text) {
            self = .sealed(cursor)
        } else {
            return nil
        }
    }
}

/// A permutation of positions with a key that lives as long as the process: a Feistel network of four rounds, whose
/// round function is the standard library's keyed SipHash.
private enum PositionCipher {
    private static let key = (UInt64.random(in: .min ... .max), UInt64.random(in: .min ... .max))
    private static let rounds: ClosedRange<UInt8> = 1...4

    static func encipher(_ position: UInt64, epoch: UInt64) -> UInt64 {
        var (left, right) = halves(position)
        for round in rounds { (left, right) = (right, left ^ mix(right, round, epoch)) }
        return UInt64(left) << 32 | UInt64(right)
    }

    static func decipher(_ text: UInt64, epoch: UInt64) -> UInt64 {
        var (left, right) = halves(text)
        for round in rounds.reversed() { (left, right) = (right ^ mix(left, round, epoch), left) }
        return UInt64(left) << 32 | UInt64(right)
    }

    private static func halves(_ value: UInt64) -> (UInt32, UInt32) {
        (UInt32(truncatingIfNeeded: value >> 32), UInt32(truncatingIfNeeded: value))
    }

    private static func mix(_ half: UInt32, _ round: UInt8, _ epoch: UInt64) -> UInt32 {
        var hasher = Hasher()
        hasher.combine(key.0)
        hasher.combine(key.1)
        hasher.combine(epoch)
        hasher.combine(round)
        hasher.combine(half)
        return UInt32(truncatingIfNeeded: hasher.finalize())
    }
}
