import DequeModule

/// Limits the bytes that the service thread sends in one turn, before it handles timers, the mailbox and received
/// bytes.
///
/// Without a limit, thousands of sockets with megabytes to send would delay all other connections until each socket is
/// full. When a turn is over, only short fragments are sent. Connections with longer ones are put in line, and a few of
/// them send in each turn. Connections that other threads have scheduled wait for the next turn.
struct WritingTurn {
    /// Maximum length of a fragment that is sent after the turn is over, and maximum number of bytes that one
    /// connection then sends.
    static let shortBytes = 4096
    /// The cost of a new or scheduled connection besides its bytes, so that the mailbox is not read for more than 1,024
    /// of them before the event loop runs again.
    static let attention = 1024
    /// Number of bytes after which the turn is over.
    private static let limit = 1024 * 1024

    private let resumedPerTurn: Int
    private var bytes = 0
    private var waiting: Deque<UInt64> = []

    /// - Parameter share: maximum number of bytes that one connection sends in a turn.
    init(share: Int) {
        resumedPerTurn = max(1, Self.limit / share)
    }

    var isOver: Bool { bytes >= Self.limit }

    /// Whether there are connections in line.
    var hasLine: Bool { !waiting.isEmpty }

    /// Counts bytes that were sent or compressed.
    mutating func add(_ count: Int) { bytes += count }

    /// Appends a connection to the line. It must not be in line already.
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
