import DequeModule

/// What the service thread sends before it looks after timers, the mailbox and what has come in.
///
/// Thousands of sockets with megabytes to send would otherwise hold up everyone for as long as all of them take to fill. After the
/// turn is over only short fragments are sent; connections with longer ones wait in line, and a few of them send in each turn.
struct WritingTurn {
    /// The longest fragment that is sent after the turn is over, and the most that one connection sends then.
    static let shortBytes = 4096
    /// The bytes after which the turn is over.
    private static let limit = 1024 * 1024

    private let resumedPerTurn: Int
    private var bytes = 0
    private var waiting: Deque<UInt64> = []

    /// - Parameter share: the most that one connection sends in a turn.
    init(share: Int) {
        resumedPerTurn = max(1, Self.limit / share)
    }

    var isOver: Bool { bytes >= Self.limit }

    /// Whether connections wait in line.
    var hasLine: Bool { !waiting.isEmpty }

    /// Counts what was sent and compressed.
    mutating func add(_ count: Int) { bytes += count }

    /// Lets a connection wait in line. It must not be there already.
    mutating func wait(_ id: UInt64) { waiting.append(id) }

    /// Begins the next turn.
    ///
    /// - Returns: the connections that send next.
    mutating func begin() -> [UInt64] {
        bytes = 0
        let resumed = Array(waiting.prefix(resumedPerTurn))
        waiting.removeFirst(resumed.count)
        return resumed
    }
}
