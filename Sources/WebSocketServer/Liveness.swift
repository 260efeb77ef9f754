import CWebSockets

/// Decides when a client is pinged, and when it is given up.
///
/// A client that reads slowly gets a ping late, behind the bytes that are queued for it. Therefore it has time as long
/// as these bytes drain. Bytes that the client's kernel has acknowledged are not enough if nothing is queued: it
/// acknowledges them for a client that is frozen, too.
struct Liveness {
    /// What the kernel knows about the bytes that were sent to a client.
    struct Backlog {
        /// Number that grows while the client, or what relays its bytes, takes bytes.
        var taken: Int
        /// Whether bytes wait that could not be sent yet.
        var isWaiting: Bool
        /// Whether bytes of the client wait to be read, as after a pause of the process.
        var hasInput = false
    }

    enum Step {
        case nothing
        case ping
        case giveUp
    }

    private let pingInterval: Duration
    private let pongTimeout: Duration
    /// When ``step(_:now:)`` must be called.
    private(set) var next: ContinuousClock.Instant
    /// The backlog at the last step; nil if no pong is owed.
    private var backlog: Backlog?

    init(pingInterval: Duration, pongTimeout: Duration, now: ContinuousClock.Instant) {
        self.pingInterval = max(pingInterval, .milliseconds(100))
        self.pongTimeout = max(pongTimeout, .milliseconds(100))
        next = now + self.pingInterval
    }

    /// Records a pong, or another message of the client.
    mutating func heard(isPong: Bool, now: @autoclosure () -> ContinuousClock.Instant) {
        guard isPong || backlog != nil else { return }
        backlog = nil
        next = now() + pingInterval
    }

    /// Decides what is due. Earlier than ``next`` this is nothing.
    mutating func step(_ current: @autoclosure () -> Backlog, now: ContinuousClock.Instant) -> Step {
        guard now >= next else { return .nothing }
        let current = current()
        defer { next = now + pongTimeout }
        guard let last = backlog else {
            backlog = current
            return .ping
        }
        backlog = current
        if current.hasInput { return .nothing }
        return (last.isWaiting || current.isWaiting) && current.taken > last.taken ? .nothing : .giveUp
    }
}

/// Limits the bytes that the kernel buffers for a client beyond those already sent, so that a ping does not wait behind
/// many of them.
///
/// The limit follows the speed of the connection: by default, Linux buffers up to 4 MiB, and even 128 KiB take a slow
/// link 20 seconds. A busy server is late, too; therefore only a long wait lowers the limit.
struct UnsentLimit {
    /// The bytes that a slow link takes in a second or two.
    static let slowest = 8 * 1024
    static let fastest = 128 * 1024
    private static let shortWait = Duration.milliseconds(100)
    private static let longWait = Duration.seconds(1)

    private(set) var bytes = Int(CWS_UNSENT_BYTES)
    private var fullSince: ContinuousClock.Instant?

    /// Whether frames should be sent in small parts.
    var isSlow: Bool { bytes < Int(CWS_UNSENT_BYTES) }

    /// Records that more is queued than the socket has accepted.
    mutating func filled(now: @autoclosure () -> ContinuousClock.Instant) { if fullSince == nil { fullSince = now() } }

    /// Records that the socket accepts bytes again.
    ///
    /// - Returns: the new limit if it changes.
    mutating func drained(now: @autoclosure () -> ContinuousClock.Instant) -> Int? {
        guard let since = fullSince.take() else { return nil }
        let (wait, before) = (now() - since, bytes)
        if wait > Self.longWait {
            bytes = Self.slowest
        } else if wait < Self.shortWait {
            bytes = min(bytes * 2, Self.fastest)
        }
        return bytes == before ? nil : bytes
    }
}
