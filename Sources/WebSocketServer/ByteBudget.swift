extension WebSocketServer {
    /// The memory for a connection's incomplete messages.
    ///
    /// It is requested in steps of 16 KiB. Both methods are called on the service thread and must not block.
    public protocol ByteBudget: AnyObject, Sendable {
        /// Takes bytes if enough are available.
        ///
        /// - Returns: whether the bytes were taken; if not, the connection is closed with 1013.
        func take(_ bytes: Int) -> Bool

        /// Gives back bytes that were taken.
        func give(_ bytes: Int)
    }
}

/// An incomplete message, and its memory.
struct InboundMessage: ~Copyable {
    /// Number of bytes that are requested from the budget at a time.
    private static let step = 16 * 1024

    /// The bytes received so far, still compressed if the message is.
    private(set) var bytes: [UInt8] = []
    /// Whether the message is compressed.
    let isCompressed: Bool
    /// When the message must be complete.
    let deadline: ContinuousClock.Instant
    /// Whether its first frame is complete.
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
    ///   - isLast: whether it ends the message. A message that arrives in one part is not charged: it is handled next.
    ///   - limit: the maximum length of the message, which the part does not exceed.
    /// - Returns: false if the budget has no memory for it.
    mutating func append(_ part: UnsafeRawBufferPointer, isLast: Bool, limit: Int) -> Bool {
        let length = bytes.count + part.count
        if length > taken, !isLast || taken > 0 {
            // Twice the previous size, limited to the possible length.
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
