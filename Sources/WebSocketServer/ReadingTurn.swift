/// Limits the messages that the service thread receives before it handles timers, the mailbox and outbound frames.
///
/// If 1,024 or more sockets are readable, libuv polls up to 48 times before it does anything else, and one read can
/// contain hundreds of frames. A connection that receives a part after the turn is over is paused after that part.
struct ReadingTurn {
    /// The cost of a turn: one for each part of a message, and one for each KiB in it.
    private static let limit = 4096

    private var cost = 0
    /// The connections that continue reading in the next turn.
    var paused: [UInt64] = []

    /// Counts a part of a message.
    ///
    /// - Returns: whether its connection must wait for the next turn.
    mutating func isOver(afterReceiving bytes: Int) -> Bool {
        cost += 1 + bytes / 1024
        return cost > Self.limit
    }

    /// Begins the next turn.
    ///
    /// - Returns: the connections that were paused in the last one.
    mutating func begin() -> [UInt64] {
        cost = 0
        defer { paused = [] }
        return paused
    }
}
