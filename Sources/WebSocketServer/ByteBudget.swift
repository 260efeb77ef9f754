extension WebSocketServer {
    /// The memory that a connection's unfinished messages may take.
    ///
    /// It is asked for in steps of 16 KiB. Both methods are called on the service thread and must not block.
    public protocol ByteBudget: AnyObject, Sendable {
        /// Takes bytes unless there are too few.
        ///
        /// - Returns: Whether the bytes were taken; if not, the connection is closed with 1013.
        func take(_ bytes: Int) -> Bool

        /// Gives back bytes that were taken.
        func give(_ bytes: Int)
    }
}

/// A message of which more is to come, and the memory for it.
struct InboundMessage: ~Copyable {
    /// What the budget is asked for at once.
    private static let step = 16 * 1024

    /// The bytes received so far, still compressed if the message is.
    private(set) var bytes: [UInt8] = []
    /// Whether the message comes compressed.
    let isCompressed: Bool
    /// When the whole of it must have come.
    let deadline: ContinuousClock.Instant
    /// Whether its first frame has come whole.
    var isContinued = false
    private let budget: (any WebSocketServer.ByteBudget)?
    private var taken = 0

    init(isCompressed: Bool, deadline: ContinuousClock.Instant, budget: (any WebSocketServer.ByteBudget)?) {
        self.isCompressed = isCompressed
        self.deadline = deadline
        self.budget = budget
    }

    deinit {
        if taken > 0 { budget?.give(taken) }
    }

    /// Adds a part of the message.
    ///
    /// - Parameters:
    ///   - isLast: whether it ends the message. A message that comes at once is not charged: it is handled next.
    ///   - limit: the maximum length of the message, which the part does not exceed.
    /// - Returns: false if the budget has no memory for it.
    mutating func append(_ part: UnsafeRawBufferPointer, isLast: Bool, limit: Int) -> Bool {
        let length = bytes.count + part.count
        if length > taken, !isLast || taken > 0 {
            // Twice as much as before, as long as that much can come.
            let size = max(length, min(2 * taken, limit))
            let missing = (size + Self.step - 1) / Self.step * Self.step - taken
            guard budget?.take(missing) ?? true else { return false }
            taken += missing
            bytes.reserveCapacity(taken)
        }
        bytes += part
        return true
    }
}
