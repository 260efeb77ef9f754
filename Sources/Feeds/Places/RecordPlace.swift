import Base
package import Cluster
import Coaty
import Synchronization

/// The content of a cursor that other gateways can read: a record, and the events up to it.
struct CursorContent: Sendable, Equatable {
    static let length = 32

    /// The record at the gateway that has sent the cursor.
    var epoch: UInt64
    /// Less than 2^48.
    var position: UInt64
    /// The tag of that gateway's session.
    var session: UInt16
    /// When the record was received, in milliseconds since the start of the session; less than 2^48.
    var time: Int64
    /// The number of events in the window up to the record; 0 if none was received in the time of a window.
    var count: UInt16
    /// The hash of the window.
    var hash: UInt64

    init(epoch: UInt64, position: UInt64, session: UInt16, time: Int64, count: UInt16, hash: UInt64) {
        (self.epoch, self.position, self.session) = (epoch, position, session)
        (self.time, self.count, self.hash) = (time, count, hash)
    }

    var bytes: [UInt8] {
        let fields: [(value: UInt64, bytes: Int)] = [
            (epoch, 8), (hash, 8), (position, 6), (UInt64(bitPattern: time), 6), (UInt64(count), 2),
            (UInt64(session), 2),
        ]
        return fields.flatMap { field in
            (0..<field.bytes).map { UInt8(truncatingIfNeeded: field.value >> UInt64(8 * $0)) }
        }
    }

    /// Reads ``bytes``; nil if their number is wrong.
    init?(_ bytes: [UInt8]) {
        guard bytes.count == Self.length else { return nil }
        func field(_ range: Range<Int>) -> UInt64 { bytes[range].reversed().reduce(0) { $0 << 8 | UInt64($1) } }
        self.init(
            epoch: field(0..<8),
            position: field(16..<22),
            session: UInt16(field(30..<32)),
            time: Int64(field(22..<28)),
            count: UInt16(field(28..<30)),
            hash: field(8..<16)
        )
    }
}

/// The place of a record among events that other gateways have received, too.
final class RecordPlace: Sendable {
    /// The approximate memory of a place with its text, in bytes.
    static let footprint = 256

    private let content: CursorContent
    private let feed: FeedPlaces
    private let known = Mutex<String?>(nil)

    /// - Parameters:
    ///   - time: when the record was received here.
    ///   - count: the length of its window.
    ///   - hash: the hash of its window.
    init(_ cursor: FeedCursor, time: Int64, count: UInt16, hash: UInt64, _ feed: FeedPlaces) {
        content = CursorContent(
            epoch: cursor.epoch,
            position: cursor.position,
            session: feed.cluster.session,
            time: time,
            count: count,
            hash: hash
        )
        self.feed = feed
    }

    /// The text of the record's cursor, which is created by the first call.
    var text: String {
        if let known = known.withLock(\.self) { return known }
        let text = Base64URL.encode(feed.cluster.seal.seal(content.bytes, for: feed.context))
        known.withLock { $0 = text }
        return text
    }
}

/// The means to make and read the places of one feed.
final class FeedPlaces: Sendable {
    let cluster: ClusterCursors
    /// Identifies the observation: a cursor can be used only for that.
    fileprivate let context: [UInt8]

    /// - Parameter name: the name of the observation at all gateways.
    init(_ cluster: ClusterCursors, name: String) {
        self.cluster = cluster
        context = Array(name.utf8)
    }

    /// Returns the content of a cursor of this or another gateway; nil if no gateway of the cluster has sent it for
    /// this observation.
    func open(_ sealed: SealedCursor) -> CursorContent? {
        cluster.seal.open(sealed.bytes, for: context).flatMap(CursorContent.init)
    }
}

/// The means to make and read the cursors of a cluster.
package final class ClusterCursors: Sendable {
    let events: EventHash
    let windows: WindowHash
    let seal: CursorSeal
    /// The tag of this gateway's session.
    let session: UInt16
    private let clock: @Sendable () -> Duration
    private let translate: @Sendable (Duration, UInt16) -> Duration?

    /// - Parameters:
    ///   - clock: returns the time since the start of the session.
    ///   - translate: returns the local time of a time of the session with a tag; nil if the session is not known.
    init(
        _ key: ClusterKey,
        session: UInt16,
        clock: @escaping @Sendable () -> Duration,
        translate: @escaping @Sendable (Duration, UInt16) -> Duration?
    ) {
        let secret = key.derived(.events)
        events = EventHash(key: secret)
        windows = WindowHash(base: secret.suffix(8).reduce(0) { $0 << 8 | UInt64($1) })
        seal = CursorSeal(key: key.derived(.cursors))
        self.session = session
        (self.clock, self.translate) = (clock, translate)
    }

    package convenience init(_ key: ClusterKey, _ peers: Peers) {
        self.init(key, session: Peers.tag(peers.session), clock: { peers.now }, translate: peers.localTime)
    }

    /// Milliseconds since the start of this gateway's session.
    var now: Int64 { Self.milliseconds(clock()) }

    /// Returns the local time of a cursor, in milliseconds; nil if its gateway is not known.
    func localTime(of cursor: CursorContent) -> Int64? {
        translate(.milliseconds(cursor.time), cursor.session).map(Self.milliseconds)
    }

    private static func milliseconds(_ time: Duration) -> Int64 {
        time.components.seconds * 1000 + time.components.attoseconds / 1_000_000_000_000_000
    }
}
